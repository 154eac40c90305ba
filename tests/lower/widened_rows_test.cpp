// Products of bytes on Cortex-M4 whose rows are widened to pairs once for all columns: any signs, windows,
// strides, groups, and rows and columns that tiles do not divide, against the evaluator.
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

const std::string kCpu = "cortex-m4";

std::string given(const std::string& plan) {
  return plan.empty() ? "" : ", plan = \"" + plan + "\"";
}

struct Types {
  std::string lhs = "i8", rhs = "i8";
  std::map<std::string, Range> ranges() const {
    auto range = [](const std::string& type) { return type == "u8" ? Range{0, 255} : Range{-128, 127}; };
    return {{"x", range(lhs)}, {"w", range(rhs)}};
  }
  std::string plan(const std::string& tile) const {
    return "direct mac dot4 " + lhs + " " + rhs + " i32 tile " + tile + " rows outermost widened_rows";
  }
};

// `filters` filters of `taps` over 16 channels of 7 x 9 positions.
std::string convolution_text(const Types& types, const std::string& plan, int filters, int groups,
                             const std::string& taps, const std::string& window, const std::string& out) {
  const std::string block = "{0,1,2,3:1x4}", in = types.lhs + "[2,16,7,9]",
                    result = "i32[2," + std::to_string(filters) + "," + out + "]",
                    weights = types.rhs + "[" + std::to_string(filters) + "," + std::to_string(16 / groups) +
                              "," + taps + "]";
  return "module @m { func @main(%x: " + in + ", %w: " + weights + ") -> (" + result +
         ") { %b = copy %x : " + in + block + " %c = convolution %b, %w {window = " + window +
         ", groups = " + std::to_string(groups) + ", result = i32" + given(plan) + "} : " + result + block +
         " %r = copy %c : " + result + " return %r } }";
}

std::string dot_text(const Types& types, const std::string& plan, int rows, int steps, int columns) {
  const std::string m = std::to_string(rows), k = std::to_string(steps), n = std::to_string(columns);
  return "module @m { func @main(%x: " + types.lhs + "[" + m + "," + k + "], %w: " + types.rhs + "[" + k +
         "," + n + "]) -> (i32[" + m + "," + n + "]) { %r = dot %x, %w {lhs_batch = [], rhs_batch = [], " +
         "lhs_contract = [1], rhs_contract = [0], result = i32" + given(plan) + "} : i32[" + m + "," + n +
         "] return %r } }";
}

// Pairs are multiplied, and words of bytes nowhere.
void expect_pairs(const Types& types, const std::string& text) {
  INFO(text);
  int64_t pairs = 0, words = 0;
  for (const auto& kernel : lower_text(text, kCpu).kernels) {
    pairs += count_ops(kernel->body, firn::kernel::OpKind::DotS16);
    for (auto kind :
         {firn::kernel::OpKind::DotS8S8, firn::kernel::OpKind::DotU8S8, firn::kernel::OpKind::DotU8U8})
      words += count_ops(kernel->body, kind);
  }
  CHECK(pairs > 0);
  CHECK(words == 0);
  for (Placement placement : {Placement::AtEnd, Placement::AtStart})
    expect_lowered_module(text,
                          {.tolerance = 0, .ranges = types.ranges(), .cpus = {kCpu}, .placement = placement});
}

} // namespace

TEST_CASE("rows of convolutions of bytes are widened once", "[lower]") {
  for (const Types& types : {Types{}, {"u8", "i8"}, {"i8", "u8"}, {"u8", "u8"}})
    for (const char* tile : {"2x2", "4x1", "1x4"}) {
      expect_pairs(types, convolution_text(types, types.plan(tile), 20, 1, "1,1", "1x1", "7,9"));
      expect_pairs(types, convolution_text(types, types.plan(tile), 21, 1, "3,3", "3x3", "5,7"));
    }
  Types types;
  expect_pairs(types, convolution_text(types, types.plan("3x2"), 8, 1, "1,1", "1x1 stride 2x2", "4,5"));
  expect_pairs(types,
               convolution_text(types, types.plan("2x2"), 12, 1, "3,2", "3x2 stride 2x1 dilate 1x2", "3,7"));
}

TEST_CASE("rows of dots of bytes are widened once", "[lower]") {
  for (const Types& types : {Types{}, {"u8", "i8"}, {"u8", "u8"}})
    for (int rows : {1, 2, 5}) expect_pairs(types, dot_text(types, types.plan("2x2"), rows, 24, 19));
}

TEST_CASE("rows are widened where their pairs are a small part of memory, and columns are many", "[lower]") {
  auto widens = [](const std::string& text) {
    firn::kernel::Program program = lower_text(text, kCpu);
    return std::any_of(program.kernels.begin(), program.kernels.end(), [](const auto& kernel) {
      return count_ops(kernel->body, firn::kernel::OpKind::DotS16) > 0;
    });
  };
  CHECK(widens(convolution_text({}, "", 64, 1, "1,1", "1x1", "7,9")));
  CHECK_FALSE(widens(convolution_text({}, "", 2, 1, "1,1", "1x1", "7,9")));
  CHECK_FALSE(widens(dot_text({}, "", 1, 256, 64)));
  CHECK_FALSE(widens(convolution_text({}, "", 64, 2, "1,1", "1x1", "7,9")));
}

TEST_CASE("plans that widen rows say what is missing", "[lower]") {
  Types types;
  std::string steps = lowering_error(dot_text(types, types.plan("2x2"), 4, 23, 16), kCpu);
  CHECK(steps.find("rows of bytes are widened where products take pairs of them") != std::string::npos);
  std::string order = types.plan("2x2");
  order.replace(order.find("rows outermost"), 14, "columns outermost");
  CHECK(lowering_error(dot_text(types, order, 4, 24, 16), kCpu).find("by the tile, outermost") !=
        std::string::npos);
  Types unlike{"u8", "i8"};
  CHECK(lowering_error(dot_text(unlike, unlike.plan("2x2"), 4, 24, 16), "x86-64-v3")
            .find("rows of bytes are widened") != std::string::npos);
}
