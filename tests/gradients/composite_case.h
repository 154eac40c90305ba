// Rules of composites against the derivatives of their bodies.
#pragma once

#include "tests/gradients/object_case.h"

namespace firn::test {

// The module with @g, the gradient of the first result of @f by all float parameters.
std::string with_gradient(const std::string& text);

// The text with another name of the composite, for which there is no rule: its body is derived.
std::string by_body(std::string text);

// Checks that the gradients of @f, a function over one composite in f64, are by the composite's rule those of
// its body, at `draws` of the inputs, and that their objects in f32 give them.
void check_rule(const std::string& text, int draws);
// Checks the rule, and gradients of both orders against differences.
void check_composite(const std::string& text, int draws);

} // namespace firn::test
