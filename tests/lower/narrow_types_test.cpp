// Floats of 8 and 4 bits and integers of 4 and 2: conversions at every code and beside every boundary between
// two, and packed elements at odd counts, read anywhere and written whole.
#include "tests/lower/lowered_program.h"

#include "compiler/graph/evaluate.h"
#include "compiler/passes/passes.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn::test;

namespace {

const char* const kSmallFloats[] = {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0"};
const std::vector<std::string> kCpus = {"x86-64", "x86-64-v3", "native"};

std::string replaced(std::string text, const std::string& name, const std::string& value) {
  for (size_t at; (at = text.find(name)) != text.npos;) text.replace(at, name.size(), value);
  return text;
}

// Numbers that differ, of both signs.
std::vector<firn::LiteralRef> inputs_of(const firn::Module& module,
                                        const std::map<std::string, int64_t>& extents) {
  std::vector<firn::LiteralRef> inputs;
  for (const firn::Instruction* parameter : module.main().body().parameters()) {
    std::vector<int64_t> dims;
    for (const firn::Dim& dim : parameter->type().dims)
      dims.push_back(dim.is_static() ? dim.value() : extents.at(dim.extent.symbols()[0]->name));
    auto literal = std::make_shared<firn::Literal>(parameter->type().dtype, dims);
    for (int64_t i = 0; i < literal->num_elements(); ++i) literal->set_int(i, i * 5 % 19 - 8);
    inputs.push_back(literal);
  }
  return inputs;
}

// Legalises as `firn compile` does. The pass must not change results.
void expect_legalised(const std::string& text, const LoweredOptions& options = {.tolerance = 0}) {
  auto original = firn::parse_module("test.hlo", text), module = firn::parse_module("test.hlo", text);
  if (!module) FAIL(module.error().message);
  firn::PipelineRun run;
  firn::Result result =
      firn::run_passes(**module, "legalise-narrow-types,form-fusions,eliminate-dead-code", run);
  if (!result) FAIL(result.error().message);
  auto inputs =
      inputs_of(**original, options.extents.empty() ? std::map<std::string, int64_t>() : options.extents[0]);
  auto want = firn::evaluate(**original, inputs), got = firn::evaluate(**module, inputs);
  INFO(text);
  REQUIRE(want);
  REQUIRE(got);
  for (size_t i = 0; i < want->size(); ++i) {
    CHECK((*got)[i]->type() == (*want)[i]->type());
    CHECK(std::ranges::equal((*got)[i]->bytes(), (*want)[i]->bytes()));
  }
  expect_lowered_module(**module, options);
}

std::string main_of(const std::string& parameters, const std::string& results, const std::string& body) {
  return "module @m { func @main(" + parameters + ") -> (" + results + ") { " + body + " } }";
}

} // namespace

TEST_CASE("every code of a small float is a number", "[lower][narrow]") {
  for (const char* small : kSmallFloats)
    expect_lowered("%x: i8[3]",
                   replaced("%i = iota {dim = 0} : u8[256] %s = bitcast_convert %i : TYPE[256] "
                            "%r = convert %s {to = f32} : f32[256]",
                            "TYPE", small),
                   "f32[256]", {.tolerance = 0, .cpus = kCpus});
}

// All patterns of sign, exponent and as many digits as tell the middle between two numbers, and their
// neighbours in the type that is converted.
TEST_CASE("floats round once to small floats", "[lower][narrow]") {
  const std::string patterns =
      "%a = iota {dim = 0} : i32[16384] %d = constant [18] : i32[] "
      "%e = broadcast_in_dim %d {dims = []} : i32[16384] %p = shift_left %a, %e : i32[16384] "
      "%b = bitcast_convert %p : f32[16384] ";
  const std::string neighbours =
      "%w = convert %b {to = FLOAT} : FLOAT[16384] %i = bitcast_convert %w : INT[16384] "
      "%j = broadcast_in_dim %i {dims = [1]} : INT[3,16384] %k = iota {dim = 0} : INT[3,16384] "
      "%one = constant [1] : INT[] %ones = broadcast_in_dim %one {dims = []} : INT[3,16384] "
      "%l = subtract %k, %ones : INT[3,16384] %m = add %j, %l : INT[3,16384] %x = bitcast_convert %m : "
      "FLOAT[3,16384] ";
  auto check = [&](const std::string& from, const std::string& integer, const std::string& small,
                   const std::string& saturate, const std::vector<std::string>& cpus) {
    expect_lowered("%y: i8[3]",
                   patterns + replaced(replaced(neighbours, "FLOAT", from), "INT", integer) +
                       "%r = convert %x {to = " + small + saturate + "} : " + small + "[3,16384]",
                   small + "[3,16384]", {.tolerance = 0, .cpus = cpus});
  };
  for (const char* small : kSmallFloats) {
    check("f32", "i32", small, "", kCpus);
    check("f32", "i32", small, ", saturate = true", {"x86-64-v3"});
    check("f64", "i64", small, "", {"x86-64-v3"});
    check("f16", "i16", small, "", {"x86-64-v3"});
    check("bf16", "i16", small, "", {"x86-64-v3"});
  }
}

TEST_CASE("integers become small floats and back", "[lower][narrow]") {
  const std::pair<const char*, Range> sources[] = {
      {"i8", {-128, 127}}, {"u8", {0, 255}},       {"i16", {-600, 600}},   {"i32", {-2e9, 2e9}},
      {"u32", {0, 4e9}},   {"i64", {-9e18, 9e18}}, {"u64", {-9e18, 9e18}}, {"bool", {0, 1}}};
  for (std::string small : kSmallFloats)
    for (auto [from, range] : sources)
      expect_lowered(replaced("%x: FROM[511]", "FROM", from),
                     "%r = convert %x {to = " + small + ", saturate = true} : " + small + "[511]",
                     small + "[511]", {.tolerance = 0, .ranges = {{"x", range}}, .cpus = {"x86-64-v3"}});
  for (const char* to : {"i32", "u8", "f64", "f16", "bool", "f8e5m2"})
    expect_lowered("%x: f8e4m3fn[67]", replaced("%r = convert %x {to = TO} : TO[67]", "TO", to),
                   std::string(to) + "[67]",
                   {.tolerance = 0, .ranges = {{"x", {0, 100}}}, .cpus = {"x86-64-v3"}});
}

TEST_CASE("packed elements are read and written at every count", "[lower][narrow]") {
  for (const char* dtype : {"i4", "u4", "i2", "u2", "f4e2m1"})
    for (int n : {1, 2, 3, 5, 31, 67, 131}) {
      std::string type = "TYPE[" + std::to_string(n) + "]", floats = "f32[" + std::to_string(n) + "]";
      expect_legalised(
          replaced(main_of("%x: " + type + ", %y: " + floats, floats + ", " + type,
                           "%a = convert %x {to = f32} : " + floats +
                               " %b = convert %y {to = TYPE, saturate = true} : " + type + " return %a, %b"),
                   "TYPE", dtype),
          {.tolerance = 0, .ranges = {{"x", {-9, 17}}, {"y", {-9, 17}}}, .cpus = {"x86-64", "native"}});
    }
}

TEST_CASE("packed elements move at odd places", "[lower][narrow]") {
  for (const char* dtype : {"i4", "u4", "i2", "u2", "f4e2m1", "f8e4m3fn", "f8e5m2"}) {
    auto check = [&](const std::string& parameters, const std::string& results, const std::string& body) {
      expect_legalised(replaced(main_of(parameters, results, body), "TYPE", dtype),
                       {.tolerance = 0, .ranges = {{"x", {-9, 17}}, {"y", {-9, 17}}}, .cpus = {"x86-64-v3"}});
    };
    check(
        "%x: TYPE[5,7]", "TYPE[7,5], TYPE[35], TYPE[5,7]",
        "%a = transpose %x {permutation = [1, 0]} : TYPE[7,5] %b = reshape %x : TYPE[35] return %a, %b, %x");
    check("%x: TYPE[5,7], %y: TYPE[2,7]", "TYPE[7,7], TYPE[3,3]",
          "%a = concatenate %x, %y {dim = 0} : TYPE[7,7] "
          "%b = slice %x {starts = [1, 1], limits = [4, 6], strides = [1, 2]} : TYPE[3,3] return %a, %b");
    check(
        "%x: TYPE[5,7], %y: TYPE[], %c: bool[5,7]", "TYPE[7,10], TYPE[5,7]",
        "%a = pad %x, %y {low = [1, 2], high = [1, 1], interior = [0, 0]} : TYPE[7,10] "
        "%b = broadcast_in_dim %y {dims = []} : TYPE[5,7] %d = select %c, %x, %b : TYPE[5,7] return %a, %d");
    check("%x: TYPE[9,3], %i: i64[4]", "TYPE[4,3], f32[9,3]",
          "%a = gather %x, %i {axis = 0} : TYPE[4,3] %b = reverse %x {dims = [0]} : TYPE[9,3] "
          "%f = convert %b {to = f32} : f32[9,3] return %a, %f");
    check("%x: TYPE[3,5], %y: TYPE[1,3], %i: i64[]", "TYPE[3,5]",
          "%a = dynamic_update_slice %x, %y, %i, %i : TYPE[3,5] return %a");
    check("%x: TYPE[7]", "TYPE[7], TYPE[3,7]",
          "%k = constant [1, 0, 1, 2, 1, 0, 3] : i8[7] %w = convert %k {to = TYPE} : TYPE[7] "
          "%a = broadcast_in_dim %x {dims = [1]} : TYPE[3,7] return %w, %a");
  }
}

TEST_CASE("constants stay packed", "[lower][narrow]") {
  std::string numbers;
  for (int i = 0; i < 601; ++i) numbers += (i ? ", " : "") + std::to_string(i * 7 % 5 % 2);
  for (const char* dtype : {"i4", "u4", "i2", "u2", "f4e2m1"})
    expect_legalised(
        replaced(main_of("%i: i64[5]", "TYPE[5], f32[601], TYPE[300]",
                         "%w = constant [" + numbers +
                             "] : TYPE[601] "
                             "%a = gather %w, %i {axis = 0} : TYPE[5] %b = convert %w {to = f32} : f32[601] "
                             "%c = slice %w {starts = [1], limits = [301], strides = [1]} : TYPE[300] "
                             "return %a, %b, %c"),
                 "TYPE", dtype),
        {.tolerance = 0, .ranges = {{"i", {-601, 600}}}, .cpus = kCpus});
}

TEST_CASE("what computes in narrow types computes in wider ones", "[lower][narrow]") {
  for (const char* dtype : {"i4", "u4", "i2", "u2"})
    for (const char* op : {"add", "subtract", "multiply", "maximum", "divide", "and", "xor", "shift_left",
                           "shift_right", "power"})
      expect_legalised(replaced(replaced(main_of("%x: TYPE[19], %y: TYPE[19]", "TYPE[19]",
                                                 "%r = OP %x, %y : TYPE[19] return %r"),
                                         "OP", op),
                                "TYPE", dtype),
                       {.tolerance = 0, .ranges = {{"x", {-8, 15}}, {"y", {1, 3}}}, .cpus = {"x86-64-v3"}});
  for (const char* dtype : {"i4", "u4", "i2", "u2"})
    for (const char* op : {"not", "popcnt", "abs", "negate", "sign"})
      expect_legalised(replaced(replaced(main_of("%x: TYPE[19]", "TYPE[19]",
                                                 "%t = reverse %x {dims = [0]} : TYPE[19] "
                                                 "%r = OP %t : TYPE[19] return %r"),
                                         "OP", op),
                                "TYPE", dtype),
                       {.tolerance = 0, .ranges = {{"x", {-8, 15}}}, .cpus = {"x86-64-v3"}});
  for (const char* dtype : {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1"})
    for (const char* op : {"add", "multiply", "divide", "maximum"})
      expect_legalised(
          replaced(replaced(main_of("%x: TYPE[19], %y: TYPE[19]", "TYPE[19], bool[19]",
                                    "%r = OP %x, %y : TYPE[19] "
                                    "%c = compare %r, %x {direction = lt} : bool[19] return %r, %c"),
                            "OP", op),
                   "TYPE", dtype),
          {.tolerance = 0, .ranges = {{"x", {-8, 8}}, {"y", {0.5, 3}}}, .cpus = {"x86-64-v3"}});
}

TEST_CASE("packed values are carried by loops and branches, and kept in states", "[lower][narrow]") {
  for (const char* dtype : {"i4", "u2", "f4e2m1", "f8e4m3fn"})
    expect_legalised(replaced(
        main_of("%x: TYPE[3,3], %c: bool[]", "TYPE[3,3], TYPE[3,3]",
                "%zero = constant [0] : i64[] %one = constant [1] : i64[] %three = constant [3] : i64[] "
                "%w:2 = while %zero, %x region (%i: i64[], %v: TYPE[3,3]) { "
                "%go = compare %i, %three {direction = lt} : bool[] return %go }, "
                "region (%i: i64[], %v: TYPE[3,3]) { %j = add %i, %one : i64[] "
                "%t = transpose %v {permutation = [1, 0]} : TYPE[3,3] "
                "%u = reverse %t {dims = [0]} : TYPE[3,3] return %j, %u } : (i64[], TYPE[3,3]) "
                "%b = if %c region () { return %x }, region () { "
                "%r = reverse %w#1 {dims = [1]} : TYPE[3,3] return %r } : TYPE[3,3] return %w#1, %b"),
        "TYPE", dtype));
  expect_legalised("module @m { func @main(%s: i4[5], %x: i4[5]) -> (i4[5], i4[5]) aliases [0, -1] { "
                   "%n = add %s, %x : i4[5] %r = reverse %n {dims = [0]} : i4[5] return %n, %r } }");
}

TEST_CASE("packed elements of a tensor whose dims vary", "[lower][narrow]") {
  LoweredOptions options{.tolerance = 0, .ranges = {{"x", {-9, 17}}, {"y", {-9, 17}}}, .cpus = {"x86-64-v3"}};
  options.extents = {{{"n", 1}}, {{"n", 3}}, {{"n", 40}}, {{"n", 37}}};
  for (const char* dtype : {"i4", "u2", "f4e2m1"})
    expect_legalised(
        replaced("module @m { symbol n in [1, 40] func @main(%x: TYPE[n,3], %y: f32[n,3]) -> "
                 "(f32[n,3], TYPE[n,3], TYPE[n,3]) { %a = convert %x {to = f32} : f32[n,3] "
                 "%b = convert %y {to = TYPE, saturate = true} : TYPE[n,3] return %a, %b, %x } }",
                 "TYPE", dtype),
        options);
}

TEST_CASE("code that would compute in narrow types is refused", "[lower][narrow]") {
  for (const char* body :
       {"%r = add %x, %x : f8e5m2[4] return %r", "%r = reverse %x {dims = [0]} : i4[4] return %r"}) {
    const char* type = std::string(body).find("i4") != std::string::npos ? "i4[4]" : "f8e5m2[4]";
    std::string error = lowering_error(main_of(std::string("%x: ") + type, type, body));
    CHECK(error.find("no code can be made for operands of type") != std::string::npos);
  }
}
