// See header_cpus.h.
#include "compiler/artifact/header_cpus.h"

#include <span>
#include <utility>

namespace firn::artifact {
namespace {

using Slot = std::pair<std::string_view, std::string_view>;

constexpr std::string_view model_facts = R"({
    {{MODEL_NAME}}, {{CLASS}}::model_sha256, "{{VERSION}}", {{CPU_NAME}},
    {{INPUT_TABLE_NAME}}, input_count, {{OUTPUT_TABLE_NAME}}, output_count,
    {{STATE_TABLE_NAME}}, {{STATE_COUNT}},
    arena_bytes, arena_alignment, weight_bytes, stack_bytes, {{CLASS}}::flops{{DIM_FACTS}}})";

constexpr Slot one_cpu[] = {
    {"CPU_NOTE", ""},
    {"CPU_PARAMETER", ""},
    {"CPU_ARGUMENT", ""},
    {"CHECK_CPU", "firn_rt2_check_cpu({{ARCHITECTURE}}, {{FEATURES}}u)"},
    {"VARIANT_ARGUMENT", ""},
    {"VARIANT_MEMBER", ""},
    {"INFO", "FIRN_HIDDEN static const firn::ModelInfo& info() noexcept { return Facts::model; }"},
    {"CPU_TABLE", ""},
    {"MODEL_TABLE", "FIRN_HIDDEN static constexpr firn::ModelInfo model = {{MODEL_FACTS}};"},
};

constexpr Slot several_cpus[] = {
    {"CPU_NOTE", R"(// The object has code for {{CPU_NAMES}}: null takes the first of these whose
// features this CPU has, the name of one takes that or fails. info().cpu says which it is.)"},
    {"CPU_PARAMETER", ", const char* cpu = nullptr"},
    {"CPU_ARGUMENT", ", cpu"},
    {"CHECK_CPU", "firn_rt2_choose_cpu({{ARCHITECTURE}}, Facts::cpus, {{CPU_COUNT}}, cpu, &variant_)"},
    {"VARIANT_ARGUMENT", ", variant_"},
    {"VARIANT_MEMBER", "std::size_t variant_ = 0; // number in Facts::cpus of the CPU whose code runs"},
    {"INFO",
     R"(// The facts of the CPU whose code runs, or of the CPU with that number: they differ between CPUs.
FIRN_HIDDEN const firn::ModelInfo& info() const noexcept { return Facts::models[variant_]; }
FIRN_HIDDEN static const firn::ModelInfo& info(std::size_t cpu) noexcept { return Facts::models[cpu]; })"},
    {"CPU_TABLE", "FIRN_HIDDEN static constexpr firn_rt2_cpu cpus[] = { {{CPU_ROWS}} };"},
    {"MODEL_TABLE", "FIRN_HIDDEN static constexpr firn::ModelInfo models[] = { {{MODEL_ROWS}} };"},
};

constexpr Slot one_c_cpu[] = {
    {"CPU_MEMBERS", ""},
    {"CPU_TABLE", ""},
    {"CPU_NOTE", ""},
    {"INIT", "init"},
    {"CPU_PARAMETER", ""},
    {"CHECK_CPU", "model->status = firn_rt2_check_cpu({{ARCHITECTURE}}, {{FEATURES}}u);"},
    {"VARIANT", "0"},
    {"PLAIN_INIT", ""},
};

constexpr Slot several_c_cpus[] = {
    {"CPU_MEMBERS", R"(size_t variant;
const char* cpu; // name of the CPU whose code runs)"},
    {"CPU_TABLE", "static const firn_rt2_cpu cpus[] = { {{CPU_ROWS}} };"},
    {"CPU_NOTE", R"(//
// The object has code for {{CPU_NAMES}}: NULL takes the first of these whose
// features this CPU has, the name of one takes that or fails.)"},
    {"INIT", "init_for"},
    {"CPU_PARAMETER", ", const char* cpu"},
    {"CHECK_CPU", R"({
  model->status = firn_rt2_choose_cpu({{ARCHITECTURE}}, cpus, {{CPU_COUNT}}, cpu, &model->variant);
  model->cpu = cpus[model->variant].name;
})"},
    {"VARIANT", "model->variant"},
    {"PLAIN_INIT",
     R"(static inline firn_status {{PREFIX}}_init({{PREFIX}}* model, void* memory, size_t bytes{{PARAMETERS_PARAMETER}}{{WEIGHTS_PARAMETER}}) {
  return {{PREFIX}}_init_for(model, memory, bytes{{PARAMETERS_ARGUMENT}}{{WEIGHTS_ARGUMENT}}, NULL);
})"},
};

// "x86-64-v4, x86-64-v3 and x86-64-v2"
std::string names_text(const ModelDescription& model) {
  std::string text;
  for (size_t i = 0; i < model.cpus.size(); ++i)
    text += (i == 0 ? "" : i + 1 < model.cpus.size() ? ", " : " and ") + comment_text(model.cpus[i].name);
  return text;
}

void add_rows(Slots& slots, const ModelDescription& model) {
  slots["CPU_COUNT"] = std::to_string(model.cpus.size());
  slots["CPU_NAMES"] = names_text(model);
  std::string& rows = slots["CPU_ROWS"];
  for (const CpuDescription& cpu : model.cpus)
    rows += (rows.empty() ? "{" : ", {") + c_string(cpu.name) + ", " + hex_text(cpu.required_features) + "u}";
}

void add(Slots& slots, std::span<const Slot> texts) {
  for (const auto& [name, text] : texts) slots[name] = expand_template(text, slots);
}

} // namespace

void add_cpu_slots(Slots& slots, const ModelDescription& model) {
  add_rows(slots, model);
  slots["CPU_NAME"] = "\"" + model.cpu + "\"";
  slots["MODEL_FACTS"] = expand_template(model_facts, slots);
  std::string rows;
  for (const CpuDescription& cpu : model.cpus) {
    slots["CPU_NAME"] = c_string(cpu.name);
    rows += (rows.empty() ? "" : ", ") + expand_template(model_facts, slots);
  }
  slots["MODEL_ROWS"] = rows;
  add(slots, model.cpus.empty() ? std::span<const Slot>(one_cpu) : several_cpus);
}

void add_c_cpu_slots(Slots& slots, const ModelDescription& model) {
  add_rows(slots, model);
  slots["WEIGHTS_ARGUMENT"] = model.raw_weight_bytes ? ", weights" : "";
  add(slots, model.cpus.empty() ? std::span<const Slot>(one_c_cpu) : several_c_cpus);
}

} // namespace firn::artifact
