// Ops on strings.
#include "tests/evaluator/hlo_case.h"

using namespace firn;
using namespace firn::test;

namespace {
const std::string three =
    R"(%x = constant ["b", "", "ab"] : string[3] %y = constant ["a", "x", ""] : string[3] )";
}

TEST_CASE("strings are joined, looked up and compared", "[evaluator]") {
  expect(three + "%r = text_concatenate %x, %y : string[3]", "string[3]", R"("ba", "x", "ab")");
  expect(three + R"(%k = constant ["ab", "b", "ab"] : string[3] %r = text_find %x, %k : i64[3])", "i64[3]",
         "1, -1, 0");
  expect(three + R"(%k = constant [] : string[0] %r = text_find %x, %k : i64[3])", "i64[3]", "-1, -1, -1");
  expect(three + "%r = compare %x, %y {direction = ge} : bool[3]", "bool[3]", "true, false, true");
}

TEST_CASE("strings are matched", "[evaluator]") {
  expect(three + R"(%r = text_match %x {pattern = "a?b"} : bool[3])", "bool[3]", "true, false, true");
}

TEST_CASE("strings in upper and lower case", "[evaluator]") {
  expect(R"(%x = constant ["Äb", "1É"] : string[2] %r = text_case %x {to = lower} : string[2])", "string[2]",
         R"("äb", "1é")");
}

TEST_CASE("strings are cut", "[evaluator]") {
  const std::string x = R"(%x = constant [" a  b c ", "", "d"] : string[3] )";
  expect(x + "%p:2 = text_split %x {pieces = 3} : (string[3,3], i64[3]) %r = copy %p#0 : string[3,3]",
         "string[3,3]", R"("a", "b", "c", "", "", "", "d", "", "")");
  expect(x + "%p:2 = text_split %x {pieces = 2, splits = 1} : (string[3,2], i64[3]) %r = copy %p#0 : "
             "string[3,2]",
         "string[3,2]", R"("a", "b c ", "", "", "d", "")");
  expect(
      x + R"(%p:2 = text_split %x {delimiter = " ", pieces = 6} : (string[3,6], i64[3]) %r = copy %p#1 : i64[3])",
      "i64[3]", "6, 1, 1");
  expect_error(x + "%p:2 = text_split %x {pieces = 2} : (string[3,2], i64[3]) %r = copy %p#1 : i64[3]",
               "i64[3]", "more than 2 pieces");
}
