// Regions over scalars (of reduce, reduce_window, select_and_scatter, sort), compiled to a list of steps on
// single elements so that calling them millions of times is bearable. Regions with other ops run through the
// interpreter.
#pragma once

#include "compiler/graph/evaluate_wide_elements.h"

namespace firn::evaluation {

class ScalarRegion {
public:
  // The region's parameters must be scalars with a domain.
  static Expected<ScalarRegion> create(const OpCall& call, int region);

  int num_parameters() const { return static_cast<int>(parameters_.size()); }
  WideElements& parameter(int index) { return slots_[static_cast<size_t>(index)]; }
  const WideElements& result(int index = 0) const { return slots_[results_[static_cast<size_t>(index)]]; }
  // Computes the results from the parameters.
  Result run();

private:
  struct Step {
    ElementOp op;
    size_t operands[3];
    size_t result;
  };
  explicit ScalarRegion(const OpCall& call) : call_(&call) {}
  // False if an instruction is not an elementwise op on scalars.
  bool compile(const Region& region);
  Result run_interpreted();

  const OpCall* call_;
  const Region* region_ = nullptr;
  std::vector<DType> parameters_;
  std::vector<WideElements> slots_; // parameters first; one element each
  std::vector<Step> steps_;
  std::vector<size_t> results_;
  bool compiled_ = false;
};

} // namespace firn::evaluation
