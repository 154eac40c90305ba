// See spread_prefetches.h. Prefetches go into the outermost loops that have enough iterations for each to ask
// for few lines.
#include "compiler/kernel/passes/spread_prefetches.h"

#include "compiler/kernel/passes/loop_facts.h"
#include "compiler/kernel/request_streams.h"
#include "compiler/target/machine.h"

#include <algorithm>

namespace firn::kernel {
namespace {

constexpr int64_t kLine = kCacheLineBytes;
constexpr int64_t kLinesAtOnce = 16; // the misses that a first cache level keeps in flight

// Frees a number for the parameter: scratch is numbered after the parameters.
void make_room(Block& block, int parameter) {
  for (auto& op : block.ops) {
    op->buffer += op->buffer >= parameter;
    for (int& buffer : op->buffers) buffer += buffer >= parameter;
    for (Block& inner : op->blocks) make_room(inner, parameter);
  }
}

int add_parameter(Kernel& kernel) {
  int number = static_cast<int>(kernel.parameters.size());
  make_room(kernel.body, number);
  BufferParameter parameter;
  parameter.name = "ahead";
  parameter.element = Scalar::I8;
  kernel.parameters.push_back(std::move(parameter)); // size 0: prefetches read nothing
  return number;
}

} // namespace

std::optional<PrefetchSpread> spread_prefetches(Kernel& kernel, int64_t lines) {
  IntExpr outer = 0; // number of the iteration of all loops around
  int64_t outer_count = 1;
  for (const LoopOnPath& loop : find_hot_nest(kernel)) {
    // Iterations before loop.first ask for what that one asks for.
    IntExpr number = max(floor_div(IntExpr::symbol(loop.symbol) - loop.first, loop.step), 0);
    int64_t count = outer_count * loop.count, each = (lines + count - 1) / count;
    if (each > kLinesAtOnce) {
      outer = outer * loop.count + number;
      outer_count = count;
      continue;
    }
    // If there are more iterations than lines, the last ones ask for the same lines again.
    int64_t iterations = std::min(loop.count, (lines + outer_count - 1) / outer_count);
    IntExpr first = (outer * iterations + min(number, IntExpr(iterations - 1))) * each;
    return PrefetchSpread{loop.body, first, each, lines};
  }
  return std::nullopt;
}

void insert_prefetches(Kernel& kernel, const PrefetchSpread& spread) {
  int buffer = add_parameter(kernel);
  for (int64_t i = 0; i < spread.lines_each; ++i) {
    auto op = std::make_unique<Op>();
    op->kind = OpKind::Prefetch;
    op->buffer = buffer;
    op->index = line_in_streams(spread.first + i, spread.lines_each, spread.lines) * kLine;
    op->streaming = true;
    spread.body->ops.insert(spread.body->ops.begin() + i, std::move(op));
  }
}

} // namespace firn::kernel
