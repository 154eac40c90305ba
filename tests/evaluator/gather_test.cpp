// Computed indices: gather and scatter in their three forms, negative and out-of-range indices.
#include "tests/evaluator/hlo_case.h"

using namespace firn;
using namespace firn::test;

namespace {
const std::string matrix = "%x = constant [1, 2, 3, 4, 5, 6] : i32[2,3] ";
}

TEST_CASE("gather", "[evaluator]") {
  expect(matrix + "%i = constant [2, -3, 0] : i64[3] %r = gather %x, %i {axis = 1} : i32[2,3]", "i32[2,3]",
         "3, 1, 1, 6, 4, 4");
  expect(matrix + "%i = constant [1] : i8[] %r = gather %x, %i {axis = 0} : i32[3]", "i32[3]", "4, 5, 6");
  expect(matrix + "%i = constant [] : i32[0,2] %r = gather %x, %i {axis = 0} : i32[0,2,3]", "i32[0,2,3]", "");
  expect("%x = constant [\"a\", \"b\"] : string[2] %i = constant [1, 1] : i64[2] %r = gather %x, %i {axis = "
         "0} : string[2]",
         "string[2]", "\"b\", \"b\"");
  expect_error(matrix + "%i = constant [3] : i64[1] %r = gather %x, %i {axis = 1} : i32[2,1] loc(\"/pick\")",
               "i32[2,1]", "/pick (gather): index 3 is out of range for dim 1 of i32[2,3]");
  expect_error(matrix + "%i = constant [-4] : i64[1] %r = gather %x, %i {axis = 1} : i32[2,1]", "i32[2,1]",
               "index -4");
}

TEST_CASE("gather_elements", "[evaluator]") {
  expect(matrix + "%i = constant [0, 2, -1, 1] : i64[2,2] %r = gather_elements %x, %i {axis = 1} : i32[2,2]",
         "i32[2,2]", "1, 3, 6, 5");
  expect(matrix + "%i = constant [1, 0, 1] : i64[1,3] %r = gather_elements %x, %i {axis = 0} : i32[1,3]",
         "i32[1,3]", "4, 2, 6");
  expect_error(matrix + "%i = constant [0, 2] : i64[2,1] %r = gather_elements %x, %i {axis = 0} : i32[2,1]",
               "i32[2,1]", "index 2 is out of range");
}

TEST_CASE("gather_nd", "[evaluator]") {
  expect(matrix + "%i = constant [0, 2, -1, 0] : i64[2,2] %r = gather_nd %x, %i {batch_dims = 0} : i32[2]",
         "i32[2]", "3, 4");
  expect(matrix + "%i = constant [1] : i64[1,1] %r = gather_nd %x, %i {batch_dims = 0} : i32[1,3]",
         "i32[1,3]", "4, 5, 6");
  expect(matrix + "%i = constant [2, 0] : i64[2,1] %r = gather_nd %x, %i {batch_dims = 1} : i32[2]", "i32[2]",
         "3, 4");
  expect_error(matrix + "%i = constant [0, 3] : i64[1,2] %r = gather_nd %x, %i {batch_dims = 0} : i32[1]",
               "i32[1]", "index 3 is out of range for dim 1");
}

TEST_CASE("scatter_elements", "[evaluator]") {
  std::string x = "%x = constant [1.0, 2.0, 3.0] : f32[3] %i = constant [0, -1, 0] : i64[3] %u = constant "
                  "[5.0, 0.5, 7.0] : f32[3] ";
  auto scatter = [&](const std::string& reduction, const std::string& wanted) {
    expect(x + "%r = scatter_elements %x, %i, %u {axis = 0, reduction = " + reduction + "} : f32[3]",
           "f32[3]", wanted);
  };
  scatter("none", "7.0, 2.0, 0.5");
  scatter("add", "13.0, 2.0, 3.5");
  scatter("multiply", "35.0, 2.0, 1.5");
  scatter("maximum", "7.0, 2.0, 3.0");
  scatter("minimum", "1.0, 2.0, 0.5");
  expect(matrix + "%i = constant [2, 0] : i64[2,1] %u = constant [8, 9] : i32[2,1] "
                  "%r = scatter_elements %x, %i, %u {axis = 1, reduction = none} : i32[2,3]",
         "i32[2,3]", "1, 2, 8, 9, 5, 6");
  expect_error(x + "%j = constant [0, 1, 3] : i64[3] %r = scatter_elements %x, %j, %u {axis = 0, reduction = "
                   "none} : f32[3]",
               "f32[3]", "index 3");
}

TEST_CASE("scatter_nd", "[evaluator]") {
  expect(matrix + "%i = constant [1, 0] : i64[2,1] %u = constant [7, 8, 9, 4, 5, 6] : i32[2,3] "
                  "%r = scatter_nd %x, %i, %u {reduction = none} : i32[2,3]",
         "i32[2,3]", "4, 5, 6, 7, 8, 9");
  expect(matrix + "%i = constant [0, 1, 0, 1] : i64[2,2] %u = constant [10, 20] : i32[2] "
                  "%r = scatter_nd %x, %i, %u {reduction = add} : i32[2,3]",
         "i32[2,3]", "1, 32, 3, 4, 5, 6");
  expect_error(matrix + "%i = constant [1] : i64[1,1] %u = constant [7, 8] : i32[1,2] "
                        "%r = scatter_nd %x, %i, %u {reduction = none} : i32[2,3]",
               "i32[2,3]", "updates are i32[1,2], the indices want i32[1,3]");
}
