// Tests how often the loops run around the block in which a kernel spends its time.
#include "compiler/kernel/passes/loop_facts.h"

#include "compiler/kernel/builder.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::kernel;

namespace {

// Multiplies `count` times.
std::vector<Register> multiply(Builder& b, int64_t count) {
  b.loop_carried(0, count, 1, {b.constant({Scalar::F32, 1}, 0)},
                 [&](const IntExpr& i, const std::vector<Register>& in) {
                   Register x = b.load({Scalar::F32, 1}, 0, i);
                   return std::vector{b.fma(x, x, in[0])};
                 });
  return {};
}

// The outer loop of the hot nest of a kernel: a parallel loop of 10 with a branch on its number, one side of
// which computes more.
LoopOnPath outer_loop(OpKind compare, Predicate predicate, const std::function<IntExpr(IntExpr)>& lhs,
                      int64_t rhs, bool first_computes = true) {
  Kernel kernel;
  Builder b(kernel);
  b.add_parameter("x", Scalar::F32, 64, false);
  IntExpr p = b.set_parallel(10);
  Register condition =
      b.compare(compare, predicate, b.index(lhs(p)), b.constant_int({Scalar::Index, 1}, rhs));
  b.if_then_else(
      condition, [&] { return multiply(b, first_computes ? 64 : 2); },
      [&] { return multiply(b, first_computes ? 2 : 64); });
  std::vector<LoopOnPath> nest = find_hot_nest(kernel);
  REQUIRE(nest.size() == 2);
  CHECK(nest[1].count == 64);
  return nest[0];
}

} // namespace

TEST_CASE("a branch on the number of an iteration leaves those in which it is taken") {
  auto itself = [](IntExpr p) { return p; };
  auto expect = [](LoopOnPath loop, int64_t first, int64_t count) {
    CHECK(loop.first == first);
    CHECK(loop.count == count);
  };
  expect(outer_loop(OpKind::SCmp, Predicate::Lt, itself, 7), 0, 7);
  expect(outer_loop(OpKind::SCmp, Predicate::Lt, itself, 7, false), 7, 3);
  expect(outer_loop(OpKind::SCmp, Predicate::Eq, itself, 9), 9, 1);
  expect(outer_loop(OpKind::SCmp, Predicate::Eq, itself, 9, false), 0, 9);
  expect(outer_loop(
             OpKind::SCmp, Predicate::Ge, [](IntExpr p) { return floor_div(p, 2); }, 2),
         4, 6);
  // An unsigned comparison tests both ends.
  expect(outer_loop(
             OpKind::UCmp, Predicate::Le, [](IntExpr p) { return p - 3; }, 4),
         3, 5);
}

TEST_CASE("iterations that do not follow one another all count") {
  LoopOnPath loop = outer_loop(
      OpKind::SCmp, Predicate::Eq, [](IntExpr p) { return floor_mod(p, 2); }, 0);
  CHECK(loop.first == 0);
  CHECK(loop.count == 10);
}

TEST_CASE("loops whose bounds vary count as none") {
  Kernel kernel;
  Builder b(kernel);
  b.add_parameter("x", Scalar::F32, 64, false);
  IntExpr p = b.set_parallel(4);
  b.loop(0, p + 100, 1, [&](const IntExpr&) { multiply(b, 64); });
  b.loop(0, 12, 4, [&](const IntExpr&) { multiply(b, 8); });
  std::vector<LoopOnPath> nest = find_hot_nest(kernel);
  REQUIRE(nest.size() == 3);
  CHECK(nest[1].step == 4);
  CHECK(nest[1].count == 3);
  CHECK(nest[2].count == 8);
  CHECK(trip_count(*kernel.body.ops[0]) == 0);
}
