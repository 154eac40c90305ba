// Adds up the cycles of ops by their throughput, as if no pipe worked beside another. Rates are
// those of common cores; Machine holds the ones that differ much between cores.
#include "compiler/kernel/passes/cycle_count.h"

#include "compiler/target/mac.h"

#include <algorithm>

namespace firn::kernel {
namespace {

constexpr double kDivision = 5, kScalarDivision = 20; // cycles for a vector of floats, and for an integer
constexpr double kWhileTrips = 8;                     // a guess: the real number is unknown
constexpr double kRuntimeCall = 1000;                 // cycles; a guess, too
constexpr double kIntegersPerCycle = 2;               // vectors of integers, comparisons and casts

class CycleCount {
public:
  CycleCount(const Kernel& kernel, const Machine& target) : kernel_(kernel), target_(target) {}

  double of(const Block& block) const {
    double cycles = 0;
    for (const auto& op : block.ops) cycles += of(*op);
    return cycles;
  }

private:
  double of(const Op& op) const {
    switch (op_kind_info(op.kind).group) {
    case OpGroup::Leaf: return 0;
    case OpGroup::Float: return vectors(op) * float_cycles(op.kind);
    case OpGroup::Integer: return integer_cycles(op);
    case OpGroup::Compare: return vectors(op) / kIntegersPerCycle;
    case OpGroup::Cast:
      return op.kind == OpKind::Narrow ? narrow_cycles(op) : vectors(op) / kIntegersPerCycle;
    case OpGroup::Vector: return vector_cycles(op);
    case OpGroup::Tile: // a row in a cycle
      return kernel_.tiles[static_cast<size_t>(op.integers[0])].rows;
    case OpGroup::Memory: return memory_cycles(op);
    case OpGroup::Warp: return 0;
    case OpGroup::Control: return control_cycles(op);
    }
    FIRN_UNREACHABLE("no group of ops");
  }

  // The machine vectors that the op's result takes, or its operand if it has none.
  double vectors(const Op& op) const {
    if (op.results.empty() && op.operands.empty()) return 1;
    return vectors(kernel_.type_of(op.results.empty() ? op.operands[0] : op.results[0]));
  }
  double vectors(MachineType type) const {
    if (type.lanes == 1) return 1;
    if (target_.cpu.vector_bits == 0) return type.lanes;
    return std::max(1.0, 8.0 * type.lanes * scalar_bytes(type.scalar) / target_.cpu.register_bits());
  }

  double float_cycles(OpKind kind) const {
    switch (kind) {
    case OpKind::FDiv:
    case OpKind::FSqrt: return kDivision;
    case OpKind::FRem: return kScalarDivision;
    default: return 1.0 / target_.cpu.fma_pipes;
    }
  }

  // Two limits and a rounding of floats; a conversion, an addition of the zero point and a truncation.
  double narrow_cycles(const Op& op) const {
    double floats = vectors(kernel_.type_of(op.operands[0])), integers = op.zero == 0 ? floats : 2 * floats;
    return floats * 3 * float_cycles(OpKind::FMinFast) + (integers + vectors(op)) / kIntegersPerCycle;
  }

  double integer_cycles(const Op& op) const {
    switch (op.kind) {
    case OpKind::SDiv:
    case OpKind::UDiv:
    case OpKind::SRem:
    case OpKind::URem: return kScalarDivision * kernel_.type_of(op.results[0]).lanes;
    default: return vectors(op) / kIntegersPerCycle;
    }
  }

  double vector_cycles(const Op& op) const {
    switch (op.kind) {
    case OpKind::ReduceFAdd:
    case OpKind::ReduceFMul:
    case OpKind::ReduceFMax:
    case OpKind::ReduceFMin:
    case OpKind::ReduceIAdd: { // adds halves to halves: a shuffle and an addition each
      double cycles = 0;
      for (int lanes = kernel_.type_of(op.operands[0]).lanes; lanes > 1; lanes /= 2) cycles += 2;
      return cycles;
    }
    case OpKind::DotU8S8: return byte_product_cycles(op, Factor::U8, Factor::S8);
    case OpKind::DotU8S8Narrow: return product_cycles(op, narrow_dot4_facts(target_));
    case OpKind::DotS8S8: return byte_product_cycles(op, Factor::S8, Factor::S8);
    case OpKind::DotU8U8: return byte_product_cycles(op, Factor::U8, Factor::U8);
    case OpKind::MacU8S8:
    case OpKind::MacS8S8:
    case OpKind::MacU8U8: return product_cycles(op, fma_facts(target_, /*is_float=*/false));
    case OpKind::DotS16: return product_cycles(op, i16_dot2_facts(target_));
    case OpKind::DotBF16: return product_cycles(op, bf16_dot2_facts(target_));
    default: return vectors(op);
    }
  }

  double byte_product_cycles(const Op& op, Factor lhs, Factor rhs) const {
    const bool is_row =
        kernel_.type_of(op.operands[1]).lanes == kDotRow * kernel_.type_of(op.results[0]).lanes;
    if (!is_row) return product_cycles(op, dot4_facts(target_, lhs, rhs));
    const MacFacts facts = dot16_facts(target_, lhs, rhs);
    return facts.instructions / facts.operand_registers; // the operands of a sum take one register each
  }

  double product_cycles(const Op& op, const MacFacts& facts) const {
    return facts.instructions * vectors(op) / target_.cpu.fma_pipes;
  }

  double memory_cycles(const Op& op) const {
    switch (op.kind) {
    case OpKind::Gather:
    case OpKind::Scatter: return kernel_.type_of(op.results.empty() ? op.operands[0] : op.results[0]).lanes;
    case OpKind::Store: return vectors(op);
    case OpKind::TileLoad:
    case OpKind::TileStore: // a row is a cache line
      return kernel_.tiles[static_cast<size_t>(op.integers[0])].rows / target_.cpu.loads_per_cycle;
    default: return vectors(op) / target_.cpu.loads_per_cycle;
    }
  }

  double control_cycles(const Op& op) const {
    switch (op.kind) {
    case OpKind::For: return trips(op) * (1 + of(op.blocks[0]));
    case OpKind::While: return kWhileTrips * (1 + of(op.blocks[0]) + of(op.blocks[1]));
    case OpKind::If: return 1 + std::max(of(op.blocks[0]), of(op.blocks[1]));
    case OpKind::CallRuntime: return kRuntimeCall;
    default: return 0;
    }
  }

  // The iterations of a loop whose bounds, if they vary, are in the middle of their ranges.
  static double trips(const Op& loop) {
    auto middle = [](const IntExpr& bound) {
      return (static_cast<double>(bound.lower_bound()) + static_cast<double>(bound.upper_bound())) / 2;
    };
    return std::max(0.0, (middle(loop.upper) - middle(loop.lower)) / static_cast<double>(loop.step));
  }

  const Kernel& kernel_;
  const Machine& target_;
};

} // namespace

double count_cycles(const Kernel& kernel, const Machine& target) {
  return CycleCount(kernel, target).of(kernel.body);
}

} // namespace firn::kernel
