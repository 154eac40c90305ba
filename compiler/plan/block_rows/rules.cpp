// The rules of reductions along rows by blocks of threads.
#include "compiler/graph/builder.h"
#include "compiler/graph/producers.h"
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/block_rows/plan.h"
#include "compiler/plan/composites.h"

#include <algorithm>
#include <bit>

namespace firn::plan {
namespace {

// Elements of a row below which a thread reduces it alone, and which a thread of a block takes at least.
constexpr int64_t kFewElements = 64, kElementsOfThread = 4;
// Rows that fill a GPU if a thread takes each; their elements lie beside those of other rows.
constexpr int64_t kManyRows = 4096;
constexpr int kMaxThreads = 256;

bool is_simple(const Instruction& reduce) {
  return reduce.is(Opcode::Reduce) && reduce.num_results() == 1 && simple_reducer(reduce).has_value() &&
         reducer_identity(*simple_reducer(reduce), reduce.type().dtype) &&
         reduce.operand(0).dtype() != DType::Bool && !is_complex(reduce.type().dtype);
}

std::vector<int64_t> dims_of(const Instruction& reduce) {
  std::vector<int64_t> dims = reduce.attributes().ints("dims");
  std::sort(dims.begin(), dims.end());
  return dims;
}

// Adds a reduction of a fusion; false if it has another form than those before.
bool add(BlockRows& rows, Value value) {
  const Instruction& reduce = *value.def;
  if (!is_simple(reduce)) return false;
  if (rows.reductions.empty()) {
    rows.dims = dims_of(reduce);
    rows.operand = reduce.operand(0).type();
  }
  if (rows.dims != dims_of(reduce) || rows.operand.dims != reduce.operand(0).type().dims) return false;
  rows.reductions.push_back(value);
  return true;
}

// Nothing that a reduction takes is reduced itself.
bool has_inner(Value reduction) {
  return !walk_producers(reduction.def->operand(0), [&](Value value, int) {
    return value.def->is(Opcode::Reduce) ? Walk::Stop : Walk::Into;
  });
}

// Elementwise code behind reductions, of which each element takes those of its own row.
std::optional<BlockRows> find_in_fusion(const Instruction& fusion) {
  BlockRows rows;
  for (Value result : fusion.region().results()) {
    bool fits = walk_producers(result, [&](Value value, int) {
      const Instruction& op = *value.def;
      if (op.is(Opcode::Reduce)) return add(rows, value) ? Walk::Past : Walk::Stop;
      if (op.is(Opcode::Constant) || op.is(Opcode::Parameter)) return Walk::Past;
      if (op.is(Opcode::BroadcastInDim))
        return op.operand(0).def->is(Opcode::Constant) ? Walk::Past : Walk::Stop;
      return is_elementwise(op.opcode()) ? Walk::Into : Walk::Stop;
    });
    if (!fits || result.type().dims != fusion.region().results()[0].type().dims) return std::nullopt;
  }
  std::sort(rows.reductions.begin(), rows.reductions.end(),
            [](Value a, Value b) { return std::less<>()(a.def, b.def); });
  rows.reductions.erase(std::unique(rows.reductions.begin(), rows.reductions.end()), rows.reductions.end());
  if (rows.reductions.empty() || std::any_of(rows.reductions.begin(), rows.reductions.end(), has_inner))
    return std::nullopt;
  if (fusion.type().dims != rows.reductions[0].type().dims) return std::nullopt;
  // In the order of the region: equal graphs then give equal kernels.
  std::vector<Value> ordered;
  for (const auto& op : fusion.region().instructions())
    for (Value reduction : rows.reductions)
      if (reduction.def == op.get()) ordered.push_back(reduction);
  rows.reductions = std::move(ordered);
  return rows;
}

int64_t elements_of(const Type& type, const std::vector<int64_t>& dims) {
  const Type bound = type.at_bound();
  int64_t count = 1;
  for (int64_t dim : dims) count *= bound.dim(static_cast<int>(dim));
  return count;
}

class BlockRowsRules final : public RulesOf<BlockRowsPlan> {
public:
  std::string check_varying(const Instruction&) const override { return ""; }
  std::string applies(const Instruction& instruction, const PlanningContext&) const override {
    auto rows = find_block_rows(instruction);
    if (!rows) return "";
    const int64_t length = elements_of(rows->operand, rows->dims);
    if (length < kFewElements) return "a thread reduces a short row alone";
    const int64_t count = rows->operand.at_bound().num_elements() / std::max<int64_t>(1, length);
    const bool lies_together = rows->dims.back() + 1 == rows->operand.rank();
    return lies_together || count < kManyRows ? "" : "threads side by side read neighbours where they reduce";
  }
  std::string complete(BlockRowsPlan& plan, const Instruction& instruction,
                       const PlanningContext&) const override {
    auto rows = find_block_rows(instruction);
    if (!rows) return "this is no reduction along rows";
    if (plan.threads > 0) return "";
    const auto length = static_cast<uint64_t>(elements_of(rows->operand, rows->dims) / kElementsOfThread);
    plan.threads = static_cast<int>(
        std::clamp<uint64_t>(std::bit_ceil(std::max<uint64_t>(1, length)), kWarpThreads, kMaxThreads));
    return "";
  }

protected:
  std::vector<BlockRowsPlan> others(const BlockRowsPlan&, const Instruction&, const PlanningContext&,
                                    size_t) const override {
    return {{32}, {64}, {128}, {256}, {512}, {1024}};
  }
};

} // namespace

std::optional<BlockRows> find_block_rows(const Instruction& instruction) {
  BlockRows rows;
  if (instruction.is(Opcode::Reduce)) {
    if (!add(rows, const_cast<Instruction&>(instruction).result(0))) return std::nullopt;
  } else if (instruction.is(Opcode::Fusion)) {
    auto found = find_in_fusion(instruction);
    if (!found) return std::nullopt;
    rows = std::move(*found);
  } else {
    auto form = find_rows(instruction);
    if (!form) return std::nullopt;
    for (Value reduction : form->reductions)
      if (!add(rows, reduction)) return std::nullopt;
    rows.keeps_rows = true;
  }
  if (rows.operand.at_bound().num_elements() == 0 || rows.dims.empty()) return std::nullopt;
  for (int i = 0; i < instruction.num_results(); ++i)
    if (!instruction.type(i).layout.blocks.empty()) return std::nullopt;
  return rows;
}

const AlgorithmRules& block_rows_rules() {
  static const BlockRowsRules rules;
  return rules;
}

} // namespace firn::plan
