// How well conditioned a node is on given operands, found by trying: the node is evaluated again on operands
// that are off by what rounding may have done to them.
#pragma once

#include "tests/random/random_source.h"
#include "tests/random/test_graph.h"

namespace firn::test {

struct NodeOutcome {
  std::vector<TestValue> results; // empty if the node cannot stay
  bool counted = false;           // dims of a result depend on data
  std::string refusal;            // the importer's or evaluator's message, for a node that ought to be valid
};

// Evaluates `node` alone, on the values that its operands have in a run. Operands that are known are
// initializers there.
NodeOutcome evaluate_node(const Values& values, const TestNode& node, RandomSource& random);

// Rounding of one operation: half the distance of neighbours at 1, for f64 what polynomials for f64 reach.
double unit_roundoff(DType dtype);

} // namespace firn::test
