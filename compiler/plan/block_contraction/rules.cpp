// The rules of dots and convolutions by blocks of threads, and their model of time.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/block_contraction/plan.h"
#include "compiler/target/gpu_table.h"

#include <algorithm>

namespace firn::plan {
namespace {

bool contains(const std::vector<int64_t>& dims, int dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

const IntExpr& extent(Value value, int64_t dim) {
  return value.type().dims[static_cast<size_t>(dim)].extent;
}

BlockProduct product_of_dot(const Instruction& dot) {
  const Attributes& attributes = dot.attributes();
  const auto &lhs_batch = attributes.ints("lhs_batch"), &rhs_batch = attributes.ints("rhs_batch"),
             &lhs_contract = attributes.ints("lhs_contract"), &rhs_contract = attributes.ints("rhs_contract");
  BlockProduct product;
  for (int64_t dim : lhs_batch) product.batch.push_back(extent(dot.operand(0), dim));
  for (int64_t dim : lhs_contract) product.k.push_back(extent(dot.operand(0), dim));
  for (int d = 0; d < dot.operand(0).rank(); ++d)
    if (!contains(lhs_batch, d) && !contains(lhs_contract, d)) product.m.push_back(extent(dot.operand(0), d));
  for (int d = 0; d < dot.operand(1).rank(); ++d)
    if (!contains(rhs_batch, d) && !contains(rhs_contract, d)) product.n.push_back(extent(dot.operand(1), d));
  auto is_inner = [](Value operand, const std::vector<int64_t>& contract) {
    return !contract.empty() && contract.back() == operand.rank() - 1;
  };
  product.lhs_k_inner = is_inner(dot.operand(0), lhs_contract);
  product.rhs_k_inner = is_inner(dot.operand(1), rhs_contract);
  return product;
}

std::optional<BlockProduct> product_of_convolution(const Instruction& convolution) {
  Value input = convolution.operand(0), filter = convolution.operand(1);
  const Window& window = convolution.attributes().window();
  const int64_t groups = convolution.attributes().integer("groups", 1);
  BlockProduct product;
  product.batch = {groups};
  product.m = {filter.dim(0) / groups};
  product.k = {filter.dim(1)};
  product.n = {extent(input, 0)};
  for (size_t s = 0; s < window.dims.size(); ++s) {
    if (window.dims[s].input_dilation != 1) return std::nullopt;
    product.k.push_back(window.dims[s].size);
    product.n.push_back(convolution.type().dims[s + 2].extent);
  }
  return product;
}

// Elements of an operand or result up to which loops over elements have nothing to gain from shared memory.
constexpr int64_t kNarrow = 8;

class BlockContractionRules final : public RulesOf<BlockContractionPlan> {
public:
  std::string check_varying(const Instruction&) const override { return ""; }
  std::string applies(const Instruction& instruction, const PlanningContext&) const override {
    auto root = find_contraction(instruction);
    auto product = root ? find_block_product(*root) : std::nullopt;
    if (!product) return "";
    const int64_t m = bound(product->m), n = bound(product->n), k = bound(product->k);
    return std::min({m, n, k}) < kNarrow ? "a dim is so narrow that nothing is read twice" : "";
  }
  std::string complete(BlockContractionPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    auto root = find_contraction(instruction);
    auto product = root ? find_block_product(*root) : std::nullopt;
    if (!product)
      return "this is no dot or convolution of plain operands, without holes between input elements";
    if (!context.options.target.gpu) return "this machine has no blocks of threads";
    if (plan.block_m == 0) plan = best(*product, context);
    if (plan.block_m % plan.thread_m != 0 || plan.block_n % plan.thread_n != 0 ||
        plan.threads() < kWarpThreads || plan.threads() > kMaxBlockThreads)
      return "a block has " + std::to_string(plan.threads()) + " threads, of 32 to 1024";
    return "";
  }

protected:
  std::vector<BlockContractionPlan> others(const BlockContractionPlan&, const Instruction&,
                                           const PlanningContext&, size_t) const override {
    return all_tiles();
  }
  double cycles(const BlockContractionPlan& plan, const BlockContractionPlan&, const Instruction& instruction,
                const PlanningContext& context) const override {
    auto root = find_contraction(instruction);
    return cycles(plan, *find_block_product(*root), *context.options.target.gpu);
  }

private:
  static int64_t bound(const std::vector<IntExpr>& extents) {
    return std::max<int64_t>(1, BlockProduct::product(extents).upper_bound());
  }
  static int64_t pieces(int64_t extent, int64_t of) { return (extent + of - 1) / of; }

  static std::vector<BlockContractionPlan> all_tiles() {
    std::vector<BlockContractionPlan> all;
    for (int m : {16, 32, 64, 128})
      for (int n : {16, 32, 64, 128})
        for (int thread : {2, 4, 8}) {
          BlockContractionPlan plan{m, n, 16, thread, thread};
          if (plan.threads() >= 64 && plan.threads() <= 256) all.push_back(plan);
        }
    return all;
  }

  BlockContractionPlan best(const BlockProduct& product, const PlanningContext& context) const {
    const GpuFacts& gpu = *context.options.target.gpu;
    std::vector<BlockContractionPlan> all = all_tiles();
    return *std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return cycles(a, product, gpu) < cycles(b, product, gpu);
    });
  }

  // Blocks run in waves, as many at a time as the SMs have room for. A wave takes as long as its products on
  // an SM, or as its reads from shared memory, which gives 32 words in a cycle: the rows and columns of each
  // thread.
  static double cycles(const BlockContractionPlan& plan, const BlockProduct& product, const GpuFacts& gpu) {
    const int64_t tiles = bound(product.batch) * pieces(bound(product.m), plan.block_m) *
                          pieces(bound(product.n), plan.block_n);
    const double steps = static_cast<double>(pieces(bound(product.k), plan.block_k) * plan.block_k);
    const int registers = plan.thread_m * plan.thread_n + 2 * (plan.thread_m + plan.thread_n) + 24;
    const int64_t blocks = resident_blocks(gpu, plan.threads(), registers, /*shared_bytes=*/0);
    // Four warps hide what an FMA takes; fewer leave pipes idle.
    const int64_t at_once = std::min<int64_t>(blocks, pieces(tiles, gpu.sms));
    const double hidden = std::min(1.0, static_cast<double>(at_once * plan.threads()) / (8.0 * kWarpThreads));
    const double results = static_cast<double>(plan.block_m) * plan.block_n;
    const double products = results * steps / gpu.fma_per_cycle / hidden;
    const double words =
        static_cast<double>(plan.threads()) * (plan.thread_m + plan.thread_n) * steps / kWarpThreads;
    const double barriers = 2 * gpu.barrier_cycles * steps / plan.block_k / static_cast<double>(at_once);
    const double of_tile = std::max(products, words) + barriers;
    return static_cast<double>(pieces(tiles, gpu.sms)) * of_tile;
  }
};

} // namespace

IntExpr BlockProduct::product(const std::vector<IntExpr>& extents) {
  IntExpr product = 1;
  for (const IntExpr& extent : extents) product = product * extent;
  return product;
}

std::optional<BlockProduct> find_block_product(const KernelRoot& root) {
  if (root.scales || root.row_scales) return std::nullopt;
  for (Value operand : {root.op->operand(0), root.op->operand(1)})
    if (!operand.type().layout.is_plain() || bit_width(operand.dtype()) < 8 || is_complex(operand.dtype()))
      return std::nullopt;
  if (root.op->type().dtype == DType::Bool) return std::nullopt;
  if (root.op->is(Opcode::Dot)) return product_of_dot(*root.op);
  if (root.op->is(Opcode::Convolution)) return product_of_convolution(*root.op);
  return std::nullopt;
}

const AlgorithmRules& block_contraction_rules() {
  static const BlockContractionRules rules;
  return rules;
}

} // namespace firn::plan
