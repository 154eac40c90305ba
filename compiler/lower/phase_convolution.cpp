// Transposed convolutions as convolutions of all phases, and the places of their results.
#include "compiler/lower/phase_convolution.h"

namespace firn::lower {

std::shared_ptr<const PhaseConvolution> PhaseConvolution::create(const Instruction& convolution, Value filter,
                                                                 int lanes) {
  auto phases = ConvolutionPhases::of(convolution);
  if (!phases || !filter.def->is(Opcode::Constant) || filter.def->literal()->is_opaque() ||
      convolution.attributes().integer("groups", 1) != 1 || filter.dim(0) % lanes != 0)
    return nullptr;
  std::shared_ptr<PhaseConvolution> made(new PhaseConvolution(std::move(*phases)));
  made->filters_ = filter.dim(0);
  Instruction* input = made->region_.add_parameter(convolution.operand(0).type());
  Instruction* filters = made->region_.append_constant(made->phases_.filters(*filter.def->literal()));
  filters->set_location(filter.def->location());
  Type type = convolution.type();
  type.dims[1] = Dim(made->filters_ * made->phases_.count);
  for (size_t d = 0; d < made->phases_.dims.size(); ++d) type.dims[d + 2] = Dim(made->phases_.dims[d].groups);
  made->convolution_ = made->region_.append(Opcode::Convolution, {input->result(), filters->result()}, {type},
                                            {{"groups", int64_t{1}}, {"window", made->phases_.window()}});
  return made;
}

Index PhaseConvolution::result_index(const Index& index) const {
  Index at = index;
  at[1] = floor_mod(index[1], filters_);
  IntExpr phase = floor_div(index[1], filters_);
  for (size_t d = phases_.dims.size(); d-- > 0;) {
    const PhaseDim& dim = phases_.dims[d];
    at[d + 2] = index[d + 2] * dim.phases + floor_mod(phase, dim.phases) - dim.skipped;
    phase = floor_div(phase, dim.phases);
  }
  return at;
}

void PhaseConvolution::store_inside(kernel::Builder& b, const Index& result_index,
                                    const std::function<void()>& store) const {
  kernel::Value inside;
  for (size_t d = 0; d < phases_.dims.size(); ++d) {
    const IntExpr& at = result_index[d + 2];
    int64_t extent = phases_.dims[d].extent;
    if (at.lower_bound() >= 0 && at.upper_bound() < extent) continue;
    if (at.upper_bound() < 0 || at.lower_bound() >= extent) return;
    // An unsigned comparison tests both ends.
    kernel::Value here = b.compare(kernel::OpKind::UCmp, kernel::Predicate::Lt, b.index(at),
                                   b.constant_int({kernel::Scalar::Index, 1}, extent));
    inside = inside ? b.binary(kernel::OpKind::And, inside, here) : here;
  }
  if (!inside) return store();
  b.if_then_else(
      inside,
      [&] {
        store();
        return std::vector<kernel::Value>{};
      },
      [] { return std::vector<kernel::Value>{}; });
}

} // namespace firn::lower
