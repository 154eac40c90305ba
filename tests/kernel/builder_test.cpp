// Tests which ops the builder folds, and the shape of the code that it makes.
#include "compiler/kernel/builder.h"

#include <catch2/catch.hpp>

#include <limits>

namespace firn::kernel {

static const MachineType f32{Scalar::F32, 1}, i32{Scalar::I32, 1}, wide{Scalar::F32, 8};

struct Fixture {
  Kernel kernel;
  Builder b{kernel};
  int input = b.add_parameter("x", Scalar::F32, 64, /*written=*/false);
  int output = b.add_parameter("y", Scalar::F32, 64, /*written=*/true);

  double number(Register value) {
    double result = std::numeric_limits<double>::quiet_NaN();
    REQUIRE(b.constant_value(value, result));
    return result;
  }
  bool is_constant(Register value) {
    double ignored;
    return b.constant_value(value, ignored);
  }
};

TEST_CASE_METHOD(Fixture, "arithmetic of constants folds in the type's precision") {
  CHECK(number(b.binary(OpKind::FAdd, b.constant(f32, 16777216), b.constant(f32, 1))) == 16777216);
  CHECK(number(b.binary(OpKind::FMul, b.constant(wide, 3), b.constant(wide, 0.5))) == 1.5);
  CHECK(number(b.binary(OpKind::IAdd, b.constant_int(i32, INT32_MAX), b.constant_int(i32, 1))) == INT32_MIN);
  CHECK(number(b.unary(OpKind::FNeg, b.constant(f32, 2))) == -2);
  CHECK(number(b.constant({Scalar::F32, 1}, 0.1)) == static_cast<double>(0.1f));
}

TEST_CASE_METHOD(Fixture, "identities vanish only where floats allow it") {
  Register x = b.load(f32, input, 0);
  CHECK(b.binary(OpKind::FMul, x, b.constant(f32, 1)) == x);
  CHECK(b.binary(OpKind::FSub, x, b.constant(f32, 0)) == x);
  CHECK(b.binary(OpKind::FAdd, x, b.constant(f32, -0.0)) == x);
  CHECK_FALSE(b.binary(OpKind::FAdd, x, b.constant(f32, 0.0)) == x); // -0 + 0 is +0
  CHECK_FALSE(is_constant(b.binary(OpKind::FMul, x, b.constant(f32, 0))));
  Register n = b.cast(OpKind::FToSI, x, Scalar::I32);
  CHECK(b.binary(OpKind::IAdd, n, b.constant_int(i32, 0)) == n);
  CHECK(b.binary(OpKind::IMul, b.constant_int(i32, 1), n) == n);
  CHECK(number(b.binary(OpKind::IMul, n, b.constant_int(i32, 0))) == 0);
  CHECK(b.binary(OpKind::SDiv, n, b.constant_int(i32, 1)) == n);
}

TEST_CASE_METHOD(Fixture, "casts of constants wrap and extend as machines do") {
  Register byte = b.constant_int({Scalar::I8, 1}, -1);
  CHECK(number(b.cast(OpKind::ZExt, byte, Scalar::I32)) == 255);
  CHECK(number(b.cast(OpKind::SExt, byte, Scalar::I32)) == -1);
  CHECK(number(b.cast(OpKind::Trunc, b.constant_int(i32, 0x1ff), Scalar::I8)) == -1);
  CHECK(number(b.cast(OpKind::ZExt, b.constant_int({Scalar::I1, 1}, 1), Scalar::I8)) == 1);
  CHECK(b.type(b.cast(OpKind::Bitcast, b.constant(wide, 1), Scalar::I8)) == MachineType{Scalar::I8, 32});
}

TEST_CASE_METHOD(Fixture, "narrowing gives back what was widened") {
  Register x = b.load({Scalar::F32, 8}, input, 0), half = b.cast(OpKind::FTruncTo, x, Scalar::F16);
  Register widened = b.cast(OpKind::FExt, half, Scalar::F32);
  CHECK(b.cast(OpKind::FTruncTo, widened, Scalar::F16) == half);
  CHECK_FALSE(b.cast(OpKind::FTruncTo, widened, Scalar::BF16) == half);
}

TEST_CASE_METHOD(Fixture, "a scalar is its own splat, extract and reduction") {
  Register x = b.load(f32, input, 0);
  CHECK(b.splat(x, 1) == x);
  CHECK(b.extract(x, 0) == x);
  CHECK(b.reduce(OpKind::ReduceFAdd, x) == x);
  CHECK(b.extract(b.splat(x, 8), 3) == x);
  CHECK(number(b.splat(b.constant(f32, 2), 8)) == 2);
}

TEST_CASE_METHOD(Fixture, "loops that run once or never leave no loop") {
  int ran = 0;
  b.loop(3, 3, 1, [&](const IntExpr&) { ++ran; });
  CHECK(ran == 0);
  b.loop(5, 8, 4, [&](const IntExpr& i) {
    ++ran;
    CHECK(i == IntExpr(5));
  });
  CHECK(ran == 1);
  CHECK(kernel.body.ops.empty());
}

TEST_CASE_METHOD(Fixture, "an induction variable knows its last value") {
  b.loop(0, 10, 4, [&](const IntExpr& i) {
    CHECK(i.lower_bound() == 0);
    CHECK(i.upper_bound() == 8);
  });
  REQUIRE(kernel.body.ops.size() == 1);
  CHECK(kernel.body.ops[0]->kind == OpKind::For);
  CHECK(verify(kernel));
}

TEST_CASE_METHOD(Fixture, "full masks and known branches vanish") {
  Register all = b.lane_mask(8, 8);
  Register x = b.load_masked(wide, input, 0, all);
  CHECK(kernel.body.ops.back()->operands.empty());
  b.store_masked(x, output, 0, b.lane_mask(8, 3));
  CHECK(kernel.body.ops.back()->operands.size() == 2);
  auto chosen = b.if_then_else(
      b.constant_int({Scalar::I1, 1}, 1), [&] { return std::vector<Register>{x}; },
      [&] { return std::vector<Register>{}; });
  CHECK(chosen == std::vector<Register>{x});
  CHECK(verify(kernel));
}

TEST_CASE_METHOD(Fixture, "a symbol of a known value is that value") {
  CHECK(b.symbolic(b.constant_int(i32, 7), 0, 10) == IntExpr(7));
  Register n = b.cast(OpKind::FToSI, b.load(f32, input, 0), Scalar::I32);
  IntExpr s = b.symbolic(n, 0, 63);
  CHECK(s.upper_bound() == 63);
  CHECK(b.symbolic(b.index(s + 1), 0, 64) == s + 1);
  b.store(b.load(f32, input, s), output, s);
  CHECK(verify(kernel));
}

TEST_CASE("values of threads pass through the code of a block") {
  Kernel kernel;
  Builder b(kernel);
  int x = b.add_parameter("x", Scalar::F32, 256, false), y = b.add_parameter("y", Scalar::F32, 256, true);
  int own = b.add_scratch("own", Scalar::F32, 4), tile = b.add_shared("tile", Scalar::F32, 64, 32);
  CHECK((!kernel.scratch[0].shared && kernel.scratch[1].shared && kernel.scratch[1].alignment == 32));
  b.set_threads(64);
  IntExpr block = b.set_parallel(4, "block");
  auto made = b.threads({}, [&](const IntExpr& t, const std::vector<Register>& none) {
    CHECK((none.empty() && t.lower_bound() == 0 && t.upper_bound() == 63));
    b.copy_async(tile, t, x, 64 * block + t, 4,
                 b.compare(OpKind::SCmp, Predicate::Lt, b.index(t), b.index(block)));
    b.copy_async(tile, t, x, 64 * block + t, 4);
    Register loaded = b.load(f32, x, 64 * block + t);
    b.store(loaded, own, 1);
    return std::vector<Register>{loaded, b.splat(loaded, 8)};
  });
  REQUIRE(made.size() == 2);
  CHECK(b.type(made[0]) == f32.with_spread(true));
  CHECK(b.type(made[1]) == wide.with_spread(true));
  b.copy_commit();
  b.copy_wait(2);
  Register other = b.shuffle_xor(made[0], 16), behind = b.shuffle_down(made[1], 3);
  CHECK((b.type(other) == b.type(made[0]) && b.type(behind) == b.type(made[1])));
  auto carried = b.loop_carried(0, 3, 1, {other}, [&](const IntExpr&, const std::vector<Register>& sum) {
    CHECK(b.type(sum[0]) == f32.with_spread(true));
    return b.threads({sum[0], behind}, [&](const IntExpr&, const std::vector<Register>& mine) {
      CHECK((b.type(mine[0]) == f32 && b.type(mine[1]) == wide));
      return std::vector<Register>{b.binary(OpKind::FAdd, mine[0], b.extract(mine[1], 2))};
    });
  });
  auto none = b.threads(carried, [&](const IntExpr& t, const std::vector<Register>& mine) {
    b.store(mine[0], y, 64 * block + t);
    return std::vector<Register>{};
  });
  CHECK(none.empty());
  Result verified = verify(kernel);
  if (!verified) FAIL(verified.error().message << print_kernel(kernel));
  const Op& first = *kernel.body.ops[0];
  REQUIRE(first.kind == OpKind::Threads);
  const Op& conditional = *first.blocks[0].ops[3];
  CHECK((conditional.kind == OpKind::CopyAsync && conditional.operands.size() == 1));
}

TEST_CASE_METHOD(Fixture, "one parallel iteration is no loop") {
  CHECK(b.set_parallel(1) == IntExpr(0));
  CHECK(verify(kernel));
  Kernel other;
  Builder c(other);
  CHECK(c.set_parallel(4).upper_bound() == 3);
  CHECK(verify(other));
}

} // namespace firn::kernel
