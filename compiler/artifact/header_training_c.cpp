// Parameters and functions of training steps in the C part of a generated header.
#include "compiler/artifact/header_training.h"

#include "compiler/artifact/header_types.h"
#include "compiler/artifact/identifiers.h"
#include "compiler/artifact/interface.h"
#include "compiler/artifact/training_step.h"

#include <algorithm>

namespace firn::artifact {
namespace {

constexpr std::string_view parameters_template =
    R"(// Room for the parameters at any address: {{PARAMETER_BYTES}} bytes and the slack to align them; and bytes of what
// {{NAME}}_save() writes.
#define {{MACRO_NAME}}_BYTES {{BYTES_WITH_SLACK}}
#define {{MACRO_NAME}}_SAVED_BYTES {{SAVED_BYTES}}

// The tensors that training changes, in the layout of the model. They outlive every model and trainer that they are
// given to, and are shared by all of these.
typedef struct {{NAME}} {
  unsigned char* block;
} {{NAME}};

// Takes memory of {{MACRO_NAME}}_BYTES, which keeps what it holds.
static inline firn_status {{NAME}}_init({{NAME}}* parameters, void* memory, size_t bytes) {
  firn_status status;
  parameters->block = firn_rt2_place_arena(memory, bytes, {{PARAMETER_BYTES}}, {{ALIGNMENT}}, &status);
  return status;
}
// Sets all tensors to their values in the object.
static inline void {{NAME}}_reset({{NAME}}* parameters{{RESET_PARAMETER}}) {
  {{RESET_WEIGHTS}}
  if (!parameters->block) return;
  {{RESET_STATEMENTS}}
}
static inline const firn_rt2_saved_tensor* {{NAME}}_table(void) {
  static const firn_rt2_saved_tensor table[] = {{{SAVED_ROWS}}};
  return table;
}
// Writes the tensors as a file of safetensors (firn/saved_tensors.h) to the first {{MACRO_NAME}}_SAVED_BYTES.
static inline firn_status {{NAME}}_save(const {{NAME}}* parameters, void* to, size_t bytes) {
  if (!parameters->block) return FIRN_STATUS_NOT_INITIALISED;
  return firn_rt2_save_tensors({{NAME}}_table(), {{TENSOR_COUNT}}, parameters->block, to, bytes);
}
// Reads such a file, all of it or nothing: FIRN_STATUS_TENSORS_UNFIT if names, types or dims are others.
static inline firn_status {{NAME}}_load({{NAME}}* parameters, const void* from, size_t bytes) {
  if (!parameters->block) return FIRN_STATUS_NOT_INITIALISED;
  return firn_rt2_load_tensors({{NAME}}_table(), {{TENSOR_COUNT}}, parameters->block, from, bytes);
}
{{TENSORS}}
)";

constexpr std::string_view function_template = R"({{FUNCTION_COMMENT}}
static inline firn_status {{PREFIX}}_{{FUNCTION}}_with({{PREFIX}}* model, const firn_executor* executor) {
  const void* const inputs[] = { {{FUNCTION_INPUTS}} };
  void* const outputs[] = { {{FUNCTION_OUTPUTS}} };
  {{FUNCTION_EXTENTS}}
  const firn_rt2_call call = {
      sizeof(firn_rt2_call), model->arena, model->weights, inputs, outputs, {{EXTENTS_VALUE}}, executor, NULL, {{VARIANT}},
      model->parameters, NULL};
  if (model->status != FIRN_STATUS_OK) return model->status;
  if (!model->arena) return FIRN_STATUS_NOT_INITIALISED;
  {{CHECK_FUNCTION}}
  {{RUN_GIVEN}}
}
static inline firn_status {{PREFIX}}_{{FUNCTION}}({{PREFIX}}* model) { return {{PREFIX}}_{{FUNCTION}}_with(model, NULL); })";

constexpr std::string_view state_template =
    R"(static inline const firn_rt2_saved_tensor* {{PREFIX}}_saved_table(void) {
  static const firn_rt2_saved_tensor table[] = {{{SAVED_ROWS}}};
  return table;
}
// Writes the states, which a training that is to go on elsewhere needs beside the parameters, as a file of safetensors
// (firn/saved_tensors.h) to the first {{MACRO}}_SAVED_STATE_BYTES of the memory.
#define {{MACRO}}_SAVED_STATE_BYTES {{SAVED_BYTES}}
static inline firn_status {{PREFIX}}_save_state(const {{PREFIX}}* model, void* to, size_t bytes) {
  if (!model->arena) return model->status != FIRN_STATUS_OK ? model->status : FIRN_STATUS_NOT_INITIALISED;
  return firn_rt2_save_tensors({{PREFIX}}_saved_table(), {{TENSOR_COUNT}}, model->arena, to, bytes);
}
// Reads such a file, all of it or nothing: FIRN_STATUS_TENSORS_UNFIT if names, types or dims are others.
static inline firn_status {{PREFIX}}_load_state({{PREFIX}}* model, const void* from, size_t bytes) {
  if (!model->arena) return model->status != FIRN_STATUS_OK ? model->status : FIRN_STATUS_NOT_INITIALISED;
  return firn_rt2_load_tensors({{PREFIX}}_saved_table(), {{TENSOR_COUNT}}, model->arena, from, bytes);
})";

std::string tensor_functions(const ModelDescription& model, const std::string& name) {
  std::string text;
  for (const TensorDescription& tensor : parameter_tensors(model)) {
    const std::string element = header_type(tensor.dtype).c;
    text += (text.empty() ? "// " : "\n// ") + type_text(tensor) + ".\nstatic inline " + element + "* " +
            name + "_" + tensor.identifier + "(const " + name + "* parameters) {\n  return (" + element +
            "*)firn_rt2_slot(parameters->block, " + std::to_string(*tensor.arena_offset) + ");\n}";
  }
  return text;
}

// Tensors of a function that have no memory before it is bound.
std::string check_of(const ModelDescription& trainer, const TrainingFunction& function) {
  std::string text;
  const auto add = [&](const std::vector<TensorDescription>& tensors, const std::vector<size_t>& numbers,
                       const std::string& array) {
    for (size_t number : numbers)
      if (!tensors[number].arena_offset)
        text += std::string(text.empty() ? "" : "\n") + "if (!model->" + array + "[" +
                std::to_string(number) + "]) return FIRN_STATUS_NOT_BOUND;";
  };
  add(trainer.inputs, function.inputs, "inputs");
  add(trainer.outputs, function.outputs, "outputs");
  return text;
}

std::string run_of(const ModelDescription& trainer, const TrainingFunction& function) {
  if (!function.loss) return "return " + function.run_symbol + "(&call);";
  const std::string loss = std::to_string(*function.loss);
  return "{\n  const firn_status done = " + function.run_symbol +
         "(&call);\n  if (done == FIRN_STATUS_OK && !firn_rt2_is_finite(model->outputs[" + loss + "], " +
         std::to_string(trainer.outputs[*function.loss].byte_size()) +
         ")) return FIRN_STATUS_NOT_FINITE;\n  return done;\n}";
}

} // namespace

std::string c_parameters(const ModelDescription& model) {
  if (model.parameter_bytes == 0 || !model.functions.empty()) return "";
  const std::vector<TensorDescription> tensors = parameter_tensors(model);
  Slots slots;
  slots["NAME"] = symbol_prefix(model.class_name + "::Parameters");
  slots["MACRO_NAME"] = upper_case(slots["NAME"]);
  slots["PARAMETER_BYTES"] = std::to_string(model.parameter_bytes);
  slots["ALIGNMENT"] = std::to_string(model.arena_alignment);
  slots["BYTES_WITH_SLACK"] = std::to_string(model.parameter_bytes + model.arena_alignment - 1);
  const bool is_raw = model.raw_weight_bytes && !model.raw_in_place;
  slots["RESET_PARAMETER"] = is_raw ? ", const void* weights" : "";
  const std::string packed = is_raw ? "(const unsigned char*)weights" : symbol_names(model).weights + "()";
  slots["RESET_WEIGHTS"] = has_first_values(tensors) ? "const unsigned char* const packed = " + packed + ";"
                           : is_raw                  ? "(void)weights;"
                                                     : "";
  slots["RESET_STATEMENTS"] = reset_statements(tensors, "parameters->block", "packed", "");
  slots["TENSORS"] = tensor_functions(model, slots["NAME"]);
  add_saved_slots(slots, tensors);
  return "#include <string.h>\n\n#include \"firn/saved_tensors.h\"\n\n" +
         expand_template(parameters_template, slots) + "\n";
}

std::string c_functions(const ModelDescription& trainer, Slots slots) {
  std::string text;
  for (const TrainingFunction& function : trainer.functions) {
    add_function_slots(slots, trainer, function, "model->", "NULL");
    slots["CHECK_FUNCTION"] = check_of(trainer, function);
    slots["RUN_GIVEN"] = run_of(trainer, function);
    text += (text.empty() ? "" : "\n") + expand_template(function_template, slots);
  }
  return text;
}

void add_c_training_slots(Slots& slots, const ModelDescription& model) {
  for (const char* name : {"PARAMETERS_MEMBER", "PARAMETERS_PARAMETER", "PARAMETERS_ARGUMENT",
                           "SET_PARAMETERS", "STATE_FUNCTIONS"})
    slots[name] = "";
  slots["PARAMETERS_VALUE"] = "NULL";
  if (model.parameter_bytes == 0) return;
  const bool is_trainer = !model.functions.empty();
  const std::string owner = is_trainer ? model.owner_class : model.class_name;
  slots["PARAMETERS_MEMBER"] = "unsigned char* parameters;";
  slots["PARAMETERS_VALUE"] = "model->parameters";
  slots["PARAMETERS_PARAMETER"] = ", const " + symbol_prefix(owner + "::Parameters") + "* parameters";
  slots["PARAMETERS_ARGUMENT"] = ", parameters";
  slots["SET_PARAMETERS"] = "if (model->status == FIRN_STATUS_OK && !parameters->block) model->status = "
                            "FIRN_STATUS_NOT_INITIALISED;\nmodel->parameters = parameters->block;";
  if (!is_trainer) return;
  add_saved_slots(slots, arena_states(model));
  slots["STATE_FUNCTIONS"] = expand_template(state_template, slots);
}

} // namespace firn::artifact
