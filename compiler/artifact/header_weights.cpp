// See header_weights.h.
#include "compiler/artifact/header_weights.h"

#include "compiler/artifact/interface.h"
#include "compiler/artifact/training_step.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace firn::artifact {
namespace {

using Slot = std::pair<std::string_view, std::string_view>;

constexpr std::string_view bound_template =
    R"(FIRN_HIDDEN static Weights bound(firn::ConstByteSpan packed) noexcept {
  return Weights(packed.data(), packed.size());
})";

// Members of models that a program gives raw weights.
constexpr std::string_view raw_conversion =
    R"(FIRN_HIDDEN explicit Weights(const firn::Weights& weights) noexcept : firn::Weights(weights) {}
// Whether raw weights are as the object's own where its code depends on their values: {{USED_TENSORS}}.
FIRN_HIDDEN static firn_status fits(const unsigned char* raw_weights) noexcept {
  {{CHECK_RAW}}
})";

// The slots of models whose object embeds the packed weights.
constexpr Slot embedded_slots[] = {
    {"CONSTRUCTION", R"(//   static {{QUALIFIED}}::Arena arena;
//   {{QUALIFIED}} model(arena);)"},
    {"WEIGHTS_COMMENT",
     "// The packed weights, immutable: those in the object, or a copy of them elsewhere."},
    {"WEIGHT_SOURCES", R"(FIRN_HIDDEN static Weights embedded() noexcept {
  return Weights({{WEIGHTS}}(), weight_bytes);
}
{{BOUND}})"},
    {"EMBEDDED", "FIRN_HIDDEN static Weights embedded() noexcept { return Weights::embedded(); }"},
    {"DEFAULT_WEIGHTS", " = embedded()"},
    {"PREPARE_PROTOTYPE", ""},
    {"RAW_WEIGHT_BYTES",
     R"(// firn::hash_weights() of the weights in the object, and of every copy of them.
FIRN_HIDDEN static constexpr std::uint64_t weights_hash = {{WEIGHTS_HASH}}u;)"},
    {"WEIGHTS_CONVERSION", ""},
};

// The slots of models whose weights are prepared before the first instance.
constexpr Slot prepared_slots[] = {
    {"CONSTRUCTION",
     R"(//   static {{QUALIFIED}}::Weights::Memory weights;
//   static {{QUALIFIED}}::Arena arena;
//   {{QUALIFIED}} model(arena, {{QUALIFIED}}::Weights::prepare(weights));)"},
    {"WEIGHTS_COMMENT",
     "// The packed weights, immutable: prepared from the raw ones in the object, or a copy of such."},
    {"WEIGHT_SOURCES", R"(// The raw weights that the object embeds.
FIRN_HIDDEN static firn::ConstByteSpan raw() noexcept {
  return firn::ConstByteSpan({{WEIGHTS}}(), raw_weight_bytes);
}
struct alignas(FIRN_WEIGHT_ALIGNMENT) Memory {
  unsigned char bytes[prepared_weight_bytes];
};
// Computes the packed weights in a buffer of prepared_weight_bytes, aligned to FIRN_WEIGHT_ALIGNMENT, which
// outlives every instance. What did not fit shows in the status of the instances. Other weights than the
// object's own have the layout of raw(), which the manifest tells.
FIRN_HIDDEN static Weights prepare(Memory& memory) noexcept { return prepare(firn::ByteSpan(memory.bytes)); }
FIRN_HIDDEN static Weights prepare(firn::ByteSpan buffer) noexcept { return prepare(raw(), buffer); }
FIRN_HIDDEN static Weights prepare(firn::ConstByteSpan raw_weights, firn::ByteSpan buffer) noexcept {
  const Preparation model = {&{{PREPARE}}, &fits, firn_rt2_check_cpu({{ARCHITECTURE}}, {{FEATURES}}u),
                             raw_weight_bytes, prepared_weight_bytes, weight_bytes};
  return Weights(firn::Weights::prepare(model, raw_weights, buffer));
}
// Memory that holds what prepare() made, in this process or an earlier one.
FIRN_HIDDEN static Weights bound(firn::ConstByteSpan packed) noexcept {
  return Weights(firn::Weights::prepared(packed, prepared_weight_bytes, weight_bytes));
})"},
    {"EMBEDDED", ""},
    {"DEFAULT_WEIGHTS", ""},
    {"PREPARE_PROTOTYPE", "FIRN_HIDDEN firn_status {{PREPARE}}(const firn_rt2_call* call);"},
    {"RAW_WEIGHT_BYTES",
     R"(FIRN_HIDDEN static constexpr std::size_t raw_weight_bytes = {{RAW_BYTES}}, prepared_weight_bytes = {{PREPARED_BYTES}};)"},
    {"WEIGHTS_CONVERSION", raw_conversion},
};

// The slots of models whose raw weights are the packed ones, so that there is nothing to prepare.
constexpr Slot in_place_slots[] = {
    {"CONSTRUCTION", prepared_slots[0].second},
    {"WEIGHTS_COMMENT",
     "// The packed weights, immutable: those in the object, which need no preparation, or a copy of them."},
    {"WEIGHT_SOURCES", R"(// The raw weights that the object embeds.
FIRN_HIDDEN static firn::ConstByteSpan raw() noexcept {
  return firn::ConstByteSpan({{WEIGHTS}}(), raw_weight_bytes);
}
// No memory is needed, and a buffer that is given stays as it is: the raw weights, which outlive every
// instance, are read in place. What is wrong with them shows in the status of the instances.
struct Memory {};
FIRN_HIDDEN static Weights prepare(Memory&) noexcept { return bound(raw()); }
FIRN_HIDDEN static Weights prepare(firn::ByteSpan) noexcept { return bound(raw()); }
FIRN_HIDDEN static Weights prepare(firn::ConstByteSpan raw_weights, firn::ByteSpan) noexcept {
  return Weights(firn::Weights::in_place(&fits, raw_weights, weight_bytes));
}
// Memory that holds a copy of the raw weights.
{{BOUND}})"},
    {"EMBEDDED", ""},
    {"DEFAULT_WEIGHTS", ""},
    {"PREPARE_PROTOTYPE", ""},
    {"RAW_WEIGHT_BYTES",
     "FIRN_HIDDEN static constexpr std::size_t raw_weight_bytes = weight_bytes, prepared_weight_bytes = 0;"},
    {"WEIGHTS_CONVERSION", raw_conversion},
};

// The slots of further entry functions, which read the weights of the model's class.
constexpr Slot owned_slots[] = {
    {"CONSTRUCTION", R"(//   static {{OWNER}}::Arena arena;
//   {{QUALIFIED}} model(arena);)"},
    {"EMBEDDED", "FIRN_HIDDEN static Weights embedded() noexcept { return Weights::embedded(); }"},
    {"DEFAULT_WEIGHTS", " = embedded()"},
    {"PREPARE_PROTOTYPE", ""},
    {"RAW_WEIGHT_BYTES", ""},
};
constexpr Slot owned_raw_slots[] = {
    {"CONSTRUCTION", R"(//   static {{OWNER}}::Weights::Memory weights;
//   static {{OWNER}}::Arena arena;
//   {{QUALIFIED}} model(arena, {{OWNER}}::Weights::prepare(weights));)"},
    {"EMBEDDED", ""},
    {"DEFAULT_WEIGHTS", ""},
    {"PREPARE_PROTOTYPE", ""},
    {"RAW_WEIGHT_BYTES", ""},
};

constexpr std::string_view weights_class_template = R"({{WEIGHTS_COMMENT}}
class Weights : public firn::Weights {
public:
  {{WEIGHT_SOURCES}}

private:
  {{FRIENDS}}
  FIRN_HIDDEN Weights(const unsigned char* data, std::size_t bytes) noexcept : firn::Weights(data, bytes) {}
  {{WEIGHTS_CONVERSION}}
};)";

// The classes that check weights: those of all entry functions.
std::string friends(const ModelDescription& model) {
  auto declaration = [](const ModelDescription& entry) {
    const size_t at = entry.class_name.rfind("::");
    return "friend class " + entry.class_name.substr(at == std::string::npos ? 0 : at + 2) + ";";
  };
  std::string text = declaration(model);
  if (has_trainer(model)) return text + "\nfriend class Trainer;";
  for (const ModelDescription& entry : model.entries) text += "\n" + declaration(entry);
  return text;
}

struct Range {
  int64_t offset = 0, end = 0;
};

// The bytes that prepare() wants as they are, those of neighbouring tensors in one range.
std::vector<Range> used_ranges(const ModelDescription& model) {
  std::vector<Range> ranges;
  for (const RawWeights& tensor : model.raw_weights) {
    if (tensor.may_change || tensor.bytes == 0) continue;
    constexpr int64_t gap = 64; // zeros up to the alignment
    if (!ranges.empty() && tensor.offset - ranges.back().end < gap)
      ranges.back().end = tensor.offset + tensor.bytes;
    else
      ranges.push_back({tensor.offset, tensor.offset + tensor.bytes});
  }
  return ranges;
}

std::string used_tensors(const ModelDescription& model) {
  const auto used = std::count_if(model.raw_weights.begin(), model.raw_weights.end(),
                                  [](const RawWeights& tensor) { return !tensor.may_change; });
  if (used == 0) return "nowhere";
  return std::to_string(used) + " of " + std::to_string(model.raw_weights.size()) + " tensors";
}

std::string check_of_raw_weights(const ModelDescription& model, const std::string& own) {
  std::string list;
  const std::vector<Range> ranges = used_ranges(model);
  for (const Range& range : ranges)
    list += (list.empty() ? "{" : ", {") + std::to_string(range.offset) + ", " +
            std::to_string(range.end - range.offset) + "}";
  if (list.empty()) return "(void)raw_weights;\nreturn FIRN_STATUS_OK;";
  return "static constexpr firn_rt2_range ranges[] = {" + list +
         "};\nreturn firn_rt2_check_weights(raw_weights, " + own + "(), ranges, " +
         std::to_string(ranges.size()) + ");";
}

std::span<const Slot> weight_slots(const ModelDescription& model) {
  if (!model.owner_class.empty()) return model.raw_weight_bytes ? owned_raw_slots : owned_slots;
  if (!model.raw_weight_bytes) return embedded_slots;
  return model.raw_in_place ? std::span<const Slot>(in_place_slots) : prepared_slots;
}

} // namespace

void add_weight_slots(Slots& slots, const ModelDescription& model) {
  slots["PREPARE"] = symbol_names(model).prepare;
  slots["RAW_BYTES"] = std::to_string(model.embedded_weight_bytes());
  slots["PREPARED_BYTES"] = std::to_string(model.prepared_weight_bytes());
  slots["WEIGHTS_HASH"] = hex_text(model.weights_hash.value_or(0));
  slots["BOUND"] = bound_template;
  slots["USED_TENSORS"] = used_tensors(model);
  slots["CHECK_RAW"] = check_of_raw_weights(model, slots["WEIGHTS"]);
  slots["OWNER"] = model.owner_class;
  slots["FRIENDS"] = friends(model);
  for (const auto& [name, text] : weight_slots(model)) slots[name] = expand_template(text, slots);
  slots["WEIGHTS_CLASS"] =
      model.owner_class.empty()
          ? expand_template(weights_class_template, slots)
          : "// The weights of the model, which all entry functions read.\nusing Weights = " +
                model.owner_class + "::Weights;";
}

} // namespace firn::artifact
