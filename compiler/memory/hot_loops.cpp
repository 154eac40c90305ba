// Loops are judged by the multiply-adds they run; loops whose bounds vary count as none.
#include "compiler/memory/hot_loops.h"

#include <algorithm>

namespace firn::memory {
namespace {

using kernel::Block;
using kernel::Op;
using kernel::OpKind;

constexpr int64_t kLine = 64;
constexpr int64_t kLinesAtOnce = 16; // as many misses as a first cache level keeps in flight

int64_t trip_count(const Op& loop) {
  if (!loop.lower.is_constant() || !loop.upper.is_constant()) return 0;
  return std::max<int64_t>(0, (loop.upper.value() - loop.lower.value() + loop.step - 1) / loop.step);
}

double multiply_adds(const Block& block);

// Of one of an op's blocks, in all iterations.
double multiply_adds(const Op& op, size_t block) {
  double once = multiply_adds(op.blocks[block]);
  return op.kind == OpKind::For ? once * static_cast<double>(trip_count(op)) : once;
}

double multiply_adds(const Block& block) {
  double count = 0;
  for (const auto& op : block.ops) {
    count += op->kind == OpKind::Fma;
    if (op->kind == OpKind::For) count += multiply_adds(*op, 0);
    if (op->kind == OpKind::If) count += std::max(multiply_adds(*op, 0), multiply_adds(*op, 1));
  }
  return count;
}

const Op* find_definition(const Block& block, kernel::Value value) {
  for (const auto& op : block.ops)
    if (!op->results.empty() && op->results[0] == value) return op.get();
  return nullptr;
}

struct Loop {
  SymbolRef symbol;
  int64_t lower, step, count;
  Block* body;
};

// Follows the loops and branches with the most multiply-adds inwards, from the parallel loop on.
class HotNest {
public:
  explicit HotNest(kernel::Kernel& kernel) {
    if (kernel.parallel) loops_.push_back({kernel.parallel, 0, 1, kernel.parallel_count, &kernel.body});
    descend(kernel.body);
  }
  const std::vector<Loop>& loops() const { return loops_; } // outermost first

private:
  void descend(Block& block) {
    Op* hottest = nullptr;
    size_t part = 0;
    double most = 0;
    for (const auto& op : block.ops) {
      if (op->kind != OpKind::For && op->kind != OpKind::If) continue;
      for (size_t i = 0; i < op->blocks.size(); ++i) {
        double count = multiply_adds(*op, i);
        if (count <= most) continue;
        most = count;
        hottest = op.get();
        part = i;
      }
    }
    if (!hottest) return;
    Block& inside = hottest->blocks[part];
    if (hottest->kind == OpKind::For)
      loops_.push_back(
          {hottest->symbol, hottest->lower.value(), hottest->step, trip_count(*hottest), &inside});
    else if (part == 0)
      count_taken(block, *hottest);
    descend(inside);
  }

  // Full tiles come first, in a branch that asks whether the loop is among them: those iterations count.
  void count_taken(const Block& block, const Op& branch) {
    const Op* compare = find_definition(block, branch.operands[0]);
    if (!compare || compare->kind != OpKind::SCmp || compare->predicate != kernel::Predicate::Lt) return;
    const Op *lhs = find_definition(block, compare->operands[0]),
             *rhs = find_definition(block, compare->operands[1]);
    if (!lhs || !rhs || lhs->kind != OpKind::IndexValue || rhs->kind != OpKind::Constant) return;
    for (Loop& loop : loops_)
      if (loop.step == 1 && lhs->index == IntExpr::symbol(loop.symbol))
        loop.count = std::clamp<int64_t>(rhs->integers[0] - loop.lower, 1, loop.count);
  }

  std::vector<Loop> loops_;
};

// Scratch is numbered after the parameters.
void make_room(Block& block, int parameter) {
  for (auto& op : block.ops) {
    op->buffer += op->buffer >= parameter;
    for (int& buffer : op->buffers) buffer += buffer >= parameter;
    for (Block& inner : op->blocks) make_room(inner, parameter);
  }
}

int add_parameter(kernel::Kernel& kernel) {
  int number = static_cast<int>(kernel.parameters.size());
  make_room(kernel.body, number);
  kernel::BufferParameter parameter;
  parameter.name = "ahead";
  parameter.element = kernel::Scalar::I8;
  kernel.parameters.push_back(std::move(parameter)); // of no size: nothing of it is read
  return number;
}

} // namespace

bool prefetch_in_hot_loops(kernel::Kernel& kernel, int64_t lines) {
  HotNest nest(kernel);
  IntExpr outer = 0; // number of the iteration of the loops around
  int64_t outer_count = 1;
  for (const Loop& loop : nest.loops()) {
    IntExpr number = floor_div(IntExpr::symbol(loop.symbol) - loop.lower, loop.step);
    int64_t count = outer_count * loop.count, share = (lines + count - 1) / count;
    if (share > kLinesAtOnce) {
      outer = outer * loop.count + number;
      outer_count = count;
      continue;
    }
    // Where there are more iterations than lines, the last ones ask for the same again.
    int64_t iterations = std::min(loop.count, (lines + outer_count - 1) / outer_count);
    IntExpr first = (outer * iterations + min(number, IntExpr(iterations - 1))) * (share * kLine);
    int buffer = add_parameter(kernel);
    for (int64_t i = 0; i < share; ++i) {
      auto op = std::make_unique<Op>();
      op->kind = OpKind::Prefetch;
      op->buffer = buffer;
      op->index = first + i * kLine;
      op->streaming = true;
      loop.body->ops.insert(loop.body->ops.begin() + i, std::move(op));
    }
    return true;
  }
  return false;
}

} // namespace firn::memory
