// Building, running and comparing small programs.
#include "tests/evaluator/hlo_case.h"

#include <cmath>

namespace firn::test {

std::unique_ptr<Module> parse(const std::string& text) {
  INFO(text);
  auto module = parse_module("case", text);
  if (!module) FAIL(module.error().message);
  return std::move(*module);
}

std::unique_ptr<Module> program(const std::string& body, const std::string& type) {
  return parse("module @case { func @main() -> (" + type + ") {\n" + body + "\nreturn %r } }");
}

LiteralRef literal(const std::string& elements, const std::string& type) {
  return program("%r = constant [" + elements + "] : " + type, type)
      ->main()
      .body()
      .results()[0]
      .def->literal();
}

void expect_equal(const Literal& actual, const Literal& wanted) {
  REQUIRE(actual.type().to_string() == wanted.type().to_string());
  CHECK(actual.string_values() == wanted.string_values());
  for (int64_t i = 0; i < wanted.num_elements() && is_float(wanted.dtype()); ++i) {
    double x = actual.get_double(i), y = wanted.get_double(i);
    INFO("element " << i << " is " << x << ", wanted " << y);
    CHECK(((std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y))));
  }
  for (int64_t i = 0;
       i < wanted.num_elements() && (is_integer(wanted.dtype()) || wanted.dtype() == DType::Bool); ++i) {
    INFO("element " << i);
    CHECK(actual.get_int(i) == wanted.get_int(i));
  }
  if (is_complex(wanted.dtype())) {
    bool same = std::equal(actual.bytes().begin(), actual.bytes().end(), wanted.bytes().begin(),
                           wanted.bytes().end());
    CHECK(same);
  }
}

void expect(const std::string& body, const std::string& type, const std::string& elements) {
  INFO(body);
  auto module = program(body, type);
  auto results = evaluate(*module, {});
  if (!results) FAIL(results.error().message);
  expect_equal(*results->front(), *literal(elements, type));
}

void expect_error(const std::string& body, const std::string& type, const std::string& part, Fault fault) {
  INFO(body);
  auto module = program(body, type);
  auto results = evaluate(*module, {});
  REQUIRE_FALSE(results);
  CHECK_THAT(results.error().message, Catch::Contains(part));
  CHECK(results.error().fault == fault);
}

void expect_unary(const std::string& op, const std::string& type, const std::string& x,
                  const std::string& wanted) {
  expect("%x = constant [" + x + "] : " + type + "\n%r = " + op + " %x : " + type, type, wanted);
}

void expect_binary(const std::string& op, const std::string& type, const std::string& x, const std::string& y,
                   const std::string& wanted) {
  expect("%x = constant [" + x + "] : " + type + "\n%y = constant [" + y + "] : " + type + "\n%r = " + op +
             " %x, %y : " + type,
         type, wanted);
}

} // namespace firn::test
