// A rolled loop over the panel. An iteration takes GateGemm::splits steps of the reduction, the phases, which
// have partial sums of their own; each broadcasts one element of every row.
#include "compiler/lower/recurrent/gate_gemm.h"

namespace firn::lower {
namespace {

using Accumulators = std::vector<kernel::Register>;

class PanelLoop {
public:
  PanelLoop(kernel::Builder& builder, const GateGemm& product)
      : b_(builder), p_(product), type_{kernel::Scalar::F32, product.panels.units.lanes} {}

  Accumulators run(Accumulators accumulators) {
    count_ = accumulators.size();
    int64_t extent = p_.panels.reduction, phases = p_.splits;
    accumulators.resize(count_ * static_cast<size_t>(phases), b_.constant(type_, 0));
    int64_t whole = extent / phases * phases;
    if (p_.is_back) accumulators = steps(whole, extent - whole, std::move(accumulators));
    accumulators = b_.loop_carried(
        0, whole, phases, std::move(accumulators),
        [&](const IntExpr& k, const Accumulators& in) {
          return steps(p_.is_back ? IntExpr(whole - phases) - k : k, phases, in);
        },
        p_.unroll);
    if (!p_.is_back) accumulators = steps(whole, extent - whole, std::move(accumulators));
    return fold(std::move(accumulators), static_cast<size_t>(phases));
  }

private:
  // `number` steps of the reduction from k on, each to its own partial sums.
  Accumulators steps(const IntExpr& k, int64_t number, Accumulators accumulators) {
    for (int64_t phase = 0; phase < number; ++phase) {
      Accumulators scalars;
      for (int row = 0; row < p_.rows; ++row)
        scalars.push_back(b_.splat(b_.load({kernel::Scalar::F32, 1}, p_.source,
                                           p_.source_offset + row * p_.panels.reduction + k + phase),
                                   type_.lanes));
      size_t next = static_cast<size_t>(phase) * count_;
      for (size_t gate = 0; gate < p_.panels.gates.size();
           ++gate, next += static_cast<size_t>(p_.rows * p_.vectors))
        for (int vector = 0; vector < p_.vectors; ++vector) {
          IntExpr from = p_.panels.index(p_.first, p_.vectors, k + phase, static_cast<int>(gate), vector);
          kernel::Register weights = load_weights(from);
          if (int64_t ahead = p_.prefetch_distance / p_.panels.element_bytes(); ahead > 0)
            b_.prefetch(p_.buffer, p_.is_back ? from - ahead : from + ahead);
          for (int row = 0; row < p_.rows; ++row) {
            kernel::Register& sum = accumulators[next + static_cast<size_t>(row * p_.vectors + vector)];
            sum = b_.fma(scalars[static_cast<size_t>(row)], weights, sum);
          }
        }
    }
    return accumulators;
  }

  kernel::Register load_weights(const IntExpr& from) {
    if (p_.panels.dtype == DType::F32) return b_.load(type_, p_.buffer, from, type_.lanes * 4);
    kernel::Register bytes = b_.load({kernel::Scalar::I8, type_.lanes}, p_.buffer, from, type_.lanes);
    return b_.cast(kernel::OpKind::SIToF, b_.cast(kernel::OpKind::SExt, bytes, kernel::Scalar::I32),
                   kernel::Scalar::F32);
  }

  // The partial sums of all phases as one.
  Accumulators fold(Accumulators accumulators, size_t phases) {
    for (size_t phase = phases; phase > 1; phase = (phase + 1) / 2)
      for (size_t p = 0; p < phase / 2; ++p)
        for (size_t i = 0; i < count_; ++i) {
          size_t other = (p + (phase + 1) / 2) * count_ + i;
          accumulators[p * count_ + i] =
              b_.binary(kernel::OpKind::FAdd, accumulators[p * count_ + i], accumulators[other]);
        }
    accumulators.resize(count_);
    return accumulators;
  }

  kernel::Builder& b_;
  const GateGemm& p_;
  kernel::MachineType type_;
  size_t count_ = 0;
};

} // namespace

std::vector<kernel::Register> add_gate_gemm(kernel::Builder& builder, const GateGemm& product,
                                            std::vector<kernel::Register> accumulators) {
  return PanelLoop(builder, product).run(std::move(accumulators));
}

} // namespace firn::lower
