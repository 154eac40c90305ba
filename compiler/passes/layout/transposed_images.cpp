// Moves reshapes past transposes, to the side where images are rows of tokens.
#include "compiler/passes/layout/transposed_images.h"

#include "compiler/graph/builder.h"
#include "compiler/passes/match.h"
#include "compiler/passes/reshape_groups.h"
#include "compiler/passes/rewrite.h"

#include <algorithm>

namespace firn {
namespace {

// The group that holds dim `dim` of the operand (or of the result).
template <class Begin, class End>
const ReshapeGroup& group_of(const std::vector<ReshapeGroup>& groups, int dim, Begin begin, End end) {
  return *std::find_if(groups.begin(), groups.end(),
                       [&](const ReshapeGroup& group) { return dim >= group.*begin && dim < group.*end; });
}

// reshape(transpose(x)) as transpose(reshape(x)) where every transposed dim is divided or kept.
bool divide_before_transpose(Instruction& reshape) {
  Instruction& transpose = *reshape.operand(0).def;
  std::vector<ReshapeGroup> groups = reshape_groups(transpose.type().dims, reshape.type().dims);
  for (const ReshapeGroup& group : groups)
    if (group.from_end - group.from_begin != 1) return false;
  if (groups.empty()) return false;
  const std::vector<int64_t>& permutation = transpose.attributes().ints("permutation");
  std::vector<int64_t> inverse = inverse_permutation(permutation);
  std::vector<Dim> dims;
  std::vector<int64_t> order(reshape.type().dims.size());
  for (int64_t transposed : inverse) {
    const ReshapeGroup& group =
        group_of(groups, static_cast<int>(transposed), &ReshapeGroup::from_begin, &ReshapeGroup::from_end);
    for (int d = group.to_begin; d < group.to_end; ++d) {
      order[static_cast<size_t>(d)] = static_cast<int64_t>(dims.size());
      dims.push_back(reshape.type().dims[static_cast<size_t>(d)]);
    }
  }
  GraphBuilder builder(*reshape.parent(), &reshape);
  replace_instruction(reshape, builder.transpose(builder.reshape(transpose.operand(0), dims), order));
  return true;
}

// transpose(reshape(x)) as reshape(transpose(x)) where every dim of the reshape joins dims or keeps one.
bool join_after_transpose(Instruction& transpose) {
  Instruction& reshape = *transpose.operand(0).def;
  std::vector<ReshapeGroup> groups = reshape_groups(reshape.operand(0).type().dims, reshape.type().dims);
  for (const ReshapeGroup& group : groups)
    if (group.to_end - group.to_begin != 1) return false;
  if (groups.empty()) return false;
  std::vector<int64_t> order;
  for (int64_t dim : transpose.attributes().ints("permutation")) {
    const ReshapeGroup& group =
        group_of(groups, static_cast<int>(dim), &ReshapeGroup::to_begin, &ReshapeGroup::to_end);
    for (int d = group.from_begin; d < group.from_end; ++d) order.push_back(d);
  }
  GraphBuilder builder(*transpose.parent(), &transpose);
  Value image = builder.transpose(reshape.operand(0), order);
  replace_instruction(transpose, builder.reshape(image, transpose.type().dims));
  return true;
}

bool is_only_use(const Instruction& producer) {
  return has_one_use(const_cast<Instruction&>(producer).result());
}

} // namespace

bool move_reshapes_past_transposes(Region& region, const std::function<bool(const Instruction&)>& wanted) {
  bool changed = false;
  for (Instruction* instruction : region.snapshot()) {
    bool divides = instruction->is(Opcode::Reshape), joins = instruction->is(Opcode::Transpose);
    if ((!divides && !joins) || !instruction->type().is_static()) continue;
    const Instruction& producer = *instruction->operand(0).def;
    if (!producer.is(divides ? Opcode::Transpose : Opcode::Reshape) || !is_only_use(producer)) continue;
    if (divides) {
      auto users = instruction->users();
      if (!std::any_of(users.begin(), users.end(), [&](const Instruction* user) { return wanted(*user); }))
        continue;
      changed |= divide_before_transpose(*instruction);
    } else if (wanted(*producer.operand(0).def)) {
      changed |= join_after_transpose(*instruction);
    }
  }
  return changed;
}

} // namespace firn
