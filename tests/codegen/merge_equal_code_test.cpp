// Code that CPUs of one object share: which functions are kept, and that calls reach them.
#include "tests/codegen/model_object.h"

#include <catch2/catch.hpp>

#include <algorithm>

namespace firn::test {

using namespace kernel;

// y = x + x, `n` floats in vectors of `lanes`.
static Program twice(const std::string& name, int64_t n, int lanes) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  Builder b(*kernel);
  int x = b.add_parameter("x", Scalar::F32, n, false, 4), y = b.add_parameter("y", Scalar::F32, n, true, 4);
  b.loop(0, n, lanes, [&](const IntExpr& i) {
    Register value = b.load({Scalar::F32, lanes}, x, i, 4);
    b.store(b.binary(OpKind::FAdd, value, value), y, i, 4);
  });
  return program_of(std::move(kernel));
}

// Kernels in the object that has `first` for `most` and `second` for `least`.
static int64_t kernels_kept(const Program& first, const Machine& max, const Program& second,
                            const Machine& min) {
  codegen::CodegenOptions options = options_for(max);
  options.variants = {{min, &second}};
  auto assembly = codegen::emit_assembly(first, options);
  REQUIRE(assembly);
  int64_t count = 0;
  for (size_t at = 0; (at = assembly->find("\nfirn.k.", at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST_CASE("equal machine code of two CPUs is stored once", "[variants]") {
  auto cpu = [](const char* features) { return target_of("x86_64-linux-gnu", "x86-64", features); };
  Program first = twice("k", 64, 4), second = twice("k.least", 64, 4), longer = twice("k.least", 68, 4);
  CHECK(kernels_kept(first, cpu("+popcnt"), second, cpu("")) == 1);
  CHECK(kernels_kept(first, cpu("+popcnt"), longer, cpu("")) == 2);
  CHECK(kernels_kept(first, cpu("+avx"), second, cpu("")) == 2);
  // Neither CPU follows all code of the other.
  CHECK(kernels_kept(first, cpu("+popcnt"), second, cpu("+movbe")) == 2);
}

TEST_CASE("code that another CPU's stands for runs, and reports know its size", "[variants]") {
  Program first = twice("k", 64, 4), second = twice("k.least", 64, 4);
  codegen::CodegenOptions options = options_for(target_of("x86_64-linux-gnu", "x86-64", "+sse3"));
  options.variants = {{target_of("x86_64-linux-gnu", "x86-64"), &second}};
  LoadedObject object(first, options);
  float in[64], out[64];
  for (int i = 0; i < 64; ++i) in[i] = static_cast<float>(i);
  CHECK(object.run({in}, {out}) == 0);
  for (int i = 0; i < 64; ++i) CHECK(out[i] == 2.f * static_cast<float>(i));
  REQUIRE(object.facts().kernel_text_bytes.size() == 1);
  CHECK(object.facts().kernel_text_bytes[0].first == "k");
  CHECK(object.facts().kernel_text_bytes[0].second > 0);
}

} // namespace firn::test
