// How well conditioned a node is on given operands, found by trying: the node is evaluated again on operands
// that are off by what rounding may have done to them.
#pragma once

#include "tests/random/random_source.h"
#include "tests/random/test_graph.h"

namespace firn::test {

struct NodeOutcome {
  std::vector<TestValue> results; // empty if the node cannot stay
  std::string refusal;            // the importer's or evaluator's message, for a node that ought to be valid
};

// Evaluates `node` alone, on the values that `graph` has for its operands. Operands that are constants of the
// graph are initializers there too.
NodeOutcome evaluate_node(const TestGraph& graph, const TestNode& node, RandomSource& random);

// Rounding of one operation: half the distance of neighbours at 1, for f64 what polynomials for f64 reach.
double unit_roundoff(DType dtype);

} // namespace firn::test
