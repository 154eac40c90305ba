// Tests where the epilogue of a convolution adds its bias.
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
