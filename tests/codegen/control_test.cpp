// Loops with carried values and copies, branches, while loops, index arithmetic and parallel ranges.
#include "tests/codegen/model_object.h"
#include "tests/codegen/op_runner.h"

#include <catch2/catch.hpp>

#include <numeric>

namespace firn::test {

using namespace kernel;

static const MachineType i32{Scalar::I32, 1};

static std::vector<int32_t> run_kernel(const Machine& target, const std::vector<int32_t>& in, size_t out_size,
                                       const std::function<void(Builder&)>& build) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = "kernel_under_test";
  Builder b(*kernel);
  b.add_parameter("in", Scalar::I32, static_cast<int64_t>(in.size()), false, 4);
  b.add_parameter("out", Scalar::I32, static_cast<int64_t>(out_size), true, 4);
  build(b);
  Program program = program_of(std::move(kernel));
  std::vector<int32_t> out(out_size, -1);
  if (target.arch == Arch::X86_64) {
    LoadedObject(program, options_for(target)).run({in.data()}, {out.data()});
    return out;
  }
  std::vector<std::vector<char>> outputs = {bytes_of(out)};
  EmulatedObject(program, options_for(target)).run({bytes_of(in)}, outputs);
  return numbers_of<int32_t>(outputs[0]);
}

// out[row][0] = the last carried value, out[row][i] = that of iteration i.
static void hashing_loop(Builder& b, const IntExpr& upper, int64_t step, int64_t unroll, int64_t row) {
  auto last = b.loop_carried(
      1, upper, step, {b.constant_int(i32, 7)},
      [&](const IntExpr& i, const std::vector<Register>& carried) {
        Register index = b.cast(OpKind::IndexCast, b.index(i), Scalar::I32);
        Register next =
            b.binary(OpKind::IAdd, b.binary(OpKind::IMul, carried[0], b.constant_int(i32, 31)), index);
        b.store(next, 1, 32 * row + i);
        return std::vector<Register>{next};
      },
      unroll);
  b.store(last[0], 1, 32 * row);
}

TEST_CASE("unrolled loops do every iteration once and in order", "[control]") {
  // Bounds are known, then read at run time; trip counts lie around the number of copies.
  const std::vector<int32_t> counts = {0, 1, 3, 4, 5, 8, 11};
  for (int64_t unroll : {1, 3, 4}) {
    for (int64_t step : {1, 2}) {
      auto got = run_kernel(host_target(), counts, 2 * 7 * 32, [&](Builder& b) {
        for (size_t n = 0; n < counts.size(); ++n) {
          int64_t row = static_cast<int64_t>(n);
          hashing_loop(b, counts[n], step, unroll, row);
          hashing_loop(b, b.symbolic(b.load(i32, 0, row), 0, 31), step, unroll, row + 7);
        }
      });
      for (size_t row = 0; row < 14; ++row) {
        int32_t count = counts[row % 7];
        uint32_t value = 7; // wraps as the kernel's integers do
        std::vector<int32_t> want(32, -1), found(got.begin() + static_cast<std::ptrdiff_t>(32 * row),
                                                 got.begin() + static_cast<std::ptrdiff_t>(32 * row + 32));
        for (int64_t i = 1; i < count; i += step) {
          value = value * 31 + static_cast<uint32_t>(i);
          want[static_cast<size_t>(i)] = static_cast<int32_t>(value);
        }
        want[0] = static_cast<int32_t>(value);
        INFO("unroll " << unroll << ", step " << step << ", count " << count);
        CHECK(found == want);
      }
    }
  }
}

TEST_CASE("branches and while loops carry their values", "[control]") {
  for (const Machine& target : runnable_targets()) {
    auto got = run_kernel(target, {27, 6, 1}, 6, [](Builder& b) {
      b.loop(0, 3, 1, [&](const IntExpr& n) {
        // Collatz steps and the largest number on the way.
        auto result = b.while_loop(
            {b.load(i32, 0, n), b.constant_int(i32, 0), b.constant_int(i32, 0)},
            [&](const std::vector<Register>& v) {
              return b.compare(OpKind::SCmp, Predicate::Ne, v[0], b.constant_int(i32, 1));
            },
            [&](const std::vector<Register>& v) {
              Register odd =
                  b.compare(OpKind::SCmp, Predicate::Eq, b.binary(OpKind::And, v[0], b.constant_int(i32, 1)),
                            b.constant_int(i32, 1));
              Register next = b.if_then_else(
                  odd,
                  [&] {
                    Register tripled = b.binary(OpKind::IMul, v[0], b.constant_int(i32, 3));
                    return std::vector<Register>{b.binary(OpKind::IAdd, tripled, b.constant_int(i32, 1))};
                  },
                  [&] {
                    return std::vector<Register>{b.binary(OpKind::LShr, v[0], b.constant_int(i32, 1))};
                  })[0];
              return std::vector<Register>{next, b.binary(OpKind::IAdd, v[1], b.constant_int(i32, 1)),
                                           b.binary(OpKind::SMax, v[2], next)};
            });
        b.store(result[1], 1, 2 * n);
        b.store(result[2], 1, 2 * n + 1);
      });
    });
    INFO(target.processor);
    CHECK(got == std::vector<int32_t>{111, 9232, 8, 16, 0, 0});
  }
}

TEST_CASE("index expressions divide towards minus infinity", "[control]") {
  std::vector<int32_t> in(9);
  std::iota(in.begin(), in.end(), -4);
  for (const Machine& target : runnable_targets()) {
    auto got = run_kernel(target, in, 9 * 6, [](Builder& b) {
      b.loop(0, 9, 1, [&](const IntExpr& n) {
        IntExpr x = b.symbolic(b.load(i32, 0, n), -4, 4);
        IntExpr results[] = {floor_div(x, 3), floor_mod(x, 3),        floor_div(x, 4),
                             floor_mod(x, 4), min(x, 2) * max(x, -1), floor_div(x + 4, 3)};
        for (int r = 0; r < 6; ++r)
          b.store(b.cast(OpKind::IndexCast, b.index(results[r]), Scalar::I32), 1, 6 * n + r);
      });
    });
    for (int x = -4; x <= 4; ++x) {
      auto down = [](int a, int d) { return (a - (a % d + d) % d) / d; };
      int want[] = {
          down(x, 3), x - 3 * down(x, 3), down(x, 4), x - 4 * down(x, 4), std::min(x, 2) * std::max(x, -1),
          (x + 4) / 3};
      for (int r = 0; r < 6; ++r) {
        INFO(target.processor << ", x = " << x << ", result " << r);
        CHECK(got[static_cast<size_t>(6 * (x + 4) + r)] == want[r]);
      }
    }
  }
}

TEST_CASE("a parallel kernel covers its range, with scratch of its own", "[control]") {
  for (const Machine& target : runnable_targets()) {
    auto got = run_kernel(target, std::vector<int32_t>(64, 5), 64, [](Builder& b) {
      int scratch = b.add_scratch("s", Scalar::I32, 16);
      IntExpr p = b.set_parallel(4);
      b.loop(0, 16, 1, [&](const IntExpr& i) {
        Register index = b.cast(OpKind::IndexCast, b.index(16 * p + i), Scalar::I32);
        b.store(b.binary(OpKind::IMul, b.load(i32, 0, 16 * p + i), index), scratch, 15 - i);
      });
      b.loop(0, 16, 1, [&](const IntExpr& i) { b.store(b.load(i32, scratch, i), 1, 16 * p + 15 - i); });
    });
    INFO(target.processor);
    for (int i = 0; i < 64; ++i) CHECK(got[static_cast<size_t>(i)] == 5 * i);
  }
}

} // namespace firn::test
