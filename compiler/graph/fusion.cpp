// Kinds and roots of fusions.
#include "compiler/graph/fusion.h"

#include "compiler/graph/blocked_dot.h"

#include <algorithm>

namespace firn {
namespace {

// The one instruction of the region that `is_root` names; null if there are none or several.
template <class IsRoot> Instruction* sole(const Instruction& fusion, IsRoot is_root) {
  Instruction* found = nullptr;
  for (const auto& inner : fusion.region().instructions()) {
    if (!is_root(*inner)) continue;
    if (found) return nullptr;
    found = inner.get();
  }
  return found;
}

// The roots that rows name.
Instruction* no_root(const Instruction&) {
  return nullptr;
}
Instruction* result_root(const Instruction& fusion) {
  return fusion.region().results()[0].def;
}
Instruction* contraction_root(const Instruction& fusion) {
  return sole(fusion, sums_products);
}
Instruction* reduce_root(const Instruction& fusion) {
  return sole(fusion, [](const Instruction& inner) { return inner.is(Opcode::Reduce); });
}
Instruction* window_root(const Instruction& fusion) {
  return sole(fusion, [](const Instruction& inner) { return inner.is(Opcode::ReduceWindow); });
}

struct KindRow {
  std::string_view word;
  Instruction* (*root)(const Instruction& fusion);
  std::string_view holds;
};
constexpr KindRow kRows[] = {
#define FIRN_FUSION_KIND(enumerator, word, root, holds) {word, root, holds},
#include "compiler/graph/fusion_kinds.def"
};

} // namespace

std::string_view fusion_kind_word(FusionKind kind) {
  return kRows[static_cast<size_t>(kind)].word;
}

std::string_view fusion_kind_holds(FusionKind kind) {
  return kRows[static_cast<size_t>(kind)].holds;
}

std::optional<FusionKind> parse_fusion_kind(std::string_view word) {
  for (size_t i = 0; i < std::size(kRows); ++i)
    if (kRows[i].word == word) return static_cast<FusionKind>(i);
  return std::nullopt;
}

std::string fusion_kind_words() {
  std::string words;
  for (const KindRow& row : kRows) words += (words.empty() ? "" : ", ") + std::string(row.word);
  return words;
}

std::optional<FusionKind> fusion_kind(const Instruction& instruction) {
  if (!instruction.is(Opcode::Fusion)) return std::nullopt;
  return parse_fusion_kind(instruction.attributes().word("kind", ""));
}

Instruction* fusion_root(const Instruction& fusion) {
  std::optional<FusionKind> kind = fusion_kind(fusion);
  return kind ? kRows[static_cast<size_t>(*kind)].root(fusion) : nullptr;
}

bool sums_products(const Instruction& instruction) {
  return is_contraction(instruction.opcode()) || is_blocked_dot(instruction);
}

const Instruction* contraction_of(const Instruction& instruction) {
  if (sums_products(instruction)) return &instruction;
  return has_fusion_kind(instruction, FusionKind::Contraction) ? fusion_root(instruction) : nullptr;
}

const Instruction* convolution_of(const Instruction& instruction) {
  const Instruction* contraction = contraction_of(instruction);
  return contraction && contraction->is(Opcode::Convolution) ? contraction : nullptr;
}

std::vector<Instruction*> fusion_members(const Instruction& fusion) {
  std::vector<Instruction*> members;
  for (const auto& inner : fusion.region().instructions())
    if (!inner->is(Opcode::Constant) && !inner->is(Opcode::Parameter)) members.push_back(inner.get());
  return members;
}

Value outside_of(const Instruction& owner, Value inside) {
  const std::vector<Instruction*>& parameters = owner.region().parameters();
  auto found = std::find(parameters.begin(), parameters.end(), inside.def);
  return found == parameters.end() ? Value{} : owner.operand(static_cast<int>(found - parameters.begin()));
}

bool is_per_element(const Instruction& instruction) {
  if (is_elementwise(instruction.opcode())) return true;
  switch (instruction.opcode()) {
  case Opcode::Parameter:
  case Opcode::Constant:
  case Opcode::Iota:
  case Opcode::BroadcastInDim:
  case Opcode::Concatenate:
  case Opcode::Copy:
  case Opcode::DynamicSlice:
  case Opcode::Gather:
  case Opcode::GatherElements:
  case Opcode::GatherND:
  case Opcode::Pad:
  case Opcode::Reshape:
  case Opcode::Reverse:
  case Opcode::Slice:
  case Opcode::SymbolicSlice:
  case Opcode::Transpose:
  case Opcode::DimSize: return true;
  case Opcode::BitcastConvert:
    return bit_width(instruction.type().dtype) == bit_width(instruction.operand(0).dtype());
  default: return false;
  }
}

} // namespace firn
