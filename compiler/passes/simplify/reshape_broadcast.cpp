// Reshapes of broadcasts.
#include "compiler/passes/simplify/reshape_broadcast.h"

#include "compiler/passes/match.h"
#include "compiler/passes/reshape_groups.h"

#include <algorithm>

namespace firn {
namespace {

IntExpr count(const std::vector<Dim>& dims) {
  IntExpr product = 1;
  for (const Dim& dim : dims) product = product * dim.extent;
  return product;
}

// Whether dim `d` of the broadcast runs along a dim of its operand.
bool is_own_dim(const Instruction& broadcast, int d) {
  const std::vector<int64_t>& map = broadcast.attributes().ints("dims");
  auto at = std::find(map.begin(), map.end(), d);
  if (at == map.end()) return false;
  const Dim& own = broadcast.operand(0).type().dims[static_cast<size_t>(at - map.begin())];
  return own.extent == broadcast.type().dims[static_cast<size_t>(d)].extent;
}

} // namespace

Value reshape_broadcast(Instruction& broadcast, const Type& result, GraphBuilder& builder) {
  Value x = broadcast.operand(0);
  if (x.rank() == 0) return make_broadcast(builder, x, result, {});
  const std::vector<Dim>&from = broadcast.type().dims, &to = result.dims;
  std::vector<Dim> kept;
  std::vector<int64_t> dims;
  for (const ReshapeGroup& group : reshape_groups(from, to)) {
    int own = 0, repeated = 0;
    for (int d = group.from_begin; d < group.from_end; ++d)
      if (!is_unit(from[static_cast<size_t>(d)])) ++(is_own_dim(broadcast, d) ? own : repeated);
    if (own > 0 && repeated > 0) return {};
    for (int d = group.to_begin; d < group.to_end && own > 0; ++d) {
      kept.push_back(to[static_cast<size_t>(d)]);
      dims.push_back(d);
    }
  }
  if (count(x.type().dims) != count(kept)) return {};
  return make_broadcast(builder, builder.reshape(x, kept), result, dims);
}

} // namespace firn
