// Transposed convolutions as polyphase ones: all phases (graph/convolution_phases.h) are filters of one
// convolution over the input itself, and each is stored at its places in the result.
#pragma once

#include "compiler/graph/convolution_phases.h"
#include "compiler/support/int_expr.h"

#include <memory>

namespace firn::plan {

class PolyphaseConvolution {
public:
  // Whether the filter's phases fill vectors of `lanes` channels and the filter is a constant.
  static bool applies(const Instruction& convolution, Value filter, int lanes);
  // Nothing unless it applies. Makes the filters of all phases.
  static std::shared_ptr<const PolyphaseConvolution> create(const Instruction& convolution, Value filter,
                                                            int lanes);

  // What is computed instead: of the result's dims, channels are phases x filters and positions are groups.
  const Instruction& convolution() const { return *convolution_; }
  Value filter() const { return convolution_->operand(1); }
  const ConvolutionPhases& phases() const { return phases_; }

  // Where the element of that convolution at `index` belongs in the result; it may be outside.
  std::vector<IntExpr> result_index(const std::vector<IntExpr>& index) const;

private:
  explicit PolyphaseConvolution(ConvolutionPhases phases)
      : phases_(std::move(phases)), region_(nullptr, nullptr) {}

  ConvolutionPhases phases_;
  int64_t filters_ = 0; // of each phase
  Region region_;
  const Instruction* convolution_ = nullptr;
};

} // namespace firn::plan
