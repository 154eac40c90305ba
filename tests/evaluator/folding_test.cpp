// evaluate_instruction, as constant folding uses it.
#include "tests/evaluator/hlo_case.h"

using namespace firn;
using namespace firn::test;

namespace {

// Folds the last instruction of `body` on the literals of its operands, which are constants.
std::optional<std::vector<LiteralRef>> fold(const std::string& body, const std::string& type,
                                            size_t max_bytes = 1 << 20) {
  auto module = program(body, type);
  const Instruction& last = *module->main().body().instructions().back();
  std::vector<LiteralRef> operands;
  for (Value operand : last.operands()) operands.push_back(operand.def->literal());
  return evaluate_instruction(last, operands, max_bytes);
}

} // namespace

TEST_CASE("constants fold", "[evaluator]") {
  auto sum = fold("%x = constant [1.0, 2.0] : f32[2] %r = add %x, %x : f32[2]", "f32[2]");
  REQUIRE(sum);
  expect_equal(*sum->front(), *literal("2.0, 4.0", "f32[2]"));
  auto body =
      fold("%x = constant [1.0, 2.0] : f32[2] %r = composite %x {name = double} region (%p: f32[2]) { "
           "%a = add %p, %p : f32[2] return %a } : f32[2]",
           "f32[2]");
  REQUIRE(body);
  expect_equal(*body->front(), *literal("2.0, 4.0", "f32[2]"));
}

TEST_CASE("what must not or cannot fold gives nothing", "[evaluator]") {
  CHECK_FALSE(fold("%x = constant [1.0] : f32[] %r = rng_uniform %x, %x {seed = 1} : f32[2]", "f32[2]"));
  CHECK_FALSE(
      fold("%x = constant [5] : i64[1] %d = constant [1, 2] : i8[2] %r = gather %d, %x {axis = 0} : i8[1]",
           "i8[1]"));
  CHECK_FALSE(fold("%x = constant [1] : i64[] %r = while %x region (%i: i64[]) { %c = constant [true] : "
                   "bool[] return %c }, "
                   "region (%i: i64[]) { return %i } : i64[]",
                   "i64[]"));
  CHECK_FALSE(fold("%x = constant <#0123456789abcdef> : f32[2] %r = add %x, %x : f32[2]", "f32[2]"));
}

TEST_CASE("large results are not made", "[evaluator]") {
  std::string body = "%x = constant [1.0] : f32[] %r = broadcast_in_dim %x {dims = []} : f32[1000]";
  CHECK_FALSE(fold(body, "f32[1000]", 3999));
  CHECK(fold(body, "f32[1000]", 4000));
}

TEST_CASE("folding gives up on what would take long", "[evaluator]") {
  auto module =
      parse("module @m { func @main(%x: f32[100000], %y: f32[100000]) -> (f32[100000,100000]) { "
            "%r = dot %x, %y {lhs_batch = [], rhs_batch = [], lhs_contract = [], rhs_contract = []} "
            ": f32[100000,100000] return %r } }");
  LiteralRef operand = Literal::splat(DType::F32, {100000}, 1);
  const Instruction& last = *module->main().body().instructions().back();
  CHECK_FALSE(evaluate_instruction(last, {operand, operand}, size_t{1} << 40));
}
