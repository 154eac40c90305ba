// split-reductions: reduces much to few results in two steps where threads share the work.
//
//   %r = reduce(%x: f32[1,128,2001]) {dims = [1, 2]} : f32[1]
//     ->
//   %p = reduce(%x) {dims = [2]} : f32[1,128]
//   %r = reduce(%p) {dims = [1]} : f32[1]
//
// Threads share results, of which the first step has enough; the second has little to do. And sums over
// positions are taken where a convolution has these in registers (fuse-spatial-sums). The order of additions
// depends on how many threads an object is for, and not on how many a run has.
//
// - Requires: a target; static shapes where anything changes.
// - Establishes: nothing that another pass needs.
// - Breaks: nothing (simplify-algebra would make one reduction of both).
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/graph_forms.h"

namespace firn {
namespace {

Value split_reduction(Instruction& reduce, const PassOptions& options) {
  if (!reduce.is(Opcode::Reduce)) return {};
  auto reducer = plain_reducer(reduce);
  if (!reducer) return {};
  auto split = plan::split_of_reduction(reduce, *options.target, options.goals.threads);
  if (!split) return {};
  GraphBuilder builder(*reduce.parent(), &reduce);
  builder.set_location(reduce.location());
  Value x = reduce.operand(0);
  int64_t extent = x.dim(static_cast<int>(split->dim)), length = extent / split->parts;
  bool is_cut = length > 1; // then the dim of the parts stands in front of that within them
  if (is_cut) {
    std::vector<Dim> dims = x.type().dims;
    dims[static_cast<size_t>(split->dim)] = Dim(split->parts);
    dims.insert(dims.begin() + split->dim + 1, Dim(length));
    x = builder.reshape(x, dims);
  }
  std::vector<int64_t> first;
  for (int64_t dim : reduce.attributes().ints("dims"))
    if (dim != split->dim || is_cut) first.push_back(dim + is_cut);
  Value parts = builder.reduce(*reducer, x, first, /*keep_dims=*/false);
  return builder.reduce(*reducer, parts, {split->dim}, /*keep_dims=*/false);
}

} // namespace

bool split_reductions(Module& module, const PassOptions& options) {
  if (!options.target || options.goals.optimize_size()) return false;
  return rewrite_module(module, options, split_reduction);
}

} // namespace firn
