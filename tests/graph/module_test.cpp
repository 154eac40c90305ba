// Use lists, replacement, erasure and inlining.
#include "compiler/graph/module.h"

#include "compiler/graph/verify.h"
#include "tests/graph/text_files.h"

namespace firn {
namespace {

Instruction* find(const Region& region, const std::string& name) {
  for (const auto& instruction : region.instructions()) {
    if (instruction->name() == name) return instruction.get();
    for (int i = 0; i < instruction->num_regions(); ++i)
      if (Instruction* found = find(instruction->region(i), name)) return found;
  }
  return nullptr;
}

void require_valid(const Module& module) {
  Result verified = verify(module);
  if (!verified) FAIL(verified.error().message);
}

const std::string kCapturing = main_text("%x: f32[2], %y: f32[2], %c: bool[]", "f32[2], f32[2]", R"(
  %used = negate %x : f32[2]
  %r = if %c region() {
    %deep = if %c region() {
      return %used
    }, region() {
      %twice = add %used, %used : f32[2]
      return %twice
    } : f32[2]
    return %deep
  }, region() {
    return %used
  } : f32[2]
  return %r, %used)");

TEST_CASE("uses are counted in nested regions and as results") {
  auto module = parse_or_fail("m", kCapturing);
  Region& body = module->main().body();
  Instruction* used = find(body, "used");
  CHECK(used->users().size() == 2); // both operands of %twice
  CHECK(used->num_uses(0) == 5);    // and three region results
  CHECK(used->has_uses());
  CHECK_FALSE(body.parameters()[1]->has_uses());
}

TEST_CASE("replacing a value reaches nested operands and results") {
  auto module = parse_or_fail("m", kCapturing);
  Region& body = module->main().body();
  Instruction* used = find(body, "used");
  body.replace_uses(used->result(), body.parameter(1));
  CHECK_FALSE(used->has_uses());
  body.erase(used);
  require_valid(*module);
  CHECK(body.parameters()[1]->num_uses(0) == 5);
  CHECK(find(body, "twice")->operand(1) == body.parameter(1));
}

TEST_CASE("replacing one result leaves the others") {
  auto module = parse_or_fail("m", main_text("%x: f32[4]", "f32[2], i64[2], f32[2]", R"(
    %t:2 = top_k %x {dim = 0, k = 2} : (f32[2], i64[2])
    %n = negate %t#0 : f32[2]
    return %t#0, %t#1, %n)"));
  Region& body = module->main().body();
  Instruction *top = find(body, "t"), *negated = find(body, "n");
  Instruction* constant = body.append_constant(Literal::splat(DType::F32, {2}, 1), negated);
  body.replace_uses(top->result(0), constant->result());
  CHECK(top->num_uses(0) == 0);
  CHECK(top->num_uses(1) == 1);
  CHECK(constant->num_uses(0) == 2);
  require_valid(*module);
}

TEST_CASE("operands may name one value twice") {
  auto module =
      parse_or_fail("m", main_text("%x: f32[2], %y: f32[2]", "f32[2]", "%s = add %x, %x : f32[2] return %s"));
  Region& body = module->main().body();
  Instruction* sum = find(body, "s");
  sum->set_operand(0, body.parameter(1));
  CHECK(body.parameters()[0]->users().size() == 1);
  sum->set_operands({body.parameter(1), body.parameter(1)});
  CHECK_FALSE(body.parameters()[0]->has_uses());
  body.remove_parameter(0);
  require_valid(*module);
  CHECK(body.parameters().size() == 1);
}

TEST_CASE("inlining copies nested regions and maps what they capture") {
  auto module = parse_or_fail("m", kCapturing);
  Function& target = module->add_function("copy");
  std::vector<Value> arguments;
  for (Instruction* parameter : module->main().body().parameters())
    arguments.push_back(target.body().add_parameter(parameter->type(), parameter->name())->result());
  target.body().set_results(target.body().inline_region(module->main().body(), arguments));
  require_valid(*module);
  std::string text = print_module(*module);
  auto body_of = [&](const std::string& name) {
    size_t start = text.find("{", text.find("func @" + name));
    return text.substr(start, text.find("\n  }\n", start) - start);
  };
  CHECK(body_of("copy") == body_of("main"));
}

TEST_CASE("inlining a fusion's region puts operands in place of parameters") {
  auto module = parse_or_fail("m", main_text("%x: f32[2], %y: f32[2]", "f32[2], f32[2]", R"(
    %f:2 = fusion %x, %y {kind = elementwise} region(%p: f32[2], %q: f32[2]) {
      %s = subtract %q, %p : f32[2]
      return %p, %s
    } : (f32[2], f32[2])
    return %f#0, %f#1)"));
  Region& body = module->main().body();
  Instruction* fusion = find(body, "f");
  auto results = body.inline_region(fusion->region(), fusion->operands(), fusion);
  for (int i = 0; i < 2; ++i) body.replace_uses(fusion->result(i), results[static_cast<size_t>(i)]);
  body.erase(fusion);
  require_valid(*module);
  CHECK(print_module(*module) ==
        print_module(*parse_or_fail("m", main_text("%x: f32[2], %y: f32[2]", "f32[2], f32[2]",
                                                   "%s = subtract %y, %x : f32[2] return %x, %s"))));
}

TEST_CASE("instructions move within their region") {
  auto module = parse_or_fail("m", main_text("%x: f32[2]", "f32[2], f32[2]", R"(
    %a = negate %x : f32[2]
    %b = abs %x : f32[2]
    return %a, %b)"));
  Region& body = module->main().body();
  body.move_before(find(body, "b"), find(body, "a"));
  require_valid(*module);
  CHECK(body.snapshot()[1]->name() == "b");
}

TEST_CASE("parameters added late still open the region") {
  auto module = parse_or_fail("m", main_text("%x: f32[2]", "f32[2]", "%a = negate %x : f32[2] return %a"));
  Region& body = module->main().body();
  body.add_parameter(Type::tensor_of(DType::F32, {2}), "late");
  require_valid(*module);
  CHECK(body.snapshot()[1]->name() == "late");
}

} // namespace
} // namespace firn
