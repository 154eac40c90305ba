// Tests that plans of products by weights that a program may change are right for all weights.
#include "compiler/graph/builder.h"
#include "compiler/plan/byte_values.h"
#include "compiler/plan/mac_instruction.h"
#include "compiler/target/cpu_table.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::plan;

namespace {

// u8[4,8] by i8[8,16], all of whose elements are `value`.
struct ByteDot {
  Module module{"m"};
  Value weights, dot;

  ByteDot(int value, bool may_change) {
    Region& body = module.add_function("main").body();
    GraphBuilder builder(body);
    LiteralRef literal = Literal::splat(DType::I8, {8, 16}, value);
    weights = builder.constant(may_change ? Literal::refittable(literal) : literal);
    Value lhs = body.add_parameter(Type::tensor_of(DType::U8, {4, 8}))->result();
    dot = builder.op(Opcode::Dot, {lhs, weights},
                     {{"lhs_batch", std::vector<int64_t>{}},
                      {"rhs_batch", std::vector<int64_t>{}},
                      {"lhs_contract", std::vector<int64_t>{1}},
                      {"rhs_contract", std::vector<int64_t>{0}},
                      {"result", DType::I32}});
    body.set_results({dot});
  }
};

} // namespace

TEST_CASE("products that small weights keep from saturating are not taken for others", "[plan]") {
  auto target = find_target("x86_64-pc-linux-gnu", "x86-64-v3", "");
  REQUIRE(target);
  auto product = [&](int value, bool may_change) {
    ByteDot made(value, may_change);
    auto chosen = choose_mac(*made.dot.def, *target, /*strict=*/false);
    return chosen ? to_string(*chosen) : std::string("none");
  };
  CHECK(product(1, /*may_change=*/false) != product(127, /*may_change=*/false));
  CHECK(product(1, /*may_change=*/true) == product(127, /*may_change=*/false));
}

TEST_CASE("nothing bounds weights that may change but their type", "[plan]") {
  CHECK(lies_within(ByteDot(3, /*may_change=*/false).weights, {-8, 7}));
  ByteDot open(3, /*may_change=*/true);
  CHECK_FALSE(lies_within(open.weights, {-8, 7}));
  CHECK(lies_within(open.weights, {-128, 127}));
  CHECK_FALSE(open.weights.def->literal()->values_may_be_used()); // still
}
