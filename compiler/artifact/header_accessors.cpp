// Texts of the accessors in generated headers.
#include "compiler/artifact/header_accessors.h"

#include "compiler/artifact/header_dims.h"
#include "compiler/artifact/header_types.h"
#include "compiler/artifact/text_template.h"
#include "compiler/artifact/training_step.h"

namespace firn::artifact {

std::string offset_text(const TensorDescription& tensor) {
  return tensor.arena_offset ? std::to_string(*tensor.arena_offset) : "firn::detail::external";
}

namespace {

// The C++ type of an element in memory: "const float". Elements below a byte are read as whole bytes.
std::string element_type(const TensorDescription& tensor, bool is_const) {
  const HeaderType type = header_type(tensor.dtype);
  const std::string element = type.is_sub_byte ? "unsigned char" : type.cpp;
  return (is_const ? "const " : "") + element;
}

// "firn::View<...>(pointer, extents...)" over an address expression.
std::string view_expression(const ModelDescription& model, const TensorDescription& tensor, bool is_const,
                            const std::string& address) {
  std::string text = view_type(tensor, is_const) + "(" + address;
  auto counted = tensor.counted_dims.begin();
  for (size_t axis = 0; axis < tensor.dims.size(); ++axis) {
    if (tensor.is_counted(axis))
      text += ", firn::detail::counted(instance_.arena, " + std::to_string(counted++->arena_offset) + ")";
    else if (tensor.varies(axis))
      text += ", " + extent_text(model, tensor.dims[axis]);
  }
  return text + ")";
}

std::string original_name_note(const TensorDescription& tensor) {
  return tensor.name == tensor.identifier ? "" : ", '" + comment_text(tensor.name) + "' in the model";
}

// Scalars of a training step are numbers, not views: a learning rate, a loss, a count of steps.
bool is_number(const ModelDescription& model, const TensorDescription& tensor) {
  return !model.functions.empty() && tensor.dims.empty() && !header_type(tensor.dtype).is_sub_byte;
}

std::string number_accessor(const TensorDescription& tensor) {
  const std::string element = element_type(tensor, false);
  return "FIRN_HIDDEN " + element + "& " + tensor.identifier +
         "() noexcept {\n  return instance_.arena ? *firn::detail::slot<" + element + ">(instance_.arena, " +
         offset_text(tensor) + ") : unused_" + tensor.identifier + "_;\n}\n";
}

std::string input_accessors(const ModelDescription& model, size_t index) {
  const TensorDescription& tensor = model.inputs[index];
  const std::string& id = tensor.identifier;
  const std::string element = element_type(tensor, false);
  std::string text;
  if (tensor.arena_offset && is_number(model, tensor)) {
    text += "// Input " + type_text(tensor) + original_name_note(tensor) + ": 0 until it is set.\n" +
            number_accessor(tensor) + "// Reads the caller's memory instead of " + id + "().\n";
  } else if (tensor.arena_offset) {
    text += "// Input " + type_text(tensor) + original_name_note(tensor) + ": write it before " +
            (model.functions.empty() ? "run(), which leaves" : "a step, which leaves") + " it as it is.\n";
    text +=
        "FIRN_HIDDEN " + view_type(tensor, false) + " " + id + "() noexcept {\n  return " +
        view_expression(model, tensor, false,
                        "firn::detail::slot<" + element + ">(instance_.arena, " + offset_text(tensor) + ")") +
        ";\n}\n";
    text += "// Reads the caller's memory instead of " + id + "().\n";
  } else {
    text += "// Input " + type_text(tensor) + original_name_note(tensor) +
            ", without memory of its own: bind it before run().\n";
  }
  text += "FIRN_HIDDEN void bind_" + id + "(const " + element +
          "* buffer) noexcept {\n  instance_.bind_input(" + std::to_string(index) + ", buffer, " +
          offset_text(tensor) + ");\n}";
  return text;
}

std::string output_accessors(const ModelDescription& model, size_t index) {
  const TensorDescription& tensor = model.outputs[index];
  const std::string& id = tensor.identifier;
  std::string text = "// Output " + type_text(tensor) + original_name_note(tensor) +
                     (tensor.arena_offset ? ": valid until the next run().\n"
                                          : ", without memory of its own: bind it before run().\n");
  if (is_number(model, tensor))
    text += "FIRN_HIDDEN " + element_type(tensor, false) + " " + id +
            "() const noexcept {\n  return instance_.outputs[" + std::to_string(index) + "] ? *static_cast<" +
            element_type(tensor, true) + "*>(instance_.outputs[" + std::to_string(index) +
            "]) : " + element_type(tensor, false) + "();\n}\n";
  else
    text += "FIRN_HIDDEN " + view_type(tensor, true) + " " + id + "() const noexcept {\n  return " +
            view_expression(model, tensor, true,
                            "static_cast<" + element_type(tensor, true) + "*>(instance_.outputs[" +
                                std::to_string(index) + "])") +
            ";\n}\n";
  if (tensor.arena_offset) text += "// Writes to the caller's memory; bound buffers must not overlap.\n";
  text += "FIRN_HIDDEN void bind_" + id + "(" + element_type(tensor, false) +
          "* buffer) noexcept {\n  instance_.bind_output(" + std::to_string(index) + ", buffer, " +
          offset_text(tensor) + ");\n}";
  return text;
}

std::string state_accessors(const ModelDescription& model, const TensorDescription& tensor) {
  if (is_number(model, tensor)) {
    const std::string element = element_type(tensor, false);
    return "// State " + type_text(tensor) + original_name_note(tensor) + ": see reset().\nFIRN_HIDDEN " +
           element + " " + tensor.identifier +
           "() const noexcept {\n  return instance_.arena ? *firn::detail::slot<" + element +
           ">(instance_.arena, " + offset_text(tensor) + ") : " + element + "();\n}";
  }
  return "// State " + type_text(tensor) + original_name_note(tensor) +
         ": kept from run to run, see reset().\nFIRN_HIDDEN " + view_type(tensor, false) + " " +
         tensor.identifier + "() noexcept {\n  return " +
         view_expression(model, tensor, false,
                         "firn::detail::slot<" + element_type(tensor, false) + ">(instance_.arena, " +
                             offset_text(tensor) + ")") +
         ";\n}";
}

} // namespace

std::string accessors(const ModelDescription& model) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "\n\n") + part; };
  if (!model.dims.empty()) add(dim_functions(model));
  for (size_t i = 0; i < model.inputs.size(); ++i) add(input_accessors(model, i));
  for (size_t i = 0; i < model.outputs.size(); ++i) add(output_accessors(model, i));
  for (const TensorDescription& state : arena_states(model)) add(state_accessors(model, state));
  return text;
}

std::string reset_function(const ModelDescription& model) {
  if (arena_states(model).empty()) return "";
  std::string text = "// Sets the state back to its initial value; the constructor has done so.\n"
                     "FIRN_HIDDEN void reset() noexcept {\n"
                     "  if (!instance_.arena) return;\n";
  for (const TensorDescription& state : arena_states(model)) {
    const std::string target = "  std::mem" + std::string(state.initial_weights ? "cpy" : "set") +
                               "(instance_.arena + " + offset_text(state) + ", ";
    const std::string source =
        state.initial_weights ? "instance_.weights + " + std::to_string(*state.initial_weights) : "0";
    text += target + source + ", " + std::to_string(state.byte_size()) + ");\n";
  }
  return text + "}";
}

std::string clear_tensors(const ModelDescription& model) {
  std::string text;
  for (const auto* tensors : {&model.inputs, &model.outputs})
    for (const TensorDescription& tensor : *tensors)
      if ((tensor.dtype == DType::String || is_number(model, tensor)) && tensor.arena_offset)
        text += std::string(text.empty() ? "" : "\n") +
                "if (instance_.arena) std::memset(instance_.arena + " + offset_text(tensor) + ", 0, " +
                std::to_string(tensor.byte_size()) + ");";
  for (const TensorDescription& output : model.outputs) {
    for (const CountedDim& counted : output.counted_dims)
      text += std::string(text.empty() ? "" : "\n") +
              "if (instance_.arena) *firn::detail::slot<std::int64_t>(instance_.arena, " +
              std::to_string(counted.arena_offset) + ") = 0;";
  }
  return text;
}

std::string scalar_members(const ModelDescription& model) {
  std::string text;
  for (const TensorDescription& input : model.inputs)
    if (input.arena_offset && is_number(model, input))
      text += (text.empty() ? "" : "\n") + element_type(input, false) + " unused_" + input.identifier +
              "_ = {}; // without an arena";
  return text;
}

} // namespace firn::artifact
