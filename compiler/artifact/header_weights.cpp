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
     R"(//   static {{QUALIFIED}}::Weights::Memory weights;
//   static {{QUALIFIED}}::Arena arena;
//   {{QUALIFIED}} model(arena, {{QUALIFIED}}::Weights::prepare(weights));)"},
    {"WEIGHTS_COMMENT",
     "// The packed weights, immutable: prepared from the raw ones in the object, or a copy of such."},
    {"WEIGHT_SOURCES", R"(// What the object embeds.
FIRN_HIDDEN static firn::ConstByteSpan raw() noexcept {
  return firn::ConstByteSpan({{WEIGHTS}}(), raw_weight_bytes);
}
struct alignas(FIRN_WEIGHT_ALIGNMENT) Memory {
  unsigned char bytes[prepared_weight_bytes];
};
// Computes the packed weights in a buffer of prepared_weight_bytes, aligned to FIRN_WEIGHT_ALIGNMENT, which
// outlives every instance. What did not fit shows in the status of the instances.
FIRN_HIDDEN static Weights prepare(Memory& memory) noexcept { return prepare(firn::ByteSpan(memory.bytes)); }
FIRN_HIDDEN static Weights prepare(firn::ByteSpan buffer) noexcept { return prepare(raw(), buffer); }
FIRN_HIDDEN static Weights prepare(firn::ConstByteSpan raw_weights, firn::ByteSpan buffer) noexcept {
  const firn_status cpu = firn_rt2_check_cpu({{ARCHITECTURE}}, {{FEATURES}}u);
  return Weights(firn::Weights::prepare(&{{PREPARE}}, cpu, raw_weights, raw_weight_bytes, buffer,
                                        weight_bytes));
}
// Memory that holds what prepare() made, in this process or an earlier one.)"},
    {"EMBEDDED", ""},
    {"DEFAULT_WEIGHTS", ""},
    {"PREPARE_PROTOTYPE", "FIRN_HIDDEN firn_status {{PREPARE}}(const firn_rt2_call* call);"},
    {"RAW_WEIGHT_BYTES",
     R"(FIRN_HIDDEN static constexpr std::size_t raw_weight_bytes = {{RAW_BYTES}}, prepared_weight_bytes = weight_bytes;)"},
    {"WEIGHTS_CONVERSION",
     "FIRN_HIDDEN explicit Weights(const firn::Weights& weights) noexcept : firn::Weights(weights) {}"},
};

// What the same models say where the raw weights are the packed ones.
constexpr Slot in_place_slots[] = {
    {"CONSTRUCTION", prepared_slots[0].second},
    {"WEIGHTS_COMMENT",
     "// The packed weights, immutable: those in the object, which need no preparation, or a copy of them."},
    {"WEIGHT_SOURCES", R"(// What the object embeds.
FIRN_HIDDEN static firn::ConstByteSpan raw() noexcept {
  return firn::ConstByteSpan({{WEIGHTS}}(), raw_weight_bytes);
}
// No memory is needed, and a buffer that is given stays as it is: the raw weights, which outlive every
// instance, are read in place. What is wrong with them shows in the status of the instances.
struct Memory {};
FIRN_HIDDEN static Weights prepare(Memory&) noexcept { return bound(raw()); }
FIRN_HIDDEN static Weights prepare(firn::ByteSpan) noexcept { return bound(raw()); }
FIRN_HIDDEN static Weights prepare(firn::ConstByteSpan raw_weights, firn::ByteSpan) noexcept {
  return bound(raw_weights);
}
// Memory that holds a copy of the raw weights.)"},
    {"EMBEDDED", ""},
    {"DEFAULT_WEIGHTS", ""},
    {"PREPARE_PROTOTYPE", ""},
    {"RAW_WEIGHT_BYTES",
     "FIRN_HIDDEN static constexpr std::size_t raw_weight_bytes = weight_bytes, prepared_weight_bytes = 0;"},
    {"WEIGHTS_CONVERSION", ""},
};

std::span<const Slot> weight_slots(const ModelDescription& model) {
  if (!model.raw_weight_bytes) return embedded_slots;
  return model.raw_in_place ? std::span<const Slot>(in_place_slots) : prepared_slots;
}

} // namespace

void add_weight_slots(Slots& slots, const ModelDescription& model) {
  slots["PREPARE"] = symbol_names(model).prepare;
  slots["RAW_BYTES"] = std::to_string(model.embedded_weight_bytes());
  for (const auto& [name, text] : weight_slots(model)) slots[name] = expand_template(text, slots);
}

} // namespace firn::artifact
