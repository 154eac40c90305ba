// Gradients past what rounds: as if it were the identity within its range, where that is asked for.
#include "tests/gradients/object_case.h"

#include <cmath>

namespace firn::test {
namespace {

using Values = std::vector<double>;

// Quantises to four bits by a scale of 0.5 and a zero point of 1, and back: x between -4.5 and 3.
const char* const kQuantized = R"(
  func @f(%x: f64[5]) -> (f64[5]) {
    %scale = constant [0.5, 0.5, 0.5, 0.5, 0.5] : f64[5]
    %point = constant [1, 1, 1, 1, 1] : f64[5]
    %low = constant [-8, -8, -8, -8, -8] : f64[5]
    %high = constant [7, 7, 7, 7, 7] : f64[5]
    %steps = divide %x, %scale : f64[5]
    %rounded = round_nearest_even %steps : f64[5]
    %moved = add %rounded, %point : f64[5]
    %within = clamp %low, %moved, %high : f64[5]
    %q = convert %within {to = i8} : i8[5]
    %turned = reverse %q {dims = [0]} : i8[5]
    %wide = convert %turned {to = i32} : i32[5]
    %zero = constant [1, 1, 1, 1, 1] : i32[5]
    %less = subtract %wide, %zero : i32[5]
    %back = convert %less {to = f64} : f64[5]
    %again = constant [0.5, 0.5, 0.5, 0.5, 0.5] : f64[5]
    %y = multiply %back, %again : f64[5]
    return %y
  })";
// On the last step of the range, beyond it on either side, on the first step, within.
const char* const kInputs = "3.1, 3.4, -5, -4.5, 0.7";
const char* const kSeed = "1, 2, 3, 4, 5";

Values gradient_of(const std::string& declared) {
  auto module = differentiated("module @m {" + std::string(kQuantized) +
                               "func @g = gradient @f wrt x keeping 0 " + declared + " }");
  auto results = run(*module, "g", {kInputs, kSeed});
  CHECK(elements(*results[1]) == Values{0.5, -4.5, -4.5, 3, 3});
  return elements(*results[0]);
}

TEST_CASE("quantised values pass gradients on within their range where that is asked for") {
  CHECK(gradient_of("seedable") == Values{0, 0, 0, 0, 0});
  CHECK(gradient_of("seedable straight_through") == Values{5, 0, 0, 2, 1});
}

TEST_CASE("no mark is left when gradients have been written, and forward integers are those of the model") {
  auto module = differentiated("module @m {" + std::string(kQuantized) +
                               "func @g = gradient @f wrt x keeping 0 straight_through }");
  CHECK(print_module(*module).find("straight_through") == std::string::npos);
  CHECK(elements(*run(*module, "f", {kInputs})[0]) == Values{0.5, -4.5, -4.5, 3, 3});
}

TEST_CASE("roundings can be marked one by one") {
  auto module = differentiated(R"(module @m {
    func @f(%x: f64[2]) -> (f64[2]) {
      %a = floor %x {straight_through = true} : f64[2]
      %b = floor %x : f64[2]
      %c = multiply %a, %b : f64[2]
      return %c
    }
    func @g = gradient @f wrt x })");
  CHECK(elements(*run(*module, "g", {"2.5, -1.5"})[0]) == Values{2, -2});
}

TEST_CASE("numbers that are truncated pass gradients, and what saturates does so within its range") {
  auto module = differentiated(R"(module @m {
    func @f(%x: f64[4]) -> (f64[4]) {
      %q = convert %x {saturate = true, to = u8} : u8[4]
      %y = convert %q {to = f64} : f64[4]
      return %y
    }
    func @g = gradient @f wrt x keeping 0 straight_through })");
  auto results = run(*module, "g", {"-3.5, 2.75, 255.5, 300"});
  CHECK(elements(*results[1]) == Values{0, 2, 255, 255});
  CHECK(elements(*results[0]) == Values{0, 1, 1, 0});
}

TEST_CASE("products of quantised values have gradients by either factor") {
  auto module = differentiated(R"(module @m {
    func @f(%x: f64[1,2], %w: f64[2,1]) -> (f64[1,1]) {
      %xr = round_nearest_even %x : f64[1,2]
      %wr = round_nearest_even %w : f64[2,1]
      %xq = convert %xr {to = i8} : i8[1,2]
      %wq = convert %wr {to = i8} : i8[2,1]
      %dot = dot %xq, %wq {lhs_batch = [], lhs_contract = [1], result = i32, rhs_batch = [], rhs_contract = [0]} : i32[1,1]
      %y = convert %dot {to = f64} : f64[1,1]
      return %y
    }
    func @g = gradient @f wrt x, w keeping 0 straight_through })");
  auto results = run(*module, "g", {"1.25, -2", "3, 0.75"});
  CHECK(elements(*results[0]) == Values{3, 1});
  CHECK(elements(*results[1]) == Values{1, -2});
  CHECK(elements(*results[2]) == Values{1});
}

// A value that is computed of one byte is looked up in a table, where nothing asks for its derivative.
TEST_CASE("objects pass gradients through functions of quantised values") {
  const std::string text = R"(module @m {
    func @f(%x: f32[3]) -> (f32[3]) {
      %low = constant [-128, -128, -128] : f32[3]
      %high = constant [127, 127, 127] : f32[3]
      %scale = constant [0.0625, 0.0625, 0.0625] : f32[3]
      %steps = divide %x, %scale : f32[3]
      %rounded = round_nearest_even %steps : f32[3]
      %within = clamp %low, %rounded, %high : f32[3]
      %q = convert %within {to = i8} : i8[3]
      %back = convert %q {to = f32} : f32[3]
      %d = multiply %back, %scale : f32[3]
      %s = logistic %d : f32[3]
      %more = divide %s, %scale : f32[3]
      %whole = round_nearest_even %more : f32[3]
      %inside = clamp %low, %whole, %high : f32[3]
      %p = convert %inside {to = i8} : i8[3]
      %again = convert %p {to = f32} : f32[3]
      %y = multiply %again, %scale : f32[3]
      return %y
    }
    func @g = gradient @f wrt x straight_through })";
  const std::vector<LiteralRef> inputs = literals_of(*differentiated(text)->find("g"), {"0.5, 0, -9"});
  std::vector<double> slope = elements(*run_object(text, "g", inputs)[0]);
  const double s = 1 / (1 + std::exp(-0.5));
  CHECK(std::fabs(slope[0] - s * (1 - s)) < 1e-6);
  CHECK(std::fabs(slope[1] - 0.25) < 1e-6);
  CHECK(slope[2] == 0);
}

TEST_CASE("long and branching chains of integers are followed in time that grows with their length") {
  std::string text = R"(module @m { func @f(%x: f32[2]) -> (f32[2]) {
    %r = round_nearest_even %x : f32[2]
    %w0 = add %r, %r : f32[2]
    %q0 = convert %w0 {to = i32} : i32[2]
)";
  constexpr int kSteps = 5000;
  for (int i = 0; i < kSteps; ++i) {
    const std::string old = std::to_string(i), next = std::to_string(i + 1);
    text += "%n" + next + " = negate %q" + old + " : i32[2] %q" + next + " = maximum %n" + next + ", %q" +
            old + " : i32[2]\n";
  }
  text += "%y = convert %q" + std::to_string(kSteps) +
          " {to = f32} : f32[2] return %y } func @g = gradient @f wrt x straight_through }";
  auto module = differentiated(text);
  CHECK(elements(*run(*module, "g", {"3.25, -2"})[0])[0] == 2);
}

TEST_CASE("the declaration is printed as it is written") {
  std::string text =
      "module @m {" + std::string(kQuantized) + "func @g = gradient @f wrt x seedable straight_through }";
  auto module = parse_module("m", text);
  REQUIRE(module);
  std::string printed = print_module(**module);
  CHECK(printed.find("gradient @f wrt 0 seedable straight_through\n") != std::string::npos);
  CHECK(print_module(**parse_module("m", printed)) == printed);
}

} // namespace
} // namespace firn::test
