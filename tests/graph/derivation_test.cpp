// Constants that programs may be given anew: reading them fixes them, and what is derived of them is computed
// again from others.
#include "compiler/graph/derivation.h"

#include "compiler/graph/evaluate.h"

#include <catch2/catch.hpp>

namespace firn {
namespace {

LiteralRef weights(const std::vector<double>& values) {
  return Literal::refittable(Literal::of(DType::F32, {static_cast<int64_t>(values.size())}, values));
}

// @main with a sum of two constants, which is its result.
struct Sum {
  Module module{"m"};
  Instruction* add;

  Sum(const LiteralRef& lhs, const LiteralRef& rhs) {
    Region& body = module.add_function("main").body();
    GraphBuilder builder(body);
    add = builder.op(Opcode::Add, {builder.constant(lhs), builder.constant(rhs)}).def;
    body.set_results({add->result()});
  }
};

std::vector<double> derived_anew(const Derivation& derivation, const std::vector<LiteralRef>& operands) {
  auto results = evaluate(*derivation.module, operands);
  REQUIRE(results);
  const Literal& result = *(*results)[static_cast<size_t>(derivation.result)];
  std::vector<double> values;
  for (int64_t i = 0; i < result.num_elements(); ++i) values.push_back(result.get_double(i));
  return values;
}

TEST_CASE("reading elements that may change fixes them") {
  LiteralRef literal = weights({1, 1});
  CHECK_FALSE(literal->values_may_be_used());
  CHECK_FALSE(literal->is_splat()); // which it need not stay
  (void)literal->hash();
  (void)Literal::plain(literal)->get_double(0);
  CHECK_FALSE(literal->values_may_be_used());
  CHECK(literal->get_double(0) == 1);
  CHECK(literal->values_may_be_used());
  CHECK(literal->is_splat());
}

TEST_CASE("derived constants are fixed with all that they come from, and known when these are") {
  LiteralRef lhs = weights({1, 2}), rhs = weights({3, 4});
  Sum sum(lhs, rhs);
  auto derivations = derivations_of(*sum.add);
  REQUIRE(derivations.size() == 1);
  LiteralRef first =
                 Literal::derived(Literal::of(DType::F32, {2}, std::vector<double>{4, 6}), derivations[0]),
             second = Literal::derived(Literal::plain(first), derivations[0]);
  CHECK_FALSE(first->values_may_be_used());
  CHECK(first->get_double(1) == 6);
  CHECK(lhs->values_may_be_used());
  CHECK(rhs->values_may_be_used());
  CHECK(second->values_may_be_used());
}

TEST_CASE("derivations compute the same of other values, and keep what is known") {
  Sum sum(weights({1, 2}), Literal::of(DType::F32, {2}, std::vector<double>{10, 20}));
  auto derivations = derivations_of(*sum.add);
  REQUIRE(derivations.size() == 1);
  CHECK(derivations[0]->operands.size() == 1);
  CHECK(derived_anew(*derivations[0], {Literal::of(DType::F32, {2}, std::vector<double>{-1, 5})}) ==
        std::vector<double>{9, 25});
}

TEST_CASE("nothing is derived of constants that stay, or of elements that share a byte") {
  LiteralRef known = Literal::of(DType::F32, {2}, std::vector<double>{1, 2});
  CHECK(derivations_of(*Sum(known, known).add).empty());
  LiteralRef packed = Literal::refittable(Literal::of(DType::I4, {2}, std::vector<int64_t>{1, 2}));
  Module module("m");
  GraphBuilder builder(module.add_function("main").body());
  Value wide = builder.convert(builder.constant(packed), DType::I8);
  CHECK(derivations_of(*wide.def).empty());
  (void)derived_from(*wide.def->operand(0).def, Literal::of(DType::I8, {2}, std::vector<int64_t>{1, 2}),
                     [](GraphBuilder& b, Value source) { return b.convert(source, DType::I8); });
  CHECK(packed->values_may_be_used());
}

} // namespace
} // namespace firn
