// The gradients of a model, by the evaluator in f64, against finite differences.
#pragma once

#include "compiler/graph/evaluate.h"

#include <string>
#include <vector>

namespace firn::test {

enum class GradientVerdict {
  Right,
  None,  // there is nothing to derive, or the graph has no gradient, as the message says
  Wrong, // it differs
  Failed // the passes or the evaluator refuse what they ought to take
};

struct GradientOutcome {
  GradientVerdict verdict;
  std::string message;
};

// Derives the float results of @main, of up to three, by its float parameters, and compares at the inputs of
// each run: values of the parameters in any type of floats, which are moved a little, off the kinks that
// round numbers lie on. With order 2 the gradients are derived once more, by the parameters and their own
// seeds. The seed also decides whether the passes that a compilation runs first stand before differentiate.
GradientOutcome check_model_gradients(Module& module, const std::vector<std::vector<LiteralRef>>& runs,
                                      uint64_t seed, int order = 1);

} // namespace firn::test
