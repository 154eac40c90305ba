// Programs as the body of @main in .hlo text, and checks of what they evaluate to.
#pragma once

#include "compiler/graph/evaluate.h"
#include "compiler/graph/hlo_text.h"

#include <catch2/catch.hpp>

namespace firn::test {

// Parses the module, or fails the test with the parser's message.
std::unique_ptr<Module> parse(const std::string& text);
// A module whose @main is `body`, without its `return`, and returns %r of the given type.
std::unique_ptr<Module> program(const std::string& body, const std::string& type);
// A literal as `elements` in .hlo text, "1, nan, -0.0", of a type such as "f32[3]".
LiteralRef literal(const std::string& elements, const std::string& type);

// Checks that %r of `body` has the type and the elements: bit by bit, so that -0.0 is not 0.0; any NaN equals
// any other.
void expect(const std::string& body, const std::string& type, const std::string& elements);
// Checks that evaluating `body` fails with a message that contains `part`.
void expect_error(const std::string& body, const std::string& type, const std::string& part,
                  Fault fault = Fault::Model);
void expect_equal(const Literal& actual, const Literal& wanted);
// %x and %y are constants, %r is `op` of them: "add %x, %y : f32[2]".
void expect_unary(const std::string& op, const std::string& type, const std::string& x,
                  const std::string& wanted);
void expect_binary(const std::string& op, const std::string& type, const std::string& x, const std::string& y,
                   const std::string& wanted);

} // namespace firn::test
