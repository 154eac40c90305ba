// Turns transposed convolutions into convolutions of all phases, and finds the places of their results.
#include "compiler/plan/contraction/polyphase.h"

#include "compiler/plan/roots.h"

namespace firn::plan {

bool PolyphaseConvolution::applies(const Instruction& convolution, Value filter, int lanes) {
  DType result = convolution.type().dtype;
  return (is_float(result) || result == DType::I32) && is_packable_constant(filter) &&
         convolution.attributes().integer("groups", 1) == 1 && filter.dim(0) % lanes == 0 &&
         ConvolutionPhases::of(convolution);
}

std::shared_ptr<const PolyphaseConvolution> PolyphaseConvolution::create(const Instruction& convolution,
                                                                         Value filter, int lanes) {
  if (!applies(convolution, filter, lanes)) return nullptr;
  auto phases = ConvolutionPhases::of(convolution);
  std::shared_ptr<PolyphaseConvolution> made(new PolyphaseConvolution(std::move(*phases)));
  made->filters_ = filter.dim(0);
  Instruction* input = made->region_.add_parameter(convolution.operand(0).type());
  Instruction* filters = made->region_.append_constant(made->phases_.filters(*filter.def));
  filters->set_location(filter.def->location());
  Type type = convolution.type();
  type.dims[1] = Dim(made->filters_ * made->phases_.count);
  for (size_t d = 0; d < made->phases_.dims.size(); ++d) type.dims[d + 2] = Dim(made->phases_.dims[d].groups);
  made->convolution_ = made->region_.append(Opcode::Convolution, {input->result(), filters->result()}, {type},
                                            {{"groups", int64_t{1}}, {"window", made->phases_.window()}});
  return made;
}

std::vector<IntExpr> PolyphaseConvolution::result_index(const std::vector<IntExpr>& index) const {
  std::vector<IntExpr> at = index;
  at[1] = floor_mod(index[1], filters_);
  IntExpr phase = floor_div(index[1], filters_);
  for (size_t d = phases_.dims.size(); d-- > 0;) {
    const PhaseDim& dim = phases_.dims[d];
    at[d + 2] = index[d + 2] * dim.phases + floor_mod(phase, dim.phases) - dim.skipped;
    phase = floor_div(phase, dim.phases);
  }
  return at;
}

} // namespace firn::plan
