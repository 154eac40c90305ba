// The gradients of one graph, by the evaluator in f64, against finite differences.
#pragma once

#include "tests/random/check_case.h"

namespace firn::test {

// Derives the graph's float results by its float inputs, from the imported graph or behind the passes that a
// compilation runs first, and compares at the inputs of every run. A graph that has no gradient, as its
// message says, is a limit.
Verdict check_gradients(const TestCase& test, uint64_t seed, int order,
                        const std::function<void(const std::string&)>& phase);

} // namespace firn::test
