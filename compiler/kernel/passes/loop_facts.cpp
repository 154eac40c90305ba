// Loops are judged by the multiply-adds they run; loops whose bounds vary count as none. Branches are judged
// by evaluating what they compare in every iteration.
#include "compiler/kernel/passes/loop_facts.h"

#include <algorithm>

namespace firn::kernel {
namespace {

constexpr int64_t kMaxEvaluated = 1 << 16; // iterations; longer loops count as reaching the block in all

double multiply_adds(const Block& block);

// The multiply-adds of one of an op's blocks, over all iterations.
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

const Op* find_definition(const Block& block, Register value) {
  for (const auto& op : block.ops)
    if (!op->results.empty() && op->results[0] == value) return op.get();
  return nullptr;
}

// The value as an expression of symbols; nothing if it is none.
std::optional<IntExpr> index_of(const Block& block, Register value) {
  const Op* op = find_definition(block, value);
  if (op && op->kind == OpKind::IndexValue) return op->index;
  if (op && op->kind == OpKind::Constant && op->integers.size() == 1) return IntExpr(op->integers[0]);
  return std::nullopt;
}

bool compare(Predicate predicate, auto lhs, auto rhs) {
  switch (predicate) {
  case Predicate::Eq: return lhs == rhs;
  case Predicate::Ne: return lhs != rhs;
  case Predicate::Lt: return lhs < rhs;
  case Predicate::Le: return lhs <= rhs;
  case Predicate::Gt: return lhs > rhs;
  case Predicate::Ge: return lhs >= rhs;
  }
  FIRN_UNREACHABLE("no predicate");
}

// The condition of a branch as a comparison of indices.
struct Condition {
  OpKind kind;
  Predicate predicate;
  IntExpr lhs, rhs;

  static std::optional<Condition> read(const Block& block, const Op& branch) {
    const Op* op = find_definition(block, branch.operands[0]);
    if (!op || (op->kind != OpKind::SCmp && op->kind != OpKind::UCmp)) return std::nullopt;
    auto lhs = index_of(block, op->operands[0]), rhs = index_of(block, op->operands[1]);
    if (!lhs || !rhs) return std::nullopt;
    return Condition{op->kind, op->predicate, *lhs, *rhs};
  }

  // Whether it depends on this symbol and no other.
  bool depends_on(const Symbol& symbol) const {
    std::vector<SymbolRef> symbols = lhs.symbols(), more = rhs.symbols();
    symbols.insert(symbols.end(), more.begin(), more.end());
    return !symbols.empty() && std::all_of(symbols.begin(), symbols.end(),
                                           [&](const SymbolRef& found) { return found.get() == &symbol; });
  }

  bool holds_at(int64_t at) const {
    auto value = [&](const IntExpr& expression) {
      return expression.substitute([&](const Symbol&) { return std::optional(IntExpr(at)); }).value();
    };
    int64_t left = value(lhs), right = value(rhs);
    if (kind == OpKind::SCmp) return compare(predicate, left, right);
    return compare(predicate, static_cast<uint64_t>(left), static_cast<uint64_t>(right));
  }
};

// Reduces the loop to the iterations in which the condition is `taken`, if these follow one another.
void keep_taken(LoopOnPath& loop, const Condition& condition, bool taken) {
  if (loop.count > kMaxEvaluated) return;
  int64_t begin = -1, end = -1, count = 0;
  for (int64_t n = 0; n < loop.count; ++n) {
    if (condition.holds_at(loop.first + n * loop.step) != taken) continue;
    if (begin < 0) begin = n;
    end = n + 1;
    ++count;
  }
  if (count == 0 || count != end - begin) return;
  loop.first += begin * loop.step;
  loop.count = count;
}

// Follows the loops and branches with the most multiply-adds inwards.
void descend(Block& block, std::vector<LoopOnPath>& loops) {
  Op* hottest = nullptr;
  size_t part = 0;
  double max = 0;
  for (const auto& op : block.ops) {
    if (op->kind != OpKind::For && op->kind != OpKind::If) continue;
    for (size_t i = 0; i < op->blocks.size(); ++i) {
      double count = multiply_adds(*op, i);
      if (count <= max) continue;
      max = count;
      hottest = op.get();
      part = i;
    }
  }
  if (!hottest) return;
  Block& inside = hottest->blocks[part];
  if (hottest->kind == OpKind::For)
    loops.push_back({hottest->symbol, hottest->lower.value(), hottest->step, trip_count(*hottest), &inside});
  else if (auto condition = Condition::read(block, *hottest))
    for (LoopOnPath& loop : loops)
      if (condition->depends_on(*loop.symbol)) keep_taken(loop, *condition, /*taken=*/part == 0);
  descend(inside, loops);
}

} // namespace

int64_t trip_count(const Op& loop) {
  if (!loop.lower.is_constant() || !loop.upper.is_constant()) return 0;
  return std::max<int64_t>(0, (loop.upper.value() - loop.lower.value() + loop.step - 1) / loop.step);
}

std::vector<LoopOnPath> find_hot_nest(Kernel& kernel) {
  std::vector<LoopOnPath> loops;
  if (!kernel.parallel_count.is_constant() || kernel.phase) return loops;
  if (kernel.parallel) loops.push_back({kernel.parallel, 0, 1, kernel.parallel_count.value(), &kernel.body});
  descend(kernel.body, loops);
  return loops;
}

} // namespace firn::kernel
