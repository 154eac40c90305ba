// The part of the generated header that C sees: a struct, functions prefixed with the class's name, and size
// macros.
#include "compiler/artifact/header.h"

#include "compiler/artifact/header_cpus.h"
#include "compiler/artifact/header_dims.h"
#include "compiler/artifact/header_training.h"
#include "compiler/artifact/header_types.h"
#include "compiler/artifact/identifiers.h"
#include "compiler/artifact/interface.h"
#include "compiler/artifact/text_template.h"
#include "compiler/artifact/training_step.h"
#include "compiler/artifact/varying_dims.h"
#include "include/firn/abi.h"

namespace firn::artifact {
namespace {

constexpr std::string_view c_template = R"(#ifdef FIRN_MODEL_{{MACRO}}
#error "two models have C functions that start with {{PREFIX}}_: give one of them another class name"
#endif
#define FIRN_MODEL_{{MACRO}}

#include <stdbool.h>
#include <string.h>

// Room for the arena at any address: {{ARENA_BYTES}} bytes and the slack to align them.
#define {{MACRO}}_ARENA_BYTES {{ARENA_WITH_SLACK}}
{{WEIGHT_MACROS}}
{{TENSOR_MACROS}}

{{DIM_STRUCT}}
typedef struct {{PREFIX}} {
  unsigned char* arena;
  const unsigned char* weights;
  {{PARAMETERS_MEMBER}}
  const void* inputs[{{INPUT_SLOTS}}];
  void* outputs[{{OUTPUT_SLOTS}}];
  firn_status status;
  {{DIM_MEMBER}}
  {{CPU_MEMBERS}}
} {{PREFIX}};

{{RESET}}
{{PREPARE_FUNCTION}}
// Takes memory of {{MACRO}}_ARENA_BYTES, which outlives the model. Returns FIRN_STATUS_OK or why it cannot run:
// the functions that give tensors then return NULL.
{{WEIGHTS_NOTE}}
{{CPU_NOTE}}
static inline firn_status {{PREFIX}}_{{INIT}}({{PREFIX}}* model, void* memory, size_t bytes{{PARAMETERS_PARAMETER}}{{WEIGHTS_PARAMETER}}{{CPU_PARAMETER}}) {
  {{CPU_TABLE}}
  unsigned char* arena;
  memset(model, 0, sizeof *model);
  arena = firn_rt2_place_arena(memory, bytes, {{ARENA_BYTES}}, {{ARENA_ALIGNMENT}}, &model->status);
  if (model->status == FIRN_STATUS_OK) {{CHECK_CPU}}
  {{CHECK_WEIGHTS}}
  {{SET_PARAMETERS}}
  if (model->status != FIRN_STATUS_OK || !arena) return model->status;
  model->arena = arena;
  model->weights = {{WEIGHTS_VALUE}};
  {{SET_BOUNDS}}
  {{BIND_ALL}}
  return model->status;
}
{{PLAIN_INIT}}
{{DIM_FUNCTIONS}}

{{RUN_FUNCTIONS}}
{{STATE_FUNCTIONS}}

{{ACCESSORS}}
)";

constexpr std::string_view run_template = R"(// Computes the outputs: no allocation, lock or system call.
{{INDICES}}
static inline firn_status {{PREFIX}}_run_with({{PREFIX}}* model, const firn_executor* executor) {
  const firn_rt2_call call = {
      sizeof(firn_rt2_call), model->arena, model->weights, model->inputs, model->outputs, {{EXTENTS}}, executor, NULL, {{VARIANT}},
      {{PARAMETERS_VALUE}}, NULL};
  if (model->status != FIRN_STATUS_OK) return model->status;
  if (!model->arena) return FIRN_STATUS_NOT_INITIALISED;
  {{CHECK_BOUND}}
  return {{RUN}}(&call);
}
static inline firn_status {{PREFIX}}_run({{PREFIX}}* model) { return {{PREFIX}}_run_with(model, NULL); })";

// Makes the packed weights, for models whose object embeds raw ones.
constexpr std::string_view prepare_template =
    R"(// Computes the weights in memory of {{MACRO}}_WEIGHTS_SIZE bytes, aligned to FIRN_WEIGHT_ALIGNMENT; any number of
// models can share them.
static inline firn_status {{PREFIX}}_prepare(void* memory, size_t bytes) {
  const firn_rt2_call call = {
      sizeof(firn_rt2_call), (unsigned char*)memory, {{WEIGHTS}}(), NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL};
  const firn_status cpu = firn_rt2_check_cpu({{ARCHITECTURE}}, {{FEATURES}}u);
  if (cpu != FIRN_STATUS_OK || {{MACRO}}_WEIGHTS_SIZE == 0) return cpu;
  if (!memory) return FIRN_STATUS_NO_WEIGHTS;
  if (bytes != {{MACRO}}_WEIGHTS_SIZE) return FIRN_STATUS_WEIGHTS_SIZE;
  if ((uintptr_t)memory % FIRN_WEIGHT_ALIGNMENT != 0) return FIRN_STATUS_WEIGHTS_MISALIGNED;
  return {{PREPARE}}(&call);
}
)";

// A prepare function that only checks the CPU, for models whose raw weights are the packed ones.
constexpr std::string_view in_place_template =
    R"(// The weights are read where the object holds them: no memory is needed, and any that is given stays as it is.
static inline firn_status {{PREFIX}}_prepare(void* memory, size_t bytes) {
  (void)memory;
  (void)bytes;
  return firn_rt2_check_cpu({{ARCHITECTURE}}, {{FEATURES}}u);
}
)";

constexpr std::string_view check_weights_template =
    R"(if (model->status == FIRN_STATUS_OK && {{MACRO}}_WEIGHTS_SIZE > 0) {
  if (!weights) model->status = FIRN_STATUS_NO_WEIGHTS;
  if ((uintptr_t)weights % FIRN_WEIGHT_ALIGNMENT != 0) model->status = FIRN_STATUS_WEIGHTS_MISALIGNED;
})";

// After the slots that its texts use. The macros end as none of a tensor does.
void add_weight_slots(Slots& slots, const ModelDescription& model) {
  const bool is_raw = model.raw_weight_bytes.has_value(), in_place = model.raw_in_place;
  const auto macro = [&](const char* name, int64_t value) {
    return "#define " + slots["MACRO"] + "_" + name + " " + std::to_string(value);
  };
  const bool is_owned = !model.owner_class.empty();
  slots["WEIGHT_MACROS"] = is_owned ? (is_raw ? macro("WEIGHTS_SIZE", model.prepared_weight_bytes()) : "")
                           : is_raw ? macro("WEIGHTS_SIZE", model.prepared_weight_bytes()) + "\n" +
                                          macro("RAW_WEIGHTS_SIZE", *model.raw_weight_bytes)
                                    : "#define " + slots["MACRO"] + "_WEIGHTS_HASH " +
                                          hex_text(model.weights_hash.value_or(0)) + "u";
  slots["WEIGHTS_NOTE"] = in_place ? "// The weights may be NULL: the model reads the object's own."
                          : is_raw ? "// The weights are those that " + slots["PREFIX"] + "_prepare() made."
                                   : "";
  slots["WEIGHTS_PARAMETER"] = is_raw ? ", const void* weights" : "";
  slots["WEIGHTS_VALUE"] = is_raw && !in_place ? "(const unsigned char*)weights" : slots["WEIGHTS"] + "()";
  slots["PREPARE_FUNCTION"] =
      is_raw && !is_owned ? expand_template(in_place ? in_place_template : prepare_template, slots) : "";
  slots["CHECK_WEIGHTS"] = in_place ? "(void)weights;"
                           : is_raw ? expand_template(check_weights_template, slots)
                                    : "";
}

std::string tensor_macros(const std::vector<TensorDescription>& tensors, const std::string& macro) {
  std::string text;
  for (const TensorDescription& tensor : tensors) {
    const std::string name = "#define " + macro + "_" + upper_case(tensor.identifier);
    text += "\n" + name + "_BYTES " + std::to_string(tensor.byte_size());
    text += "\n" + name + "_RANK " + std::to_string(tensor.dims.size());
    if (tensor.dims.empty()) continue;
    text += "\n" + name + "_DIMS {";
    const std::vector<int64_t> bounds = tensor.dims_at_bound();
    for (size_t axis = 0; axis < bounds.size(); ++axis)
      text += (axis > 0 ? ", " : "") + std::to_string(bounds[axis]);
    text += "}";
  }
  return text;
}

std::string slot_address(const TensorDescription& tensor) {
  return tensor.arena_offset ? "firn_rt2_slot(model->arena, " + std::to_string(*tensor.arena_offset) + ")"
                             : "NULL";
}

// Strings are empty, and scalars of a training step 0, until they are set. The arena is init's own, of which
// GCC knows that it is not null: it would warn of a write to model->arena, which a call between may have
// changed.
std::string clear_text(const ModelDescription& model, const TensorDescription& tensor) {
  const bool is_number = !model.functions.empty() && tensor.dims.empty(); // a learning rate or a loss
  if ((tensor.dtype != DType::String && !is_number) || !tensor.arena_offset) return "";
  return "memset(arena + " + std::to_string(*tensor.arena_offset) + ", 0, " +
         std::to_string(tensor.byte_size()) + ");\n";
}

std::string bind_all(const ModelDescription& model, const std::string& prefix) {
  std::string text;
  for (size_t i = 0; i < model.inputs.size(); ++i)
    text += "model->inputs[" + std::to_string(i) + "] = " + slot_address(model.inputs[i]) + ";\n" +
            clear_text(model, model.inputs[i]);
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    text += "model->outputs[" + std::to_string(i) + "] = " + slot_address(model.outputs[i]) + ";\n" +
            clear_text(model, model.outputs[i]);
    for (const CountedDim& counted : model.outputs[i].counted_dims)
      text += "memset(arena + " + std::to_string(counted.arena_offset) + ", 0, sizeof(int64_t));\n";
  }
  if (!arena_states(model).empty()) text += prefix + "_reset(model);\n";
  if (!text.empty()) text.pop_back();
  return text;
}

std::string check_bound(const ModelDescription& model) {
  std::string text;
  const auto add = [&](const char* array, size_t index) {
    text += std::string(text.empty() ? "" : "\n") + "if (!model->" + array + "[" + std::to_string(index) +
            "]) return FIRN_STATUS_NOT_BOUND;";
  };
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    if (!model.inputs[i].arena_offset) add("inputs", i);
  }
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    if (!model.outputs[i].arena_offset) add("outputs", i);
  }
  return text;
}

std::string reset_function(const ModelDescription& model, const std::string& prefix) {
  if (arena_states(model).empty()) return "";
  std::string text = "// Sets the state back to its initial value; " + prefix + "_init() has done so.\n" +
                     "static inline void " + prefix + "_reset(" + prefix + "* model) {\n" +
                     "  if (!model->arena) return;\n";
  for (const TensorDescription& state : arena_states(model)) {
    const std::string target = slot_address(state) + ", ";
    const std::string size = ", " + std::to_string(state.byte_size()) + ");\n";
    text += state.initial_weights
                ? "  memcpy(" + target + "model->weights + " + std::to_string(*state.initial_weights) + size
                : "  memset(" + target + "0" + size;
  }
  return text + "}\n";
}

// A function for each extent that varies.
std::string extent_accessors(const ModelDescription& model, const TensorDescription& tensor,
                             const std::string& prefix) {
  std::string text;
  auto counted = tensor.counted_dims.begin();
  for (size_t axis = 0; axis < tensor.dims.size(); ++axis) {
    if (!tensor.varies(axis)) continue;
    text += "static inline size_t " + prefix + "_" + tensor.identifier + "_dim" + std::to_string(axis) +
            "(const " + prefix + "* model) {\n  ";
    if (tensor.is_counted(axis))
      text += "const int64_t* count = (const int64_t*)firn_rt2_slot(model->arena, " +
              std::to_string(counted++->arena_offset) + ");\n  return count ? (size_t)*count : 0;\n}\n";
    else
      text += "return (size_t)(" + extent_code(tensor.dims[axis], model, "model->extents") + ");\n}\n";
  }
  return text;
}

// A function that returns the address of a tensor, and one that binds the caller's buffer (null: back to the
// arena).
std::string accessors(const ModelDescription& model, const TensorDescription& tensor,
                      const std::string& prefix, const std::string& place, bool is_output) {
  const std::string element = header_type(tensor.dtype).c;
  const std::string& id = tensor.identifier;
  std::string text = "// " + std::string(is_output ? "Output " : "Input ") + type_text(tensor) + ".\n";
  if (is_output) {
    text += "static inline const " + element + "* " + prefix + "_" + id + "(const " + prefix +
            "* model) {\n  return (const " + element + "*)model->" + place + ";\n}\n";
  } else if (tensor.arena_offset) {
    text += "static inline " + element + "* " + prefix + "_" + id + "(" + prefix + "* model) {\n  return (" +
            element + "*)" + slot_address(tensor) + ";\n}\n";
  }
  const std::string qualifier = is_output ? "" : "const ";
  const std::string value =
      tensor.arena_offset ? "buffer ? (" + qualifier + "void*)buffer : " + slot_address(tensor) : "buffer";
  text += "static inline void " + prefix + "_bind_" + id + "(" + prefix + "* model, " + qualifier + element +
          "* buffer) {\n  model->" + place + " = " + value + ";\n}\n";
  return text + extent_accessors(model, tensor, prefix);
}

std::string state_accessor(const TensorDescription& tensor, const std::string& prefix) {
  const std::string element = header_type(tensor.dtype).c;
  return "// State " + type_text(tensor) + ".\nstatic inline " + element + "* " + prefix + "_" +
         tensor.identifier + "(" + prefix + "* model) {\n  return (" + element + "*)" + slot_address(tensor) +
         ";\n}\n";
}

std::string all_accessors(const ModelDescription& model, const std::string& prefix) {
  std::string text;
  for (size_t i = 0; i < model.inputs.size(); ++i)
    text +=
        accessors(model, model.inputs[i], prefix, "inputs[" + std::to_string(i) + "]", /*is_output=*/false);
  for (size_t i = 0; i < model.outputs.size(); ++i)
    text +=
        accessors(model, model.outputs[i], prefix, "outputs[" + std::to_string(i) + "]", /*is_output=*/true);
  for (const TensorDescription& state : arena_states(model)) text += state_accessor(state, prefix);
  if (!text.empty()) text.pop_back();
  return text;
}

} // namespace

std::string write_c_part(const ModelDescription& model) {
  const SymbolNames symbols = symbol_names(model);
  const std::string macro = upper_case(symbols.prefix);
  std::string macros = tensor_macros(model.inputs, macro) + tensor_macros(model.outputs, macro) +
                       tensor_macros(arena_states(model), macro);
  Slots slots;
  slots["PREFIX"] = symbols.prefix;
  slots["MACRO"] = macro;
  slots["RUN"] = symbols.run;
  slots["WEIGHTS"] = symbols.weights;
  slots["PREPARE"] = symbols.prepare;
  slots["ARENA_BYTES"] = std::to_string(model.arena_bytes);
  slots["ARENA_ALIGNMENT"] = std::to_string(model.arena_alignment);
  slots["ARENA_WITH_SLACK"] = std::to_string(model.arena_bytes + model.arena_alignment - 1);
  slots["INPUT_SLOTS"] = std::to_string(model.inputs.size() + 1);
  slots["OUTPUT_SLOTS"] = std::to_string(model.outputs.size() + 1);
  slots["ARCHITECTURE"] = std::to_string(model.architecture);
  slots["FEATURES"] = std::to_string(model.required_features);
  slots["TENSOR_MACROS"] = macros.empty() ? "" : macros.substr(1);
  slots["INDICES"] =
      model.indices == Indices::Clamped
          ? "// Indices out of range are clamped to the nearest element that exists, without a word."
      : model.indices == Indices::Checked ? "// FIRN_STATUS_OUT_OF_RANGE: an index is out of range."
                                          : "";
  slots["RESET"] = reset_function(model, symbols.prefix);
  slots["BIND_ALL"] = bind_all(model, symbols.prefix);
  slots["CHECK_BOUND"] = check_bound(model);
  slots["ACCESSORS"] = all_accessors(model, symbols.prefix);
  add_weight_slots(slots, model);
  add_c_dim_slots(slots, model);
  add_c_training_slots(slots, model);
  add_c_cpu_slots(slots, model);
  slots["RUN_FUNCTIONS"] =
      model.functions.empty() ? expand_template(run_template, slots) : c_functions(model, slots);
  return c_parameters(model) + expand_template(c_template, slots);
}

} // namespace firn::artifact
