// Modules in text form whose gradients are derived and evaluated.
#pragma once

#include "compiler/graph/composites.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/hlo_text.h"

#include <catch2/catch.hpp>

#include <random>

namespace firn::test {

// Parses the text, derives the declared gradients, and verifies what came of it; fails the test otherwise.
std::unique_ptr<Module> differentiated(const std::string& text);
// The reason for which the gradients of the module are refused.
std::string refusal(const std::string& text);

// Literals of the parameters' types, given as .hlo text, "1, 2.5".
std::vector<LiteralRef> literals_of(const Function& function, const std::vector<std::string>& inputs);
// Runs a function on such literals.
std::vector<LiteralRef> run(const Module& module, const std::string& function,
                            const std::vector<std::string>& inputs);
// The elements of a result.
std::vector<double> elements(const Literal& literal);

// A parameter of a function that a test builds.
struct TestParameter {
  const char* name;
  std::vector<int64_t> dims;
  DType dtype = DType::F64;
};
// A module with @f over the parameters, whose floats are widened to f64, as text.
std::string text_of(const std::vector<TestParameter>& parameters, const CompositeBody& body);

// A gradient by all float parameters of a function, of one result.
struct Declared {
  std::string primal, gradient;
  int from;
};
// Declares the gradients of each float result of a function, and the gradients of these.
std::vector<Declared> declare_both_orders(Module& module, const std::string& function);
// Values for the parameters of a function at drawn extents, by the names of parameters as below.
std::vector<LiteralRef> draw_inputs(const Module& module, const Function& function, std::mt19937_64& random);

// Checks the gradients of a function by all of its float parameters, of each of its float results, and the
// gradients of these, against differences at random extents; and that a gradient and its own gradient by
// the seed are transposes. A parameter's name up to '_' says its values: positive (0.3 to 2), signed (0.3
// to 1.2 of either sign), distinct (such numbers, none close to another), small (-0.2 to 0.2), large (1.3
// to 3), unit (0.41 to 0.5), ratio (1.05 to 1.15), index5 (integers from -5 to 4), start3 (0 to 3), flag,
// and all else numbers from -0.9 to 0.9.
void check_by_differences(const std::string& text, const std::string& function, int draws);

} // namespace firn::test
