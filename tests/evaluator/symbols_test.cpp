// Symbolic input dims: binding, bounds, consistency, and the messages that name the input.
#include "tests/evaluator/hlo_case.h"

using namespace firn;
using namespace firn::test;

namespace {

const char* module_text = "module @m { symbol batch in [1, 8] symbol width in [1, inf] "
                          "func @main(%x: f32[batch,2*width], %y: f32[width,batch]) -> (f32[2*width,batch]) "
                          "inputs [\"image\", \"mask\"] { "
                          "%t = transpose %x {permutation = [1, 0]} : f32[2*width,batch] "
                          "%z = concatenate %y, %y {dim = 0} : f32[2*width,batch] "
                          "%r = add %t, %z : f32[2*width,batch] return %r } }";

std::string error_for(std::vector<int64_t> image, std::vector<int64_t> mask, DType dtype = DType::F32) {
  auto results =
      evaluate(*parse(module_text), {Literal::splat(dtype, image, 1), Literal::splat(DType::F32, mask, 1)});
  return results ? "" : results.error().message;
}

} // namespace

TEST_CASE("symbols are bound from the inputs", "[evaluator]") {
  auto results = evaluate(*parse(module_text),
                          {Literal::splat(DType::F32, {3, 4}, 1), Literal::splat(DType::F32, {2, 3}, 1)});
  REQUIRE(results);
  expect_equal(*results->front(), *Literal::splat(DType::F32, {4, 3}, 2));
}

TEST_CASE("inputs that do not fit are named", "[evaluator]") {
  CHECK(error_for({3, 4}, {2, 4}) == "input 'mask': dim 1 is 4, wanted batch = 3");
  CHECK(error_for({9, 4}, {2, 9}) == "input 'image': dim 0 is 9, batch = 9 is outside 1..8");
  CHECK(error_for({3, 5}, {2, 3}) == "input 'image': dim 1 is 5, wanted 2*width");
  CHECK(error_for({3, 0}, {0, 3}) == "input 'image': dim 1 is 0, width = 0 is outside 1..");
  CHECK(error_for({3, 4}, {2, 3}, DType::F64) == "input 'image' is f64[3,4], wanted f32[batch,2*width]");
  auto few = evaluate(*parse(module_text), {});
  REQUIRE_FALSE(few);
  CHECK(few.error().message == "@main wants 2 inputs, 0 were given");
}

TEST_CASE("a result that breaks its declared type is an error", "[evaluator]") {
  expect_error("%x = constant [1, 2] : i8[2] %r = concatenate %x, %x {dim = 0} : i8[3] loc(\"/cat\")",
               "i8[3]", "/cat (concatenate): gives i8[4], its type says i8[3]");
}
