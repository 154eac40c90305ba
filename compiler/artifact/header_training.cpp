// See header_training.h.
#include "compiler/artifact/header_training.h"

#include "compiler/artifact/header_accessors.h"
#include "compiler/artifact/header_types.h"
#include "compiler/artifact/identifiers.h"
#include "compiler/artifact/training_step.h"

#include <algorithm>

namespace firn::artifact {
namespace {

constexpr std::string_view parameters_class =
    R"(// The tensors that training changes, in the layout of the model. They hold what reset() or load() wrote, or what the
// program did; outlive every instance and trainer that they are given to; and are shared by all of these. While a step
// runs nothing else may read them. Copies are independent.
class alignas(arena_alignment) Parameters {
public:
  // Bytes of what save() writes.
  FIRN_HIDDEN static constexpr std::size_t saved_bytes = {{SAVED_BYTES}};
  // Sets all tensors to their values in the object.
  FIRN_HIDDEN void reset({{RESET_PARAMETER}}) noexcept {
    {{RESET_PARAMETERS}}
  }
  // Writes the tensors as a file of safetensors (firn/saved_tensors.h) to the first saved_bytes of the memory.
  FIRN_HIDDEN firn::Status save(firn::ByteSpan to) const noexcept {
    return firn::Status(firn_rt2_save_tensors(Facts::tensors, {{TENSOR_COUNT}}, bytes_, to.data(), to.size()));
  }
  // Reads such a file, all of it or nothing: FIRN_STATUS_TENSORS_UNFIT if names, types or dims are others.
  FIRN_HIDDEN firn::Status load(firn::ConstByteSpan from) noexcept {
    return firn::Status(firn_rt2_load_tensors(Facts::tensors, {{TENSOR_COUNT}}, bytes_, from.data(), from.size()));
  }
  {{PARAMETER_VIEWS}}

private:
  friend class {{CLASS}};
  friend class Trainer;
  struct Facts {
    FIRN_HIDDEN static constexpr firn_rt2_saved_tensor tensors[] = { {{SAVED_ROWS}} };
  };
  unsigned char bytes_[parameter_bytes];
};)";

constexpr std::string_view function_template =
    R"({{FUNCTION_COMMENT}}
FIRN_HIDDEN firn::Status {{FUNCTION}}() noexcept { return run_{{FUNCTION}}(nullptr); }
{{RUN_WITH_EXECUTOR}}
FIRN_HIDDEN firn::Status {{FUNCTION}}(firn::Executor& executor) noexcept {
  return run_{{FUNCTION}}(executor.c_executor());
})";

constexpr std::string_view private_function_template =
    R"(FIRN_HIDDEN firn::Status run_{{FUNCTION}}(const firn_executor* executor) noexcept {
  const void* const inputs[] = { {{FUNCTION_INPUTS}} };
  void* const outputs[] = { {{FUNCTION_OUTPUTS}} };
  {{FUNCTION_EXTENTS}}
  const firn::detail::FunctionArguments given = {&{{FUNCTION_SYMBOL}}, inputs, {{INPUT_NUMBER}}, outputs, {{OUTPUT_NUMBER}}, {{EXTENTS_VALUE}}};
  {{RUN_GIVEN}}
})";

constexpr std::string_view state_functions =
    R"(// Bytes of what save_state() writes.
FIRN_HIDDEN static constexpr std::size_t saved_state_bytes = {{SAVED_BYTES}};
// Writes the states, which a training that is to go on elsewhere needs beside the parameters, as a file of safetensors
// (firn/saved_tensors.h) to the first saved_state_bytes of the memory.
FIRN_HIDDEN firn::Status save_state(firn::ByteSpan to) const noexcept {
  if (!instance_.arena) return status();
  return firn::Status(firn_rt2_save_tensors(Facts::saved, {{TENSOR_COUNT}}, instance_.arena, to.data(), to.size()));
}
// Reads such a file, all of it or nothing: FIRN_STATUS_TENSORS_UNFIT if names, types or dims are others.
FIRN_HIDDEN firn::Status load_state(firn::ConstByteSpan from) noexcept {
  if (!instance_.arena) return status();
  return firn::Status(firn_rt2_load_tensors(Facts::saved, {{TENSOR_COUNT}}, instance_.arena, from.data(), from.size()));
})";

std::string list(const std::vector<std::string>& items, const char* separator = ", ") {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : separator) + item;
  return text;
}

// "instance_.inputs[0], instance_.inputs[2]"; `nothing` if there are none, as arrays have one at least.
std::string elements(const std::string& array, const std::vector<size_t>& numbers,
                     const std::string& nothing) {
  std::vector<std::string> items;
  for (size_t number : numbers) items.push_back(array + "[" + std::to_string(number) + "]");
  return items.empty() ? nothing : list(items);
}

std::string parameter_views(const std::vector<TensorDescription>& tensors) {
  std::string text;
  for (const TensorDescription& tensor : tensors) {
    const std::string original =
        tensor.name == tensor.identifier ? "" : ", '" + comment_text(tensor.name) + "' in the model";
    text += (text.empty() ? "" : "\n") + ("// " + type_text(tensor) + original + ".\n");
    for (bool is_const : {false, true}) {
      const std::string view = view_type(tensor, is_const), element = header_type(tensor.dtype).cpp;
      text += "FIRN_HIDDEN " + view + " " + tensor.identifier + "() " + (is_const ? "const " : "") +
              "noexcept {\n  return " + view + "(reinterpret_cast<" + (is_const ? "const " : "") + element +
              "*>(bytes_ + " + std::to_string(*tensor.arena_offset) + "));\n}\n";
    }
    text.pop_back();
  }
  return text;
}

std::string function_comment(const ModelDescription& trainer, const TrainingFunction& function) {
  std::string outputs;
  for (size_t number : function.outputs)
    outputs += (outputs.empty() ? "" : ", ") + trainer.outputs[number].identifier + "()";
  std::string text = "// Runs @" + comment_text(function.name) + ", which computes " +
                     (outputs.empty() ? "no output" : outputs) +
                     ": no allocation, lock, exception or system call.";
  if (function.loss)
    text += "\n// If " + trainer.outputs[*function.loss].identifier +
            "() is infinite or no number the status is FIRN_STATUS_NOT_FINITE, and parameters and states "
            "stay what they are.";
  return text;
}

std::string loss_bytes(const ModelDescription& trainer, const TrainingFunction& function) {
  return std::to_string(trainer.outputs[*function.loss].byte_size());
}

void add_function_texts(Slots& slots, const ModelDescription& trainer) {
  std::string texts, private_texts;
  const std::string variant = trainer.cpus.empty() ? "0" : "variant_";
  for (const TrainingFunction& function : trainer.functions) {
    add_function_slots(slots, trainer, function, "instance_.", "nullptr");
    const std::string run = "instance_.run_function(given, executor, " + variant + ")";
    const auto loss = function.loss
                          ? std::find(function.outputs.begin(), function.outputs.end(), *function.loss) -
                                function.outputs.begin()
                          : 0;
    slots["RUN_GIVEN"] = function.loss ? "const firn::Status done = " + run +
                                             ";\nif (done && !firn_rt2_is_finite(outputs[" +
                                             std::to_string(loss) + "], " + loss_bytes(trainer, function) +
                                             ")) return firn::Status(FIRN_STATUS_NOT_FINITE);\nreturn done;"
                                       : "return " + run + ";";
    texts += (texts.empty() ? "" : "\n") + expand_template(function_template, slots);
    private_texts += (private_texts.empty() ? "" : "\n") + expand_template(private_function_template, slots);
  }
  slots["RUN_FUNCTIONS"] = texts;
  slots["PRIVATE_FUNCTIONS"] = private_texts;
}

constexpr std::string_view construction = R"(//   static {{OWNER}}::Parameters parameters;
//   parameters.reset({{WEIGHTS_ONLY}});
//   static {{QUALIFIED}}::Arena arena;
//   {{QUALIFIED}} model(arena, parameters{{WEIGHTS_TOO}});)";

std::string fact(const std::string& type, const std::string& name, int64_t value) {
  return "FIRN_HIDDEN static constexpr " + type + " " + name + " = " + std::to_string(value) + ";";
}

} // namespace

void add_saved_slots(Slots& slots, const std::vector<TensorDescription>& tensors) {
  const SavedTensors saved = saved_tensors(tensors);
  slots["SAVED_BYTES"] = std::to_string(saved.bytes);
  slots["TENSOR_COUNT"] = std::to_string(saved.rows.size());
  std::string rows;
  for (const SavedTensors::Row& row : saved.rows)
    rows += (rows.empty() ? "{" : ", {") + c_string(row.entry) + ", " + std::to_string(row.entry.size()) +
            ", " + std::to_string(row.offset) + ", " + std::to_string(row.bytes) + "}";
  slots["SAVED_ROWS"] = rows;
}

std::string reset_statements(const std::vector<TensorDescription>& tensors, const std::string& block,
                             const std::string& weights, const std::string& prefix) {
  std::vector<std::string> lines;
  for (const TensorDescription& tensor : tensors) {
    const std::string target = "(" + block + " + " + std::to_string(*tensor.arena_offset) + ", ",
                      bytes = ", " + std::to_string(tensor.byte_size()) + ");";
    lines.push_back(tensor.initial_weights ? prefix + "memcpy" + target + weights + " + " +
                                                 std::to_string(*tensor.initial_weights) + bytes
                                           : prefix + "memset" + target + "0" + bytes);
  }
  return list(lines, "\n");
}

bool has_first_values(const std::vector<TensorDescription>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const TensorDescription& tensor) { return tensor.initial_weights.has_value(); });
}

void add_function_slots(Slots& slots, const ModelDescription& trainer, const TrainingFunction& function,
                        const std::string& instance, const std::string& null) {
  slots["FUNCTION"] = function.name;
  slots["FUNCTION_SYMBOL"] = function.run_symbol;
  slots["FUNCTION_COMMENT"] = function_comment(trainer, function);
  slots["FUNCTION_INPUTS"] = elements(instance + "inputs", function.inputs, null);
  slots["FUNCTION_OUTPUTS"] = elements(instance + "outputs", function.outputs, null);
  slots["INPUT_NUMBER"] = std::to_string(function.inputs.size());
  slots["OUTPUT_NUMBER"] = std::to_string(function.outputs.size());
  slots["EXTENTS_VALUE"] = function.dims.empty() ? null : "extents";
  slots["FUNCTION_EXTENTS"] =
      function.dims.empty()
          ? ""
          : "const size_t extents[] = { " + elements(instance + "extents", function.dims, null) + " };";
}

// The parts that the class of a model with parameters has beside those of others.
static void add_parameters_slots(Slots& slots, const ModelDescription& model) {
  const std::vector<TensorDescription> tensors = parameter_tensors(model);
  const bool is_raw = model.raw_weight_bytes.has_value();
  slots["TRAINER_DECLARATION"] = "class Trainer;";
  slots["TRAINING_FACTS"] = fact("std::size_t", "parameter_bytes", model.parameter_bytes);
  slots["RESET_PARAMETER"] = is_raw ? "const Weights& packed" : "";
  std::string weights = is_raw ? "static_cast<void>(packed);\n" : "";
  if (has_first_values(tensors))
    weights = is_raw ? "const unsigned char* const weights = packed.data();\nif (!weights) return;\n"
                     : "const unsigned char* const weights = embedded().data();\n";
  slots["RESET_PARAMETERS"] = weights + reset_statements(tensors, "bytes_", "weights", "std::");
  slots["PARAMETER_VIEWS"] = parameter_views(tensors);
  add_saved_slots(slots, tensors);
  slots["PARAMETERS_CLASS"] = expand_template(parameters_class, slots);
}

static void add_trainer_slots(Slots& slots, const ModelDescription& trainer) {
  slots["CLASS_HEAD"] = trainer.owner_class.substr(trainer.owner_class.rfind(':') + 1) + "::Trainer";
  std::string facts = fact("std::size_t", "moment_bytes", moment_bytes(trainer));
  for (const TrainingFunction& function : trainer.functions)
    facts += "\n" + fact("std::uint64_t", function.name + "_flops", function.flops);
  slots["TRAINING_FACTS"] = facts;
  add_saved_slots(slots, arena_states(trainer));
  slots["SCALAR_MEMBERS"] = scalar_members(trainer);
  slots["STATE_FUNCTIONS"] = expand_template(state_functions, slots);
  slots["SAVED_TABLE"] =
      "FIRN_HIDDEN static constexpr firn_rt2_saved_tensor saved[] = { " + slots["SAVED_ROWS"] + " };";
  add_function_texts(slots, trainer);
}

void add_training_slots(Slots& slots, const ModelDescription& model) {
  for (const char* name : {"TRAINER_DECLARATION", "PARAMETERS_CLASS", "TRAINING_FACTS",
                           "PARAMETERS_PARAMETER", "PARAMETERS_ARGUMENT", "SET_PARAMETERS",
                           "PRIVATE_FUNCTIONS", "STATE_FUNCTIONS", "SAVED_TABLE", "SCALAR_MEMBERS"})
    slots[name] = "";
  slots["INSTANCE_ARGUMENTS"] = slots["DIM_COUNT_ARGUMENT"];
  slots["CLASS_HEAD"] = slots["CLASS"];
  if (model.parameter_bytes == 0) return;
  const bool is_trainer = !model.functions.empty();
  slots["INSTANCE_ARGUMENTS"] = (model.dims.empty() ? ", 0" : slots["DIM_COUNT_ARGUMENT"]) + ", true";
  slots["PARAMETERS_PARAMETER"] = is_trainer ? "Parameters& parameters, " : "const Parameters& parameters, ";
  slots["PARAMETERS_ARGUMENT"] = "parameters, ";
  slots["OWNER"] = is_trainer ? model.owner_class : model.class_name;
  slots["WEIGHTS_ONLY"] = model.raw_weight_bytes ? "weights" : "";
  slots["WEIGHTS_TOO"] = model.raw_weight_bytes ? ", weights" : "";
  slots["CONSTRUCTION"] = expand_template(construction, slots);
  slots["SET_PARAMETERS"] = is_trainer
                                ? "instance_.parameters = parameters.bytes_;"
                                : "instance_.parameters = const_cast<unsigned char*>(parameters.bytes_);";
  if (is_trainer)
    add_trainer_slots(slots, model);
  else
    add_parameters_slots(slots, model);
}

} // namespace firn::artifact
