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
  // Makes the filters of all phases. Nothing if it does not apply.
  static std::shared_ptr<const PolyphaseConvolution> create(const Instruction& convolution, Value filter,
                                                            int lanes);

  // The convolution that is computed instead: the channels of its result are phases x filters, its positions
  // groups of the original's.
  const Instruction& convolution() const { return *convolution_; }
  Value filter() const { return convolution_->operand(1); }
  const ConvolutionPhases& phases() const { return phases_; }

  // The place in the result of that convolution's element at `index`; it may be outside.
  std::vector<IntExpr> result_index(const std::vector<IntExpr>& index) const;

private:
  explicit PolyphaseConvolution(ConvolutionPhases phases)
      : phases_(std::move(phases)), region_(nullptr, nullptr) {}

  ConvolutionPhases phases_;
  int64_t filters_ = 0; // filters of each phase
  Region region_;
  const Instruction* convolution_ = nullptr;
};

} // namespace firn::plan
