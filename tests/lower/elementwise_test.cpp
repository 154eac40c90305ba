// Elementwise ops and fusions, over dtypes and sizes around the length of vectors.
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

void expect_unary(const std::string& op, const std::string& dtype, Range range = {-2, 2},
                  double tolerance = 1e-6) {
  std::string type = dtype + "[67]";
  expect_lowered("%x: " + type, "%r = " + op + " %x : " + type, type,
                 {.tolerance = tolerance, .ranges = {{"x", range}}, .cpus = {"x86-64-v3"}});
}
void expect_binary(const std::string& op, const std::string& dtype, Range y = {-5, 5},
                   double tolerance = 1e-6) {
  std::string type = dtype + "[67]";
  expect_lowered("%x: " + type + ", %y: " + type, "%r = " + op + " %x, %y : " + type, type,
                 {.tolerance = tolerance, .ranges = {{"y", y}}, .cpus = {"x86-64-v3"}});
}

} // namespace

TEST_CASE("sizes around vectors", "[lower]") {
  for (int n : {1, 3, 4, 7, 8, 9, 15, 16, 17, 33, 67, 20000}) {
    std::string type = "f32[" + std::to_string(n) + "]";
    expect_lowered("%x: " + type + ", %y: " + type, "%r = add %x, %y : " + type, type, {.tolerance = 0});
  }
}

TEST_CASE("broadcasting operands", "[lower]") {
  expect_lowered("%x: f32[2,5,7,9], %b: f32[5]",
                 "%c = broadcast_in_dim %b {dims = [1]} : f32[2,5,7,9] %r = add %x, %c : f32[2,5,7,9]",
                 "f32[2,5,7,9]", {.tolerance = 0});
  expect_lowered("%x: f32[3,1,17]", "%r = broadcast_in_dim %x {dims = [0, 1, 2]} : f32[3,4,17]",
                 "f32[3,4,17]", {.tolerance = 0});
  expect_lowered("%x: f32[]", "%r = broadcast_in_dim %x {dims = []} : f32[3,11]", "f32[3,11]",
                 {.tolerance = 0});
}

TEST_CASE("unary float ops", "[lower]") {
  for (const char* dtype : {"f32", "f64"})
    for (const char* op : {"abs", "ceil", "floor", "negate", "round_nearest_even", "sign", "exponential",
                           "exponential_minus_one", "logistic", "tanh", "erf", "sine", "cosine", "tan",
                           "atan", "sinh", "cosh", "asinh"})
      expect_unary(op, dtype);
  for (const char* op : {"sqrt", "rsqrt", "log", "log_plus_one"}) expect_unary(op, "f32", {0.01, 9});
  for (const char* op : {"acos", "asin", "atanh"}) expect_unary(op, "f32", {-0.99, 0.99});
  expect_unary("acosh", "f32", {1, 5});
}

TEST_CASE("floats are quantised to the nearest integer between bounds, ties to even", "[lower]") {
  struct Case {
    std::string dtype, low, high, offset;
  };
  for (const Case& c :
       {Case{"u8", "0", "255", "0"}, Case{"u8", "0", "255", "131"}, Case{"i8", "-128", "127", "-3"},
        Case{"i8", "3", "90", "7"}, Case{"u16", "0", "65535", "9"}, Case{"i32", "-1000", "1000", "1"}})
    for (int n : {1, 67}) {
      std::string f = "f32[" + std::to_string(n) + "]", i = "i32[" + std::to_string(n) + "]",
                  q = c.dtype + "[" + std::to_string(n) + "]";
      auto splat = [&](const std::string& name, const std::string& number) {
        return "%" + name + "s = constant [" + number + "] : f32[] %" + name + " = broadcast_in_dim %" +
               name + "s {dims = []} : " + f + " ";
      };
      // Halves, and numbers beyond i32.
      std::string body = "%d = convert %p {to = f32} : " + f + " " + splat("s", "0.5") +
                         "%h = multiply %d, %s : " + f + " %m = multiply %h, %g : " + f +
                         " %q = narrow %m {high = " + c.high + ", low = " + c.low + ", to = " + c.dtype +
                         ", zero = " + c.offset + "} : " + q;
      std::string fused = "%r = fusion %x, %y {kind = elementwise} region (%p: " + i + ", %g: " + f + ") { " +
                          body + " return %q } : " + q;
      LoweredOptions options{.tolerance = 0, .ranges = {{"x", {-700, 700}}, {"y", {1, 1}}}};
      expect_lowered("%x: " + i + ", %y: " + f, fused, q, options);
      options.ranges["y"] = {-1e30, 1e30};
      expect_lowered("%x: " + i + ", %y: " + f, fused, q, options);
    }
}

TEST_CASE("no number is quantised to the least integer, in vectors and behind them", "[lower]") {
  for (const char* offset : {"0", "3", "131"})
    for (int n : {1, 67}) {
      std::string dims = "[" + std::to_string(n) + "]", f = "f32" + dims;
      std::string body = "%m = sqrt %p : " + f +
                         " %q = narrow %m {high = 255, low = 0, to = u8, zero = " + offset + "} : u8" + dims;
      expect_lowered("%x: " + f,
                     "%r = fusion %x {kind = elementwise} region (%p: " + f + ") { " + body +
                         " return %q } : u8" + dims,
                     "u8" + dims, {.tolerance = 0, .ranges = {{"x", {-9e4, 9e4}}}});
    }
}

TEST_CASE("what is quantised for its rounding alone stays a float", "[lower]") {
  struct Case {
    std::string dtype, low, high, offset, zero_point;
  };
  for (const Case& c : {Case{"u8", "0", "255", "0", "0"}, Case{"u8", "0", "255", "131", "131"},
                        Case{"i8", "-128", "127", "-3", "-3"}, Case{"u8", "0", "255", "7", "9"},
                        Case{"u16", "0", "65535", "9", "9"}}) {
    std::string f = "f32[67]", i = "i32[67]";
    auto splat = [&](const std::string& name, const std::string& number, const std::string& dtype) {
      return "%" + name + "s = constant [" + number + "] : " + dtype + "[] %" + name +
             " = broadcast_in_dim %" + name + "s {dims = []} : " + dtype + "[67] ";
    };
    std::string body = "%d = convert %p {to = f32} : " + f + " " + splat("h", "0.5", "f32") +
                       "%m = multiply %d, %h : " + f + " %q = narrow %m {high = " + c.high +
                       ", low = " + c.low + ", to = " + c.dtype + ", zero = " + c.offset + "} : " + c.dtype +
                       "[67] " + "%w = convert %q {to = i32} : " + i + " " + splat("z", c.zero_point, "i32") +
                       "%u = subtract %w, %z : " + i + " %g = convert %u {to = f32} : " + f +
                       " %r = multiply %g, %h : " + f;
    expect_lowered("%x: " + i,
                   "%r = fusion %x {kind = elementwise} region (%p: " + i + ") { " + body +
                       " return %r } : " + f,
                   f, {.tolerance = 0, .ranges = {{"x", {-700, 700}}}});
  }
}

TEST_CASE("gelu takes its factors into the polynomial of erf", "[lower]") {
  auto body = [](const std::string& type, const std::string& half, const std::string& inner) {
    return "%c = constant [" + inner + "] : f32[] %cc = broadcast_in_dim %c {dims = []} : " + type +
           " %s = multiply %x, %cc : " + type + " %e = erf %s : " + type + " %h = constant [" + half +
           "] : f32[] %hh = broadcast_in_dim %h {dims = []} : " + type + " %l = multiply %hh, %x : " + type +
           " %o = constant [1.0] : f32[] %oo = broadcast_in_dim %o {dims = "
           "[]} : " +
           type + " %a = add %oo, %e : " + type + " %r = multiply %a, %l : " + type;
  };
  auto fused = [&](const std::string& type, const std::string& code) {
    std::string inside = code;
    for (size_t at; (at = inside.find("%x")) != std::string::npos;) inside.replace(at, 2, "%p");
    inside.replace(inside.rfind("%r"), 2, "%q");
    return "%r = fusion %x {kind = elementwise} region (%p: " + type + ") { " + inside +
           " return %q } : " + type;
  };
  for (int n : {1, 67}) {
    std::string type = "f32[" + std::to_string(n) + "]";
    for (double reach : {0.1, 3.0, 40.0}) {
      LoweredOptions options{.tolerance = 3e-7, .ranges = {{"x", {-reach, reach}}}};
      expect_lowered("%x: " + type, fused(type, body(type, "0.5", "0.70710678")), type, options);
      expect_lowered("%x: " + type, fused(type, body(type, "1.5", "2.0")), type, options);
      expect_lowered("%x: " + type, fused(type, body(type, "-0.5", "0.70710678")), type, options);
    }
  }
  auto holds = [&](const std::string& half, const char* number) {
    std::string text = firn::kernel::print_program(
        lower_text("module @m { func @main(%x: f32[64]) -> (f32[64]) { " +
                       fused("f32[64]", body("f32[64]", half, "0.70710678")) + " return %r } }",
                   "x86-64-v3"));
    return text.find(number) != std::string::npos;
  };
  CHECK_FALSE(holds("0.5", "const [0.7071"));
  CHECK(holds("-0.5", "const [0.7071"));
}

TEST_CASE("ops on narrow floats round after every op", "[lower]") {
  for (const char* dtype : {"f16", "bf16"}) {
    for (const char* op : {"negate", "sqrt", "tanh", "exponential"}) expect_unary(op, dtype, {0.1, 2}, 2e-2);
    std::string type = std::string(dtype) + "[37]";
    expect_lowered("%x: " + type + ", %y: " + type,
                   "%a = add %x, %y : " + type + " %b = multiply %a, %y : " + type +
                       " %r = subtract %b, %x : " + type,
                   type, {.tolerance = 0});
  }
}

TEST_CASE("a row of halves to the powers of many rows", "[lower]") {
  // The row's comparisons are made once and wait on the stack, as masks or as halves.
  std::string type = "f16[32,11]";
  expect_lowered("%b: f16[11], %x: " + type,
                 "%r = fusion %b, %x {kind = elementwise} region(%p: f16[11], %q: " + type +
                     ") { %c = broadcast_in_dim %p {dims = [1]} : " + type + " %w = power %c, %q : " + type +
                     " return %w } : " + type,
                 type, {.tolerance = 1e-3, .ranges = {{"b", {0.5, 2}}, {"x", {-3, 3}}}});
}

TEST_CASE("binary ops", "[lower]") {
  for (const char* dtype : {"f32", "f64", "i8", "i32", "u8", "i64", "u32", "i16", "u64"})
    for (const char* op : {"add", "subtract", "multiply", "maximum", "minimum"})
      expect_binary(op, dtype, {0, 5});
  for (const char* dtype : {"f32", "f64", "i8", "i32", "u8", "i64"})
    for (const char* op : {"divide", "remainder"}) expect_binary(op, dtype, {1, 5});
  for (const char* dtype : {"i8", "i32", "u8", "i64"})
    for (const char* op : {"and", "or", "xor", "shift_left", "shift_right", "power"})
      expect_binary(op, dtype, {0, 5});
  expect_binary("atan2", "f32");
  expect_lowered("%x: f32[67], %y: f32[67]", "%r = power %x, %y : f32[67]", "f32[67]",
                 {.ranges = {{"x", {0.1, 3}}, {"y", {-3, 3}}}});
}

TEST_CASE("comparisons, selection and bools", "[lower]") {
  for (const char* direction : {"eq", "ne", "lt", "le", "gt", "ge"})
    for (const char* dtype : {"f32", "i8", "u8", "i64"})
      expect_lowered(std::string("%x: ") + dtype + "[37], %y: " + dtype + "[37]",
                     std::string("%r = compare %x, %y {direction = ") + direction + "} : bool[37]",
                     "bool[37]", {.cpus = {"x86-64-v3"}});
  expect_lowered("%c: bool[37], %d: bool[37], %x: f32[37], %y: f32[37]",
                 "%e = xor %c, %d : bool[37] %n = not %e : bool[37] %r = select %n, %x, %y : f32[37]",
                 "f32[37]");
  expect_lowered(
      "%x: f32[37]",
      "%l = constant [-1.0] : f32[] %h = constant [1.0] : f32[] "
      "%a = broadcast_in_dim %l {dims = []} : f32[37] %b = broadcast_in_dim %h {dims = []} : f32[37] "
      "%r = clamp %a, %x, %b : f32[37]",
      "f32[37]", {.tolerance = 0});
}

TEST_CASE("conversions", "[lower]") {
  std::vector<std::string> dtypes = {"f64", "f32", "f16", "bf16", "i64", "i32", "i16",
                                     "i8",  "u64", "u32", "u16",  "u8",  "bool"};
  for (const std::string& from : dtypes)
    for (const std::string& to : dtypes) {
      Range range = from[0] == 'u' || to[0] == 'u' ? Range{0, 100} : Range{-100, 100};
      expect_lowered("%x: " + from + "[19]", "%r = convert %x {to = " + to + "} : " + to + "[19]",
                     to + "[19]", {.tolerance = 0, .ranges = {{"x", range}}, .cpus = {"x86-64-v3"}});
    }
  for (const char* to : {"i8", "u8", "i32"})
    expect_lowered("%x: f32[19]",
                   std::string("%r = convert %x {saturate = true, to = ") + to + "} : " + to + "[19]",
                   std::string(to) + "[19]", {.ranges = {{"x", {-300, 300}}}});
}

// Numbers that only a run knows, of 16 elements, on CPUs that convert by other instructions.
static void expect_converted(const std::string& from, const std::string& elements, const std::string& to,
                             bool saturate = false) {
  std::vector<std::string> cpus = runnable_cpus();
  for (const char* cpu : {"cortex-a72", "generic-rv64", "cortex-m7"}) cpus.push_back(cpu);
  std::string type = from + "[16]", saturates = saturate ? "saturate = true, " : "";
  expect_lowered("%zero: " + type,
                 "%c = constant [" + elements + "] : " + type + " %x = add %c, %zero : " + type +
                     " %r = convert %x {" + saturates + "to = " + to + "} : " + to + "[16]",
                 to + "[16]", {.tolerance = 0, .ranges = {{"zero", {0, 0}}}, .cpus = cpus});
}

TEST_CASE("floats become integers without a sign up to the last one", "[lower]") {
  const std::string floats = "0.0, 0.9, 1.0, 255.5, 65535.75, 2147483648.0, 4294967040.0, 4294967296.0, "
                             "1099511627776.0, 9223371487098961920.0, 9223372036854775808.0, "
                             "9223373136366403584.0, 1e19, 1.8e19, 18446742974197923840.0, 3.0",
                    doubles = "0.0, 0.9, 4294967295.9, 4294967296.0, 9007199254740993.0, "
                              "9223372036854774784.0, 9223372036854775808.0, 9223372036854777856.0, "
                              "9223372036854779904.0, 1e19, 1.2345678901234567e19, 1.8e19, "
                              "18446744073709547520.0, 18446744073709549568.0, 7.0, 1e18",
                    words = "0.0, 0.9, 2147483647.0, 2147483648.0, 2147483649.5, 3e9, 4294967294.0, "
                            "4294967295.9, 1.0, 2.5, 3.0, 65535.0, 65536.0, 16777217.0, 1e9, 4e9",
                    beyond = "-1.0, -0.9, -1e30, 1e30, inf, -inf, nan, 4294967295.0, 4294967296.0, "
                             "9223372036854775808.0, 18446744073709551616.0, 1.8e19, 3.5, 0.0, -0.0, 1e10";
  expect_converted("f32", floats, "u64");
  expect_converted("bf16",
                   "0.0, 0.9, 1.5, 256.0, 1e5, 2e9, 4294967296.0, 1e12, 9187343239835811840.0, 3.0, "
                   "9223372036854775808.0, 9295429630892703744.0, 1e19, 1.8e19, 18374686479671623680.0, 7.0",
                   "u64");
  expect_converted("f64", doubles, "u64");
  expect_converted("f64", words, "u32");
  for (const char* from : {"f32", "f64"})
    for (const char* to : {"u64", "u32"}) expect_converted(from, beyond, to, /*saturate=*/true);
}

TEST_CASE("integers of 64 and 32 bits round once and meet in their common range", "[lower]") {
  // Beyond 2^53, on either side of what narrower floats have in the middle of two of theirs.
  const std::string
      longs = "0, 1, 4294967295, 4294967296, 9007199254740993, 72339069014638593, 72620543991349249, "
              "9223372036854775807, 9223372036854775808, 9259400833873739776, 9259400833873739777, "
              "9331458427911667713, 9223372586610589697, 18446744073709551615, 18410715276690587648, "
              "18410715276690587647",
      words = "0, 1, 16777217, 16777219, 2147483647, 2147483648, 2147483649, 2155872256, 2155872257, "
              "2172649473, 4286578687, 4286578688, 4294967295, 4294967167, 4294967168, 4294967169",
      negative = "0, -1, -9007199254740993, -72339069014638593, -9223372036854775807, "
                 "-9223372036854775808, -9187343239835811841, -9151314442816847873, 9187343239835811841, 5, "
                 "-4294967296, -2147483649, 4294967295, 4294967296, 2147483648, -72620543991349249";
  for (const char* to : {"f64", "f32", "bf16", "f16"}) {
    expect_converted("u64", longs, to);
    expect_converted("u32", words, to);
    expect_converted("i64", negative, to);
  }
  for (bool saturate : {false, true}) {
    for (const char* to : {"i64", "u32", "i32", "u8"}) expect_converted("u64", longs, to, saturate);
    for (const char* to : {"u64", "u32", "i32", "i8"}) expect_converted("i64", negative, to, saturate);
    for (const char* to : {"u64", "i64", "i32", "u16"}) expect_converted("u32", words, to, saturate);
  }
}

TEST_CASE("fusions compute chains without memory between", "[lower]") {
  std::string text =
      "module @m { func @main(%x: f32[3,37], %y: f32[37]) -> (f32[3,37], f32[3,37]) { "
      "%f:2 = fusion %x, %y {kind = elementwise} region (%p: f32[3,37], %q: f32[37]) { "
      "%b = broadcast_in_dim %q {dims = [1]} : f32[3,37] %s = add %p, %b : f32[3,37] "
      "%t = tanh %s : f32[3,37] %u = multiply %t, %s : f32[3,37] return %u, %t } : (f32[3,37], f32[3,37]) "
      "return %f#0, %f#1 } }";
  CHECK(lower_text(text, "x86-64-v3").kernels.size() == 1);
  expect_lowered_module(text);
}

TEST_CASE("results of a dying operand's size are written in place", "[lower]") {
  auto program = lower_text("module @m { func @main(%x: f32[4096]) -> (f32[4096]) { %a = tanh %x : f32[4096] "
                            "%b = exponential %a : f32[4096] %c = negate %b : f32[4096] return %c } }",
                            "x86-64-v3");
  // Input, output, and one buffer between.
  CHECK(program.arena_bytes == 3 * 4096 * 4);
}

TEST_CASE("constants take no more bytes than the machine's buffers are aligned to", "[lower]") {
  auto bytes = [](const char* cpu) {
    auto program = lower_text("module @m { func @main(%x: i32[3]) -> (i32[3]) { "
                              "%c = constant [1, 2, 3] : i32[3] %y = add %x, %c : i32[3] return %y } }",
                              cpu);
    REQUIRE(program.constants.size() == 1);
    return program.buffers[static_cast<size_t>(program.constants[0].buffer)].bytes;
  };
  CHECK(bytes("x86-64") == 64);
  CHECK(bytes("cortex-m4") == 16);
}
