// A transposed convolution as lowering computes it: all phases (graph/convolution_phases.h) are filters of
// one convolution over the input itself, and each is stored at its places in the result.
#pragma once

#include "compiler/graph/convolution_phases.h"
#include "compiler/kernel/builder.h"
#include "compiler/lower/element_emitter.h"

#include <memory>

namespace firn::lower {

class PhaseConvolution {
public:
  // Nothing unless the filter's phases fill vectors of `lanes` channels and the filter is a constant.
  static std::shared_ptr<const PhaseConvolution> create(const Instruction& convolution, Value filter,
                                                        int lanes);

  // What is computed instead: of the result's dims, channels are phases x filters and positions are groups.
  const Instruction& convolution() const { return *convolution_; }
  Value filter() const { return convolution_->operand(1); }

  // Where the element of that convolution at `index` belongs in the result.
  Index result_index(const Index& index) const;
  // Runs `store` if that place is inside the result.
  void store_inside(kernel::Builder& builder, const Index& result_index,
                    const std::function<void()>& store) const;

private:
  explicit PhaseConvolution(ConvolutionPhases phases)
      : phases_(std::move(phases)), region_(nullptr, nullptr) {}

  ConvolutionPhases phases_;
  int64_t filters_ = 0; // of each phase
  Region region_;
  const Instruction* convolution_ = nullptr;
};

} // namespace firn::lower
