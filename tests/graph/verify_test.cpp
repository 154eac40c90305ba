// Every invariant at the head of verify.cpp, broken once.
#include "compiler/graph/verify.h"

#include "tests/graph/text_files.h"

namespace firn {
namespace {

std::string error_of(const Module& module) {
  Result verified = verify(module);
  if (verified) return "";
  CHECK(verified.error().fault == Fault::Internal);
  return verified.error().message;
}

void check_error(const Module& module, const std::string& wanted) {
  std::string message = error_of(module);
  INFO("found: " << message << "\nwanted: " << wanted);
  CHECK(message.find(wanted) != std::string::npos);
}

void check_text(const std::string& text, const std::string& wanted) {
  INFO(text);
  check_error(*parse_or_fail("m", text), wanted);
}

void check_body(const std::string& parameters, const std::string& body, const std::string& wanted) {
  check_text(main_text(parameters, "", body + " return"), wanted);
}

TEST_CASE("errors name function and instruction") {
  check_text(main_text("%x: f32[2]", "", "%y = add %x, %x : f32[3] return"),
             "@main: result type differs from the inferred f32[2] in: %y = add %x, %x : f32[3]");
}

TEST_CASE("order: users stand after what they use") {
  auto module = parse_or_fail(
      "m", main_text("%x: f32[2]", "f32[2]", "%a = negate %x : f32[2] %b = negate %a : f32[2] return %b"));
  Region& body = module->main().body();
  body.move_before(body.snapshot()[2], body.snapshot()[1]);
  check_error(*module, "operand is not defined before its use");
}

TEST_CASE("isolation: only if and while use outside values") {
  auto module = parse_or_fail("m", main_text("%x: f32[2]", "f32[2]",
                                             "%f = fusion %x {kind = elementwise} region(%p: f32[2]) { %n = "
                                             "negate %p : f32[2] return %n } : f32[2] return %f"));
  Region& body = module->main().body();
  Region& inner = body.results()[0].def->region();
  inner.snapshot()[1]->set_operand(0, body.parameter(0));
  check_error(*module, "operand is not defined before its use");
  inner.snapshot()[1]->set_operand(0, inner.parameter(0));
  CHECK(error_of(*module).empty());
  inner.set_results({body.parameter(0)});
  check_error(*module, "returns a value that is not defined in it");
}

TEST_CASE("values of a region are not used outside it") {
  auto module = parse_or_fail("m", main_text("%x: f32[2], %c: bool[]", "f32[2]", R"(
    %r = if %c region() { %n = negate %x : f32[2] return %n }, region() { return %x } : f32[2]
    return %r)"));
  Region& body = module->main().body();
  Value inner = body.results()[0].def->region().results()[0];
  body.set_results({inner});
  check_error(*module, "returns a value that is not defined in it");
}

TEST_CASE("null operands and results") {
  auto module = parse_or_fail("m", main_text("%x: f32[2]", "f32[2]", "%a = negate %x : f32[2] return %a"));
  Region& body = module->main().body();
  body.snapshot()[1]->set_operand(0, {});
  check_error(*module, "null operand");
  body.snapshot()[1]->set_operand(0, body.parameter(0));
  body.set_results({Value{}});
  check_error(*module, "returns a value that is not defined in it");
  body.set_results({Value{body.snapshot()[1], 3}});
  check_error(*module, "returns a value that is not defined in it");
}

TEST_CASE("arity and attributes") {
  check_body("%x: f32[2]", "%y = add %x : f32[2]", "wrong operand count");
  check_body("%x: f32[2]", "%y = compare %x, %x : bool[2]", "attribute 'direction' is missing");
  check_body("%x: f32[2]", "%y = compare %x, %x {direction = less} : bool[2]",
             "attribute 'direction' is the unknown word 'less'");
  check_body("%x: f32[2]", "%y = compare %x, %x {direction = \"lt\"} : bool[2]",
             "attribute 'direction' wants a word");
  check_body("%x: f32[2]", "%y = arg_reduce %x {dim = 1.0, kind = max} : i64[]",
             "attribute 'dim' wants an integer");
  check_body("%x: f32[2]", "%y = top_k %x {dim = 0, k = 1, largest = 1} : f32[1]",
             "attribute 'largest' wants a flag");
  check_body("%x: f32[2]", "%y = negate %x {plan = 3} : f32[2]", "attribute 'plan' wants a string");
  auto module = parse_or_fail("m", main_text("%x: f32[2]", "", "%y = negate %x : f32[2] return"));
  Instruction& negate = *module->main().body().snapshot()[1];
  for (const Attribute& value : {Attribute(Word{"true"}), Attribute(Word{"f32"}), Attribute(Word{"f32"}),
                                 Attribute(Word{"two words"}), Attribute(Word{""}), Attribute(Window{})}) {
    negate.attributes().set("odd", value);
    check_error(*module, "attribute 'odd' has no text form");
  }
}

TEST_CASE("stated types") {
  check_body("%x: f32[2,3]", "%y = reshape %x : f32[5]", "reshape changes the element count");
  check_body("%x: f32[2,3]", "%y = reshape %x : f16[6]", "reshape changes the dtype");
  check_body("%x: f32[2,3]", "%y = broadcast_in_dim %x {dims = [1, 0]} : f32[3,2]",
             "not increasing or out of range");
  check_body("%x: f32[2,3]", "%y = broadcast_in_dim %x {dims = [0]} : f32[2,3]", "do not fit the operand");
  check_body("%x: f32[2,3]", "%y = broadcast_in_dim %x {dims = [0, 1]} : f32[2,4]",
             "broadcast of dim 1 changes its extent");
  check_body("", "%y = iota {dim = 1} : i32[4]", "dim is out of range");
  check_body("%x: f32[3]", "%y = bitcast_convert %x : f16[3]", "bitcast changes the number of bits");
  check_body("%x: f32[3]", "%y = non_zero %x : i64[1,3]", "wrong result count");
  check_body("%x: f32[3]", "%y:2 = non_zero %x : (i64[2,3], i64[])", "results want to be i64[rank, n]");
  check_body("%x: f32[3], %s: i32[1]", "%y = dynamic_reshape %x, %s : f32[3]", "operand 1 is no i64 vector");
  check_body("%x: f32[3], %s: i64[2]", "%y = dynamic_reshape %x, %s : f32[3]", "rank differs");
  check_body("%x: f32[3]", "%y = dynamic_iota %x, %x, %x : f32[3]", "operands want to be scalars");
  check_body("%x: f32[3]", "%y = sequence_length %x : i64[]", "wants a sequence");
  check_body("%x: sequence<f32[3]; 2>, %i: i64[]", "%y = sequence_at %x, %i : i32[3]",
             "no element of the sequence");
  check_body("%x: f32[3]", "%y = optional_make %x : optional<i32[3]>", "not what the optional holds");
  check_body("%x: f32[3]", "%y = call %x {callee = \"nobody\"} : f32[3]", "no function @nobody");
  check_text("module @m { func @f(%x: f32[2]) -> (f32[2]) { return %x } func @main(%x: f32[3]) -> () { %y = "
             "call %x {callee = \"f\"} : "
             "f32[3] return } }",
             "@f has another type of parameter 0");
}

TEST_CASE("calls of the program's functions") {
  auto check = [](const std::string& type, const std::string& attributes, const char* wanted) {
    check_body("%x: f32[2], %k: i64[]",
               "%y = custom %x, %k {" + attributes + ", operator = \"a:B\"} : " + type, wanted);
  };
  check("f32[2]", "attributes = \"k,l\", inputs = [0], symbol = \"f\", workspace = 0",
        "wants an operand for each input and each attribute");
  check("f32[2]", "attributes = \"\", inputs = [0], symbol = \"f\", workspace = 0",
        "wants an operand for each input and each attribute");
  check("f32[2]", "attributes = \"\", inputs = [1, 0], symbol = \"f\", workspace = 0", "in their order");
  check("f32[2]", "attributes = \",\", inputs = [], symbol = \"f\", workspace = 0", "has no name");
  check("f32[2]", "attributes = \"k\", inputs = [-1, 0], symbol = \"a.b\", workspace = 0", "no name of a C");
  for (const char* bytes : {"-1", "2199023255552"})
    check("f32[2]", std::string("attributes = \"k\", inputs = [0], symbol = \"f\", workspace = ") + bytes,
          "workspace has a bad size");
  for (const char* type : {"string[2]", "c64[2]", "i4[2]", "f8e4m3fn[2]", "sequence<f32[2]; 1>"})
    check(type, "attributes = \"k\", inputs = [0], symbol = \"f\", workspace = 0", "functions do not give");
  check_body(
      "%x: c64[2]",
      "%y = custom %x {attributes = \"\", inputs = [0], operator = \"a:B\", symbol = \"f\", workspace = "
      "0} : f32[2]",
      "functions do not take");
}

TEST_CASE("constants have a literal of their type, others none") {
  auto module = parse_or_fail(
      "m", main_text("%x: f32[2]", "", "%c = constant [1, 2] : f32[2] %y = negate %x : f32[2] return"));
  Region& body = module->main().body();
  Instruction *constant = body.snapshot()[1], *negate = body.snapshot()[2];
  constant->set_literal(Literal::splat(DType::F32, {3}, 0));
  check_error(*module, "constant's literal is f32[3]");
  constant->set_literal(nullptr);
  check_error(*module, "constant without a literal");
  constant->set_literal(Literal::splat(DType::F32, {2}, 0));
  negate->set_literal(Literal::splat(DType::F32, {2}, 0));
  check_error(*module, "literal on an op that is no constant");
}

TEST_CASE("regions fit the op") {
  const std::string x = "%x: f32[2], %z: f32[], %c: bool[], %n: i64[]";
  check_body(x, "%y = fusion %x : f32[2]", "region is missing");
  check_body(x, "%y = negate %x region() { return } : f32[2]", "region on an op without");
  check_body(x, "%y = fusion %x {kind = elementwise} region() { return } : f32[2]", "wrong result count");
  check_body(x, "%y = if %c region() { return %x } : f32[2]", "op with 1 regions, wants 2");
  check_body(x, "%y = if %c region() { return %x }, region() { return %z } : f32[2]",
             "region's result 0 is f32[], wants f32[2]");
  check_body(x, "%y = if %c region() { return %x }, region() { return } : f32[2]",
             "wrong number of parameters or results");
  check_body(x,
             "%y = fusion %x {kind = elementwise} region(%p: f32[3]) { %q = constant [1, 2] : f32[2] return "
             "%q } : f32[2]",
             "region's parameter 0 is f32[3], wants f32[2]");
  check_body(x, "%y = while %n region(%i: i64[]) { return %i }, region(%j: i64[]) { return %j } : i64[]",
             "region's result 0 is i64[], wants bool[]");
  check_body(x, "%y = reduce %x, %z {dims = [0]} region(%a: f32[], %b: f16[]) { return %a } : f32[]",
             "region's parameter 1 is f16[], wants f32[]");
  check_body(x,
             "%y = reduce %x, %z {dims = [0]} region(%a: f32[], %b: f32[]) { %s = compare %a, %b {direction "
             "= lt} : bool[] return %s } : f32[]",
             "region's result 0 is bool[], wants f32[]");
  check_body(x, "%y = sort %x {dim = 0} region(%a: f32[], %b: f32[]) { return %a } : f32[2]",
             "region's result 0 is f32[], wants bool[]");
}

TEST_CASE("symbols are the module's") {
  auto module = parse_or_fail("m", main_text("%x: f32[2]", "", "return"));
  auto stranger = std::make_shared<Symbol>(Symbol{"n", 1, 4});
  module->main().body().add_parameter(Type::tensor(DType::F32, {Dim(IntExpr::symbol(stranger))}));
  check_error(*module, "type with a symbol that is not the module's");
  module->symbols.push_back(stranger);
  CHECK(error_of(*module).empty());
  module->symbols.push_back(std::make_shared<Symbol>(Symbol{"n", 1, 4}));
  check_error(*module, "two symbols are named 'n'");
}

TEST_CASE("signatures") {
  auto header = [](const std::string& names) {
    return "module @m { func @main(%x: f32[2], %y: f32[3]) -> (f32[2], f32[2]) " + names +
           " { return %x, %x } }";
  };
  check_text(header("inputs [\"x\"]"), "wrong parameter names");
  check_text(header("outputs [\"x\"]"), "wrong result names");
  check_text(header("aliases [0]"), "wrong aliases");
  check_text(header("aliases [-1, 2]"), "alias of a parameter that is not there");
  check_text(header("aliases [-2, -1]"), "alias of a parameter that is not there");
  check_text(header("aliases [0, 0]"), "two results alias parameter 0");
  check_text(header("aliases [1, -1]"), "aliases a parameter of another type");
  Module module("m");
  module.add_function("f");
  module.add_function("f");
  check_error(module, "two functions are named @f");
}

TEST_CASE("parameters of a module are states") {
  auto with = [](const std::string& names, const std::string& aliases) {
    return "module @m { parameters [" + names + "] func @main(%x: f32[2], %w: f32[2]) -> (f32[2], f32[2]) " +
           "inputs [\"x\", \"w\"] aliases " + aliases + " { return %x, %w } }";
  };
  auto module = parse_or_fail("m", with("\"w\", \"elsewhere\"", "[-1, 1]"));
  CHECK(error_of(*module).empty());
  CHECK(module->is_parameter("w"));
  CHECK_FALSE(module->is_parameter("x"));
  check_text(with("\"w\"", "[-1, -1]"), "@main: 'w' is a parameter of the module, but no state");
  check_text(with("\"w\", \"w\"", "[-1, 1]"), "two parameters are named 'w'");
}

TEST_CASE("declared gradients speak of results and parameters that there are") {
  auto check = [](const std::string& declaration, const std::string& wanted) {
    check_text("module @m { func @f(%x: f32[2], %n: i64[]) -> (f32[2], i64[]) { return %x, %n } func @main" +
                   declaration + " }",
               wanted);
  };
  check(" = gradient @f from 2 wrt x", "gradient of @f: there is no result 2");
  check(" = gradient @f from 1 wrt x", "result 1 is i64[], wants f16, bf16, f32 or f64");
  check(" = gradient @f wrt n", "parameter 1 is i64[]");
  check(" = gradient @f wrt 0, x", "a parameter is not there or is named twice");
  check(" = gradient @f wrt 7", "a parameter is not there or is named twice");
  check(" = gradient @f wrt x keeping 2", "a kept result is not there");
  check(" = gradient @g wrt 0 func @g = gradient @main wrt 0", "is declared to be a gradient of itself");
  check(
      "(%x: f32[2]) -> (f32[]) { %y = call %x {callee = \"g\"} : f32[] return %y } func @g = gradient @f wrt "
      "x",
      "@g has another number of parameters or results");
}

TEST_CASE("adjoint rules have the type that their function asks for") {
  auto check = [](const std::string& rule, const std::string& wanted) {
    check_text("module @m { func @main(%x: f32[2], %n: i64[]) -> (f32[2]) by @r { return %x }" + rule + " }",
               wanted);
  };
  check("", "there is no adjoint rule @r");
  check("func @r(%x: f32[2], %n: i64[], %y: f32[2]) -> (f32[2]) { return %y }",
        "wants the parameters, the results and a seed of each float result");
  check("func @r(%x: f32[2], %n: i64[], %y: f32[2], %s: f32[2]) -> () { return }",
        "wants to return a gradient for each float parameter");
}

} // namespace
} // namespace firn
