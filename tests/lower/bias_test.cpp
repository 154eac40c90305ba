// Tests where the sums of a convolution or dot meet their bias: in the epilogue, or from their start.
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

TEST_CASE("sums start from the bias unless stores set the pace of the epilogue", "[lower]") {
  // 47 channels: the last vector of biases is a partial one.
  auto text = [](const std::string& epilogue) {
    std::string in = "f32[1,32,9,13]{0,1,2,3:1x16}", out = "f32[1,47,9,13]{0,1,2,3:1x16}",
                weights = "f32[47,32,1,1]";
    return "module @m { func @main(%x: f32[1,32,9,13], %w: " + weights +
           ", %bias: f32[47]) -> (f32[1,47,9,13]) { %b = copy %x : " + in +
           " %v = copy %bias : f32[47] %e = fusion %b, %w, %v {kind = contraction} region (%p: " + in +
           ", %q: " + weights + ", %t: f32[47]) { %c = convolution %p, %q {window = 1x1} : " + out +
           " %u = broadcast_in_dim %t {dims = [1]} : " + out + " %s = add %u, %c : " + out +
           " %z0 = constant [0] : f32[] %z = broadcast_in_dim %z0 {dims = []} : " + out + epilogue + out +
           " return %h } : " + out + " %r = copy %e : f32[1,47,9,13] return %r } }";
  };
  auto additions = [&](const std::string& epilogue) {
    expect_lowered_module(text(epilogue), {.tolerance = 1e-5, .cpus = {"x86-64-v4"}});
    int count = 0;
    for (const auto& kernel : lower_text(text(epilogue), "x86-64-v4").kernels)
      if (!kernel->algorithm.empty()) count += count_ops(kernel->body, firn::kernel::OpKind::FAdd);
    return count;
  };
  CHECK(additions(" %h = maximum %s, %z : ") > 0);
  CHECK(additions(" %six0 = constant [6] : f32[] %six = broadcast_in_dim %six0 {dims = []} :"
                  " f32[1,47,9,13]{0,1,2,3:1x16} %h = clamp %z, %s, %six : ") == 0);
}

namespace {

// Rows x 24 bytes by 24 x `columns`, with integers added that lie along dims `bias` of the result.
std::string biased_dot(int rows, int columns, const std::string& bias, const std::string& dims,
                       const std::string& plan) {
  const std::string m = std::to_string(rows), n = std::to_string(columns), out = "[" + m + "," + n + "]",
                    x = "i8[" + m + ",24]", w = "i8[24," + n + "]",
                    given = plan.empty() ? "" : ", plan = \"" + plan + "\"";
  return "module @m { func @main(%x: " + x + ", %w: " + w + ", %b: i32" + bias + ") -> (i8" + out +
         ") { %r = fusion %x, %w, %b {kind = contraction" + given + "} region (%p: " + x + ", %q: " + w +
         ", %t: i32" + bias +
         ") { %d = dot %p, %q {lhs_batch = [], rhs_batch = [], lhs_contract = [1], "
         "rhs_contract = [0], result = i32} : i32" +
         out + " %u = broadcast_in_dim %t {dims = " + dims + "} : i32" + out + " %s = add %d, %u : i32" +
         out + " %f = convert %s {to = f32} : f32" + out +
         " %k0 = constant [0.001] : f32[] %k = broadcast_in_dim %k0 {dims = []} : f32" + out +
         " %g = multiply %f, %k : f32" + out +
         " %n = narrow %g {high = 127, low = -128, to = i8, zero = -3} : i8" + out + " return %n } : i8" +
         out + " return %r } }";
}

} // namespace

TEST_CASE("integer sums of dots start from their bias where sums lie in general registers", "[lower]") {
  auto additions = [](const std::string& text, const char* cpu) {
    int count = 0;
    for (const auto& kernel : lower_text(text, cpu).kernels)
      count += count_ops(kernel->body, firn::kernel::OpKind::IAdd);
    return count;
  };
  const LoweredOptions options{.tolerance = 0,
                               .ranges = {{"x", {-128, 127}}, {"w", {-128, 127}}, {"b", {-90000, 90000}}},
                               .cpus = {"cortex-m4", "generic-rv64", "native"}};
  for (int rows : {1, 3})
    for (int columns : {1, 4, 7}) {
      const std::string n = std::to_string(columns), m = std::to_string(rows);
      expect_lowered_module(biased_dot(rows, columns, "[" + n + "]", "[1]", ""), options);
      expect_lowered_module(biased_dot(rows, columns, "[" + m + "]", "[0]", ""), options);
      expect_lowered_module(biased_dot(rows, columns, "[]", "[]", ""), options);
    }
  const std::string text = biased_dot(3, 7, "[7]", "[1]", "");
  CHECK(additions(text, "cortex-m4") == 0);
  CHECK(additions(text, "x86-64") > 0);
  // Parts of the reduction have no common start.
  const std::string parts =
      biased_dot(3, 7, "[7]", "[1]", "direct mac dot4 i8 i8 i32 tile 1x1 columns outermost split_k 2");
  expect_lowered_module(parts, {.tolerance = 0, .ranges = options.ranges, .cpus = {"cortex-m4"}});
}
