// The register tile that convolutions and matrix products are made of: 14 rows by 2 vectors in 28
// accumulators.
#include "tests/codegen/model_object.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace firn::test {

using namespace kernel;

static constexpr int rows = 14, lanes = 16;

// out[rows][32] = a[rows][depth] * b[depth][32], as loop-carried vectors.
static std::unique_ptr<Kernel> tile_kernel(int64_t depth) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = "tile";
  Builder b(*kernel);
  int lhs = b.add_parameter("lhs", Scalar::F32, rows * depth, false);
  int rhs = b.add_parameter("rhs", Scalar::F32, depth * 2 * lanes, false);
  int out = b.add_parameter("out", Scalar::F32, rows * 2 * lanes, true);
  MachineType wide{Scalar::F32, lanes};
  std::vector<Register> zero(2 * rows, b.constant(wide, 0));
  auto result = b.loop_carried(0, depth, 1, zero, [&](const IntExpr& k, const std::vector<Register>& sums) {
    std::vector<Register> next = sums;
    Register columns[2] = {b.load(wide, rhs, 2 * lanes * k, 64),
                           b.load(wide, rhs, 2 * lanes * k + lanes, 64)};
    for (int r = 0; r < rows; ++r) {
      Register x = b.splat(b.load({Scalar::F32, 1}, lhs, r * depth + k), lanes);
      for (int c = 0; c < 2; ++c) next[2 * r + c] = b.fma(x, columns[c], next[2 * r + c]);
    }
    return next;
  });
  for (int i = 0; i < 2 * rows; ++i) b.store(result[i], out, i * lanes);
  return kernel;
}

TEST_CASE("a 14x2 tile keeps its 28 accumulators in registers", "[codegen]") {
  Program program = program_of(tile_kernel(256));
  auto assembly = codegen::emit_assembly(program, options_for(target_of("x86_64-linux-gnu", "znver4")));
  if (!assembly) FAIL(assembly.error().message);
  std::istringstream lines(*assembly);
  // Innermost loop: from its label to the jump back.
  int fmas = 0, stack = 0, all = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("vfmadd") != std::string::npos) ++fmas;
    if (line.find("(%rsp)") != std::string::npos || line.find("(%rbp)") != std::string::npos) ++stack;
    ++all;
  }
  INFO(*assembly);
  CHECK(fmas == 28);
  CHECK(stack == 0);
}

TEST_CASE("the tile computes the product", "[codegen]") {
  constexpr int64_t depth = 256;
  Program program = program_of(tile_kernel(depth));
  Machine target = host_target();
  LoadedObject object(program, options_for(target));
  std::vector<float> a(rows * depth), b(depth * 32), c(rows * 32), expected(rows * 32);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 17) - 8;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 13) - 6;
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < depth; ++k)
      for (int n = 0; n < 32; ++n) expected[r * 32 + n] += a[r * depth + k] * b[k * 32 + n];
  CHECK(object.run({a.data(), b.data()}, {c.data()}) == 0);
  CHECK(c == expected);
  if (std::getenv("FIRN_MEASURE")) {
    double best = 1e9;
    for (int i = 0; i < 200; ++i) {
      auto start = std::chrono::steady_clock::now();
      for (int j = 0; j < 1000; ++j) object.run({a.data(), b.data()}, {c.data()});
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    WARN("tile: " << 2.0 * rows * depth * 32 * 1000 / best * 1e-9 << " GFLOP/s");
  }
}

} // namespace firn::test
