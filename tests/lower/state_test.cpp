// Declared state: results that live in the memory of parameters, in place where nothing is lost by it.
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn;
using namespace firn::test;

namespace {

struct StateCase {
  std::string parameters, types, aliases, body, results;
};

std::string text_of(const StateCase& c) {
  return "module @test {\n  func @main(" + c.parameters + ") -> (" + c.types + ") aliases [" + c.aliases +
         "] {\n" + c.body + "\n    return " + c.results + "\n  }\n}\n";
}

// Steps that copy from one buffer to another as it is.
int64_t unroll_of(const StateCase& c) {
  kernel::Program program = lower_text(text_of(c), "x86-64-v3");
  return std::count_if(program.steps.begin(), program.steps.end(),
                       [](const kernel::Step& step) { return step.is_copy; });
}

void expect_state(const StateCase& c, int64_t unroll) {
  INFO(text_of(c));
  CHECK(unroll_of(c) == unroll);
  expect_lowered_module(text_of(c));
}

} // namespace

TEST_CASE("a state that is computed element by element is written where it is read") {
  expect_state({.parameters = "%x: f32[37], %s: f32[37]",
                .types = "f32[37], f32[37]",
                .aliases = "-1, 1",
                .body = "    %n = add %x, %s : f32[37]\n    %y = multiply %n, %x : f32[37]",
                .results = "%y, %n"},
               0);
}

TEST_CASE("a state that is read after its new value is made is copied at the end") {
  expect_state({.parameters = "%x: f32[8], %s: f32[8]",
                .types = "f32[8], f32[8]",
                .aliases = "-1, 1",
                .body =
                    "    %n = reverse %x {dims = [0]} : f32[8]\n    %e = reverse %n {dims = [0]} : f32[8]\n"
                    "    %y = add %e, %s : f32[8]\n",
                .results = "%y, %n"},
               1);
}

TEST_CASE("states can hand their values on, and change places") {
  expect_state({.parameters = "%x: f32[5], %a: f32[5], %b: f32[5]",
                .types = "f32[5], f32[5], f32[5]",
                .aliases = "-1, 1, 2",
                .body = "    %y = add %a, %b : f32[5]\n    %n = negate %x : f32[5]",
                .results = "%y, %n, %a"},
               2);
  std::string swap = text_of({.parameters = "%a: f32[5], %b: f32[5]",
                              .types = "f32[5], f32[5]",
                              .aliases = "0, 1",
                              .body = "",
                              .results = "%b, %a"});
  expect_lowered_module(swap);
}

TEST_CASE("a state may be given out too, stay as it is or become constant") {
  expect_state({.parameters = "%x: f32[6], %a: f32[6], %b: f32[6], %c: f32[6]",
                .types = "f32[6], f32[6], f32[6], f32[6], f32[6]",
                .aliases = "-1, 1, 2, -1, 3",
                .body = "    %n = add %x, %a : f32[6]\n    %k = constant [1, 2, 3, 4, 5, 6] : f32[6]",
                .results = "%n, %n, %b, %c, %k"},
               3);
}

TEST_CASE("a window drops its oldest entries in place, in one move") {
  for (const char* shape : {"2,6,5", "1,6,5", "40,6,1"}) {
    std::string s = shape;
    std::string outer = s.substr(0, s.find(',')), inner = s.substr(s.rfind(',') + 1);
    std::string whole = "f32[" + s + "]", row = "f32[" + outer + ",1," + inner + "]",
                kept = "f32[" + outer + ",5," + inner + "]";
    StateCase window{.parameters = "%x: " + row + ", %s: " + whole,
                     .types = whole + ", " + whole,
                     .aliases = "-1, 1",
                     .body = "    %k = slice %s {starts = [0,1,0], limits = [" + outer + ",6," + inner +
                             "], strides = [1,1,1]} : " + kept + "\n    %m = negate %x : " + row +
                             "\n    %n = concatenate %k, %m {dim = 1} : " + whole +
                             "\n    %y = negate %n : " + whole,
                     .results = "%y, %n"};
    expect_state(window, 0);
    kernel::Program program = lower_text(text_of(window), "x86-64-v3");
    CHECK(program.steps.size() == 4);
    CHECK(std::none_of(program.buffers.begin(), program.buffers.end(), [](const kernel::Buffer& buffer) {
      return buffer.name == "n" && buffer.offset >= 0;
    }));
  }
}

TEST_CASE("a window is not moved before its old entries are read") {
  expect_state({.parameters = "%x: f32[1], %s: f32[6]",
                .types = "f32[6], f32[6]",
                .aliases = "-1, 1",
                .body = "    %k = slice %s {starts = [1], limits = [6], strides = [1]} : f32[5]\n"
                        "    %n = concatenate %k, %x {dim = 0} : f32[6]\n"
                        "    %r = reverse %n {dims = [0]} : f32[6]\n    %y = add %r, %s : f32[6]",
                .results = "%y, %n"},
               1);
}

TEST_CASE("a cache is updated at a position without being copied") {
  expect_state({.parameters = "%row: f32[1,3], %at: i64[1,1], %cache: f32[40,3]",
                .types = "f32[1,3], f32[40,3]",
                .aliases = "-1, 2",
                .body = "    %z = constant [0] : i64[1,1]\n    %i = minimum %at, %z : i64[1,1]\n"
                        "    %n = scatter_nd %cache, %i, %row {reduction = none} : f32[40,3]\n"
                        "    %t = slice %n {starts = [1,0], limits = [2,3], strides = [1,1]} : f32[1,3]\n"
                        "    %y = negate %t : f32[1,3]",
                .results = "%y, %n"},
               0);
}
