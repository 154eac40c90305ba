// Broken text ends in a message with line and column, never in a crash.
#include "tests/graph/text_files.h"

namespace firn {
namespace {

std::string error_of(const std::string& text) {
  auto module = parse_module("m.hlo", text);
  REQUIRE_FALSE(module);
  CHECK(module.error().fault == Fault::Model);
  return module.error().message;
}

void check_error(const std::string& text, const std::string& wanted) {
  INFO(text.substr(0, 400));
  std::string message = error_of(text);
  INFO(message);
  CHECK(message.find(wanted) != std::string::npos);
}

void check_body_error(const std::string& body, const std::string& wanted) {
  check_error(main_text("%x: f32[2]", "f32[2]", body), wanted);
}

TEST_CASE("errors name the place") {
  CHECK(error_of("module @m {\n  func @main() -> () {\n    %x = ad : f32[2]\n") ==
        "m.hlo:3:12: unknown op 'ad'");
  CHECK(error_of("") == "m.hlo:1:1: expected 'module'");
}

TEST_CASE("broken structure is refused") {
  check_error("module @m { func @main() -> () { return } func @main() -> () { return } }", "defined twice");
  check_error("module @m { func @main() -> () { return } } more", "text after the module");
  check_error("module @m { func @main() -> (f32[]) { return } }", "differ from what it returns");
  check_error("module @m { func @main(%x: f32[], %x: f32[]) -> () { return } }", "defined twice");
  check_error("module @m { symbol n in [3, 2] }", "symbol without values");
  check_error("module @m { symbol n in [1, 2] symbol n in [1, 2] }", "defined twice");
  check_body_error("%y = add %x, %z : f32[2] return %y", "'%z' is not defined");
  check_body_error("%y = add %x, %y : f32[2] return %y", "'%y' is not defined");
  check_body_error("%x = negate %x : f32[2] return %x", "defined twice");
  check_body_error("%y = negate %x#1 : f32[2] return %y", "has no result 1");
  check_body_error("%y = parameter : f32[2] return %y", "unknown op 'parameter'");
  check_body_error("%y:99999 = negate %x : f32[2] return %y", "broken result count");
  check_body_error("%y = negate %x : f32[2] loc(3) return %y", "expected a location");
}

TEST_CASE("broken declarations of gradients are refused") {
  auto check = [](const std::string& declaration, const std::string& wanted) {
    check_error("module @m { func @f(%x: f32[2]) -> (f32[2]) { return %x } func @g = " + declaration + " }",
                wanted);
  };
  check("adjoint @f wrt x", "expected 'gradient'");
  check("gradient @f", "expected 'wrt'");
  check("gradient @f wrt", "expected a parameter's name or number");
  check("gradient @f wrt y", "@g: @f has no parameter 'y'");
  check("gradient @h wrt x", "@g: gradient of @h, which is no function");
  check("gradient @f from x wrt x", "expected a number");
  check("gradient @g wrt x", "@g: @g has no parameter 'x'");
}

TEST_CASE("isolated regions see nothing outside, those of if do") {
  check_body_error("%y = fusion %x {kind = elementwise} region(%p: f32[2]) { return %x } : f32[2] return %y",
                   "'%x' is not defined");
  parse_or_fail("m",
                main_text("%x: f32[2], %c: bool[]", "f32[2]",
                          "%y = if %c region() { return %x }, region() { return %x } : f32[2] return %y"));
}

TEST_CASE("broken types are refused") {
  auto type = [](const std::string& text) {
    return main_text("%x: " + text, "", "return", "symbol n in [1, 4]");
  };
  check_error(type("f33[2]"), "expected a type");
  check_error(type("f32[-1]"), "negative dim");
  check_error(type("f32[m]"), "unknown symbol 'm'");
  check_error(type("f32[n floordiv 0]"), "division by 0");
  check_error(type("f32[n mod -3]"), "division by -3");
  check_error(type("f32[4611686018427387904,4]"), "out of range");
  check_error(type("f32[1000000000,1000000000,1000000000]"), "tensor too large");
  check_error(type("f32[99999999999999999999]"), "out of range");
  check_error(type("f32[n*2000000000*2000000000]"), "expression too large");
  check_error(type("f32[2]{0,1}"), "expected '}'");
  check_error(type("f32[2,2]{0,0}"), "broken layout");
  check_error(type("f32[2]{:1x4}"), "broken layout");
  check_error(type("f32[2]{:0x0}"), "broken layout");
  check_error(type("f32[2]{:0x1000000}"), "broken layout");
  check_error(type("f32[2]{:0xa0000000000000000000}"), "broken layout");
  check_error(type("f32[2]{;1,2}"), "broken layout");
  check_error(type("sequence<f32[2]>"), "expected ';'");
  check_error(type("string<0>[2]"), "broken string bound");
}

TEST_CASE("broken constants are refused") {
  auto constant = [](const std::string& text) {
    return main_text("", "", "%c = constant " + text + " return");
  };
  check_error(constant("[1, 2] : f32[3]"), "has 2 elements, its type wants 3");
  check_error(constant("[1.5] : i32[1]"), "element '1.5' is no i32");
  check_error(constant("[128] : i8[1]"), "element '128' is no i8");
  check_error(constant("[-129] : i8[1]"), "is no i8");
  check_error(constant("[-1] : u8[1]"), "is no u8");
  check_error(constant("[8] : i4[1]"), "is no i4");
  check_error(constant("[18446744073709551616] : u64[1]"), "is no u64");
  check_error(constant("[1] : bool[1]"), "is no bool");
  check_error(constant("[1] : c64[1]"), "is no c64");
  check_error(constant("[(1, x)] : c64[1]"), "is no c64");
  check_error(constant("[0x1ff] : f8e5m2[1]"), "is no f8e5m2");
  check_error(constant("[nanny] : f32[1]"), "is no f32");
  check_error(constant("[] : optional<f32[]>"), "wants static dims");
  check_error(constant("<name> : f32[4]"), "expected '#'");
  check_error(constant("<name #> : f32[4]"), "expected a literal's hash");
}

TEST_CASE("broken attributes are refused") {
  auto attributes = [](const std::string& text) {
    return main_text("%x: f32[2]", "", "%y = negate %x {" + text + "} : f32[2] return");
  };
  check_error(attributes("a = 1, a = 2"), "each once");
  check_error(attributes("a = [1, 2.5]"), "mixes integers and floats");
  check_error(attributes("a = ]"), "expected a number");
  check_error(attributes("a = two words"), "expected '}'");
  check_error(attributes("window = 3xq"), "broken window");
  check_error(attributes("window = 3x3 stride 2"), "differ in rank");
  check_error(attributes("window = 3x3 pad 1x1"), "broken window");
  check_error(attributes("a = \"open"), "string without end");
}

// `open` repeated, then `close` repeated as often.
std::string nested(const std::string& open, const std::string& middle, const std::string& close, int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += middle;
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

TEST_CASE("nesting beyond the caps is refused") {
  constexpr int deep = 100000;
  check_error(main_text("%x: f32[" + nested("(", "1", ")", deep) + "]", "", "return"), "nested too deeply");
  check_error(main_text("%x: " + nested("optional<", "f32[]", ">", deep), "", "return"), "nested too deeply");
  check_error(
      main_text("%x: f32[" + nested("min(1, ", "n", ")", deep) + "]", "", "return", "symbol n in [0, 9]"),
      "nested too deeply");
  check_error(main_text("%c: bool[]", "",
                        nested("%y:0 = if %c region() {", "return", "}, region() { return } : ()", deep)),
              "nested too deeply");
}

TEST_CASE("expressions that would grow without end are refused") {
  std::string symbols = "symbol a in [0, 9]\nsymbol b in [0, 7]\nsymbol c in [0, 100]";
  auto dim = [&](const std::string& text) {
    return main_text("%x: f32[" + text + "]", "", "return", symbols);
  };
  std::string chain = "c", product = "(a + b + c + 1)";
  for (int i = 0; i < 2000; ++i) chain += i % 2 ? " floordiv 3 * c" : " mod 97 * b";
  check_error(dim(chain), "too large");
  for (int i = 0; i < 40; ++i) product += "*(a + b + c + 1)";
  check_error(dim(product), "expression too large");
  std::string squares = "a";
  for (int i = 0; i < 30; ++i) squares = "(" + squares + " mod 97 + b)*(b + c + 1)";
  check_error(dim(squares), "too large");
  std::string sum = "1000000000000000000";
  for (int i = 0; i < 10; ++i) sum += " + 1000000000000000000";
  check_error(dim(sum), "expression too large");
  std::string divisions = "c";
  for (int i = 0; i < 8; ++i) divisions += " floordiv 1000000000";
  parse_or_fail("m", dim(divisions + " + 1"));
}

} // namespace
} // namespace firn
