// Checks of fusions against the rows of fusion_kinds.def. Planning relies on them: it takes the root of a
// kind for granted.
#include "compiler/graph/verify_fusion.h"

#include "compiler/graph/fusion.h"
#include "compiler/graph/position_sum.h"

#include <algorithm>

namespace firn {
namespace {

// In the messages of checks, after "this one".
using Wrong = std::optional<std::string>;

// Every member but `root` is code per element.
Wrong check_elements(const Instruction& fusion, const Instruction* root = nullptr) {
  for (const Instruction* member : fusion_members(fusion))
    if (member != root && !is_per_element(*member)) {
      std::string name(opcode_name(member->opcode()));
      return "has " + std::string(root && member->opcode() == root->opcode() ? "a second " : "a ") + name;
    }
  return std::nullopt;
}

bool is_parameter(Value value) {
  return value.def->is(Opcode::Parameter);
}

// A fusion around one root, whose first `outside` operands the kernel reads from memory, and whose result has
// an element for each of the root's.
Wrong check_root(const Instruction& fusion, const char* name, int outside) {
  const Instruction* root = fusion_root(fusion);
  if (!root) return "has none or several " + std::string(name);
  if (Wrong wrong = check_elements(fusion, root)) return wrong;
  for (int i = 0; i < outside; ++i)
    if (!is_parameter(root->operand(i)))
      return "computes operand " + std::to_string(i) + " of the " + std::string(opcode_name(root->opcode()));
  const std::vector<Value>& results = fusion.region().results();
  if (results.size() != 1) return "returns " + std::to_string(results.size()) + " values";
  if (results[0].type().dims != root->type().dims)
    return "returns other dims than those of the " + std::string(opcode_name(root->opcode()));
  return std::nullopt;
}

Wrong check_contraction(const Instruction& fusion) {
  const Instruction* root = fusion_root(fusion);
  return check_root(fusion, "dots and convolutions", root ? root->num_operands() : 0);
}

Wrong check_attention(const Instruction& fusion) {
  if (const Attribute* factors = fusion.attributes().find("factors");
      factors && std::get<DType>(*factors) != DType::BF16)
    return "rounds factors to another type than bf16";
  int dots = 0, softmaxes = 0;
  for (const Instruction* member : fusion_members(fusion)) {
    bool is_softmax = member->is(Opcode::Composite) && member->attributes().word("name", "") == "softmax";
    dots += member->is(Opcode::Dot);
    softmaxes += is_softmax;
    if (!member->is(Opcode::Dot) && !is_softmax && !is_per_element(*member))
      return "has a " + std::string(opcode_name(member->opcode()));
  }
  if (dots != 2 || softmaxes != 1)
    return "has " + std::to_string(dots) + " dots and " + std::to_string(softmaxes) + " softmaxes";
  const Instruction* last = fusion_root(fusion);
  if (last->is(Opcode::Transpose)) last = last->operand(0).def;
  if (fusion.num_results() != 1 || !last->is(Opcode::Dot)) return "returns something else";
  return std::nullopt;
}

Wrong check_movement(const Instruction& fusion) {
  for (const Instruction* member : fusion_members(fusion))
    if (!member->is(Opcode::Slice) && !member->is(Opcode::Reshape) && !member->is(Opcode::Transpose))
      return "has a " + std::string(opcode_name(member->opcode()));
  if (fusion.num_operands() != 1) return "has " + std::to_string(fusion.num_operands()) + " operands";
  if (fusion.num_results() != 1 || !fusion_root(fusion)->is(Opcode::Transpose)) return "returns no transpose";
  return std::nullopt;
}

Wrong check_chain(const Instruction& fusion) {
  const Instruction* before = nullptr;
  bool has_depthwise = false;
  std::vector<Instruction*> members = fusion_members(fusion);
  for (const Instruction* member : members) {
    const Instruction* convolution = convolution_of(*member);
    if (!convolution) return "has a " + std::string(opcode_name(member->opcode())) + " without convolution";
    has_depthwise |= convolution->attributes().integer("groups", 1) > 1;
    Value input = convolution->operand(0);
    if (convolution != member) input = outside_of(*member, input);
    if (before && input.def != before) return "has a convolution that does not read the one before";
    before = member;
  }
  if (members.size() < 2 || members.size() > 3) return "has " + std::to_string(members.size()) + " members";
  if (!has_depthwise) return "has no depthwise convolution";
  const std::vector<Value>& results = fusion.region().results();
  if (results.size() != 1 || results[0].def != before) return "returns something else";
  return std::nullopt;
}

Wrong check_line_buffer(const Instruction& fusion) {
  std::vector<Instruction*> members = fusion_members(fusion);
  if (members.size() < 2) return "has " + std::to_string(members.size()) + " members";
  const Instruction* last = members.back();
  const Instruction* convolution = convolution_of(*last);
  if (!convolution) return "ends with a " + std::string(opcode_name(last->opcode())) + " without convolution";
  members.pop_back();
  for (const Instruction* member : members)
    if (!is_per_element(*member) && !(member == members[0] && convolution_of(*member)))
      return "has a " + std::string(opcode_name(member->opcode()));
  Value input = convolution->operand(0);
  if (convolution != last) input = outside_of(*last, input);
  auto is_made = [&](Value value) {
    return value && std::find(members.begin(), members.end(), value.def) != members.end();
  };
  if (!is_made(input)) return "has a convolution that does not read what is made";
  for (Value operand : last->operands())
    if (is_made(operand) && !(operand == input)) return "reads more than the map of what is made";
  const std::vector<Value>& results = fusion.region().results();
  if (results.size() != 1 || results[0].def != last) return "returns something else";
  return std::nullopt;
}

Wrong check_spatial_sum(const Instruction& fusion) {
  std::vector<Instruction*> members = fusion_members(fusion);
  if (members.size() != 2) return "has " + std::to_string(members.size()) + " members";
  if (!convolution_of(*members[0]) && !has_fusion_kind(*members[0], FusionKind::DepthwiseChain))
    return "begins with a " + std::string(opcode_name(members[0]->opcode())) + " without convolution";
  if (!find_position_sum(*members[1], members[0]->result())) return "does not sum that over all positions";
  return std::nullopt;
}

Wrong check_held(const Instruction& fusion, FusionKind kind) {
  switch (kind) {
  case FusionKind::Attention: return check_attention(fusion);
  case FusionKind::Contraction: return check_contraction(fusion);
  case FusionKind::DepthwiseChain: return check_chain(fusion);
  case FusionKind::Elementwise: return check_elements(fusion);
  case FusionKind::FusedSpatialSum: return check_spatial_sum(fusion);
  case FusionKind::LineBuffer: return check_line_buffer(fusion);
  case FusionKind::Movement: return check_movement(fusion);
  case FusionKind::Reduce: return check_root(fusion, "reduces", 0);
  case FusionKind::Window: return check_root(fusion, "reduce_windows", 1);
  }
  return std::nullopt;
}

} // namespace

std::optional<std::string> check_fusion(const Instruction& fusion) {
  std::optional<FusionKind> kind = fusion_kind(fusion);
  if (!kind)
    return "fusion of the unknown kind '" + fusion.attributes().word("kind", "") + "', wants one of " +
           fusion_kind_words();
  Wrong wrong = check_held(fusion, *kind);
  if (!wrong) return std::nullopt;
  return "fusion of kind " + std::string(fusion_kind_word(*kind)) + " wants " +
         std::string(fusion_kind_holds(*kind)) + "; this one " + *wrong;
}

} // namespace firn
