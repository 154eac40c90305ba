// reduce_window and select_and_scatter.
#include "tests/evaluator/hlo_case.h"

using namespace firn;
using namespace firn::test;

namespace {

void expect_window(const std::string& op, const std::string& dtype, const std::string& dims,
                   const std::string& x, const std::string& initial, const std::string& window,
                   const std::string& result_dims, const std::string& wanted) {
  std::string type = dtype + result_dims;
  expect("%x = constant [" + x + "] : " + dtype + dims + " %i = constant [" + initial + "] : " + dtype +
             "[] %r = reduce_window %x, %i {window = " + window + "} region (%a: " + dtype +
             "[], %b: " + dtype + "[]) { %s = " + op + " %a, %b : " + dtype + "[] return %s } : " + type,
         type, wanted);
}

} // namespace

TEST_CASE("pooling windows", "[evaluator]") {
  expect_window("maximum", "f32", "[5]", "1.0, 5.0, 2.0, nan, 3.0", "-inf", "2", "[4]", "5.0, 5.0, nan, nan");
  expect_window("maximum", "i8", "[5]", "1, 5, 2, 0, 3", "-128", "3 stride 2", "[2]", "5, 3");
  expect_window("maximum", "i8", "[4]", "-1, -5, -2, -3", "-128", "2 pad 1_1 stride 2", "[3]", "-1, -2, -3");
  expect_window("add", "f32", "[5]", "1.0, 2.0, 3.0, 4.0, 5.0", "0.0", "2 dilate 2", "[3]", "4.0, 6.0, 8.0");
  expect_window("add", "f32", "[4]", "1.0, 2.0, 3.0, 4.0", "0.0", "2 pad -1_-1", "[1]", "5.0");
  expect_window("add", "f32", "[2]", "1.0, 2.0", "0.0", "2 input_dilate 3", "[3]", "1.0, 0.0, 2.0");
  expect_window("add", "f32", "[2]", "1.0, 2.0", "0.5", "2 pad 1_0", "[2]", "2.0, 3.5");
  expect_window("add", "i32", "[1,3,3]", "1, 2, 3, 4, 5, 6, 7, 8, 9", "0", "1x2x2", "[1,2,2]",
                "12, 16, 24, 28");
  expect_window("add", "f32", "[1]", "1.0", "0.0", "3", "[0]", "");
}

TEST_CASE("windows with an arbitrary region", "[evaluator]") {
  expect("%x = constant [1.0, 2.0, 3.0] : f32[3] %i = constant [0.0] : f32[] %r = reduce_window %x, %i "
         "{window = 2} "
         "region (%a: f32[], %b: f32[]) { %c = multiply %b, %b : f32[] %d = add %a, %c : f32[] return %d } : "
         "f32[2]",
         "f32[2]", "5.0, 13.0");
}

TEST_CASE("select_and_scatter is the adjoint of max pooling", "[evaluator]") {
  expect("%x = constant [1.0, 5.0, 2.0, 3.0] : f32[4] %s = constant [10.0, 20.0, 30.0] : f32[3] %i = "
         "constant [0.0] : f32[] "
         "%r = select_and_scatter %x, %s, %i {window = 2} "
         "region (%a: f32[], %b: f32[]) { %c = compare %a, %b {direction = ge} : bool[] return %c }, "
         "region (%p: f32[], %q: f32[]) { %t = add %p, %q : f32[] return %t } : f32[4]",
         "f32[4]", "0.0, 30.0, 0.0, 30.0");
}
