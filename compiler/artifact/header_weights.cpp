// See header_weights.h.
#include "compiler/artifact/header_weights.h"

#include "compiler/artifact/interface.h"

#include <span>
#include <utility>

namespace firn::artifact {
namespace {

using Slot = std::pair<std::string_view, std::string_view>;

// What models with embedded weights say in the slots of the weights.
constexpr Slot embedded_slots[] = {
    {"CONSTRUCTION", R"(//   static {{QUALIFIED}}::Arena arena;
//   {{QUALIFIED}} model(arena);)"},
    {"WEIGHTS_COMMENT",
     "// The packed weights, immutable: those in the object, or a copy of them elsewhere."},
    {"WEIGHT_SOURCES", R"(FIRN_HIDDEN static Weights embedded() noexcept {
  return Weights({{WEIGHTS}}(), weight_bytes);
})"},
    {"EMBEDDED", "FIRN_HIDDEN static Weights embedded() noexcept { return Weights::embedded(); }"},
    {"DEFAULT_WEIGHTS", " = embedded()"},
    {"PREPARE_PROTOTYPE", ""},
    {"RAW_WEIGHT_BYTES", ""},
    {"WEIGHTS_CONVERSION", ""},
};

// What models say whose weights are prepared before the first instance.
constexpr Slot prepared_slots[] = {
    {"CONSTRUCTION",
     R"(//   alignas(FIRN_WEIGHT_ALIGNMENT) static unsigned char weights[{{QUALIFIED}}::weight_bytes];
//   static {{QUALIFIED}}::Arena arena;
//   {{QUALIFIED}} model(arena, {{QUALIFIED}}::Weights::prepare(weights));)"},
    {"WEIGHTS_COMMENT",
     "// The packed weights, immutable: prepared from the raw ones in the object, or a copy of such."},
    {"WEIGHT_SOURCES", R"(// What the object embeds.
FIRN_HIDDEN static firn::ConstByteSpan raw() noexcept {
  return firn::ConstByteSpan({{WEIGHTS}}(), raw_weight_bytes);
}
// Computes the packed weights in a buffer of weight_bytes, aligned to FIRN_WEIGHT_ALIGNMENT, which outlives
// every instance. What did not fit shows in the status of the instances.
FIRN_HIDDEN static Weights prepare(firn::ByteSpan buffer) noexcept { return prepare(raw(), buffer); }
FIRN_HIDDEN static Weights prepare(firn::ConstByteSpan raw_weights, firn::ByteSpan buffer) noexcept {
  const firn_status cpu = firn_rt1_check_cpu({{ARCHITECTURE}}, {{FEATURES}}u);
  return Weights(firn::Weights::prepare(&{{PREPARE}}, cpu, raw_weights, raw_weight_bytes, buffer,
                                        weight_bytes));
}
// Memory that holds what prepare() made, in this process or an earlier one.)"},
    {"EMBEDDED", ""},
    {"DEFAULT_WEIGHTS", ""},
    {"PREPARE_PROTOTYPE", "FIRN_HIDDEN firn_status {{PREPARE}}(const firn_rt1_call* call);"},
    {"RAW_WEIGHT_BYTES", "FIRN_HIDDEN static constexpr std::size_t raw_weight_bytes = {{RAW_BYTES}};"},
    {"WEIGHTS_CONVERSION",
     "FIRN_HIDDEN explicit Weights(const firn::Weights& weights) noexcept : firn::Weights(weights) {}"},
};

} // namespace

void add_weight_slots(Slots& slots, const ModelDescription& model) {
  slots["PREPARE"] = symbol_names(model).prepare;
  slots["RAW_BYTES"] = std::to_string(model.embedded_weight_bytes());
  for (const auto& [name, text] :
       model.raw_weight_bytes ? std::span(prepared_slots) : std::span(embedded_slots))
    slots[name] = expand_template(text, slots);
}

} // namespace firn::artifact
