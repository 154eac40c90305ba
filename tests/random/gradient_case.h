// A graph with a gradient: the operator Gradient behind a graph that was drawn.
#pragma once

#include "tests/random/generate.h"

namespace firn::test {

// The case with one more node, which derives one of the graph's outputs by its float inputs. What it has to
// give is what the evaluator gives; the error that it may have is a few times that which rounding to the
// graph's types makes, as evaluation in f64 shows. Without a value, `why` says what the graph lacks.
std::optional<TestCase> with_gradient(TestCase test, std::string& why);

} // namespace firn::test
