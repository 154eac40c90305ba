// Fusions: what kind each is of, and the root that a kernel of that kind is built around. This is the one
// place that looks for roots; passes, planning and lowering ask here.
#pragma once

#include "compiler/graph/module.h"

#include <optional>
#include <string_view>
#include <vector>

namespace firn {

enum class FusionKind : uint8_t {
#define FIRN_FUSION_KIND(enumerator, word, root, holds) enumerator,
#include "compiler/graph/fusion_kinds.def"
};

std::string_view fusion_kind_word(FusionKind kind);  // the word in {kind = word}
std::string_view fusion_kind_holds(FusionKind kind); // the content of its region, in words
std::optional<FusionKind> parse_fusion_kind(std::string_view word);
std::string fusion_kind_words(); // all of them: "attention, contraction, ..."

// The kind of a fusion; nothing for other ops, and before the verifier has seen it for unknown words.
std::optional<FusionKind> fusion_kind(const Instruction& instruction);
inline bool has_fusion_kind(const Instruction& instruction, FusionKind kind) {
  return fusion_kind(instruction) == kind;
}

// The instruction that the fusion's kernel is built around: the dot, blocked dot or convolution of a
// contraction, the reduce_window of a window, the reduce of a reduce, the last instruction of attention and
// of movements. Null for kinds without a root, and where the region does not hold the one that its kind
// promises.
Instruction* fusion_root(const Instruction& fusion);
// Whether a contraction can be built around the instruction: a dot, blocked dot (blocked_dot.h) or
// convolution.
bool sums_products(const Instruction& instruction);
// The dot, blocked dot or convolution that the instruction is, or has as the root of a contraction fusion.
// Null for others.
const Instruction* contraction_of(const Instruction& instruction);
// The convolution that the instruction is, or has as the root of a contraction fusion. Null for others.
const Instruction* convolution_of(const Instruction& instruction);

// The instructions of a fusion's region but for its parameters and constants, in program order.
std::vector<Instruction*> fusion_members(const Instruction& fusion);
// The operand of a fusion or composite that a value within stands for; none if it is computed inside.
Value outside_of(const Instruction& owner, Value inside);

// Whether code for one result element is all it takes: elementwise ops, and movements whose every result
// element is an operand's element that its index finds. Parameters and constants count.
bool is_per_element(const Instruction& instruction);

} // namespace firn
