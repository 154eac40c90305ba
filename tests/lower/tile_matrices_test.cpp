// Dots and convolutions by tile matrices, on CPUs without them by interpreting their instructions.
#include "tests/codegen/tile_interpreter.h"
#include "tests/lower/typed_cases.h"

#include "compiler/graph/hlo_text.h"
#include "compiler/plan/cost_model.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn;
using namespace firn::test;

namespace {

const std::string kTiles = "x86-64-v4 +amx-tile,+amx-int8,+amx-bf16";

bool has_wide_vectors() {
  auto cpus = runnable_cpus();
  return std::find(cpus.begin(), cpus.end(), "x86-64-v4") != cpus.end();
}

std::string tile_plan(const Types& types, const std::string& rest = "") {
  return "direct mac tile_matrix " + types.lhs + " " + types.rhs + " " + types.result + rest;
}

void expect_tiles(const std::string& text, LoweredOptions options) {
  if (!has_wide_vectors()) return;
  interpret_tiles();
  options.cpus = {kTiles};
  take_tile_counts();
  expect_lowered_module(text, options);
  if (tiles_are_interpreted()) CHECK(take_tile_counts().products > 0);
}

void expect_tiles(const ConvolutionCase& c, Placement placement = Placement::AtEnd) {
  LoweredOptions options = options_for(c.types, {});
  options.placement = placement;
  expect_tiles(c.text("x86-64-v4"), options);
}

void expect_tiles(const DotCase& c, Placement placement = Placement::AtEnd) {
  LoweredOptions options = options_for(c.types, {});
  options.placement = placement;
  expect_tiles(c.text(), options);
}

} // namespace

TEST_CASE("tile matrices compute dots of all types they multiply", "[lower][tiles]") {
  for (const Types& types : kMatrixTypes)
    for (bool constant : {true, false}) {
      DotCase c{types, 21, 48, 37, constant, tile_plan(types)};
      expect_tiles(c);
      c.rhs_transposed = true;
      expect_tiles(c);
    }
}

TEST_CASE("tile matrices compute dots of any rows, columns and steps", "[lower][tiles]") {
  for (const Types& types : {kUnlikeBytes, kBf16}) {
    int64_t group = types.lhs == "bf16" ? 2 : 4;
    for (int64_t m : {1, 7, 16, 17, 33, 49})
      for (int64_t n : {1, 16, 33, 64})
        expect_tiles(DotCase{types, m, 24 * group, n, true, tile_plan(types)});
    for (int64_t groups : {1, 3, 16, 17, 32, 40})
      expect_tiles(DotCase{types, 18, groups * group, 20, true, tile_plan(types)}, Placement::AtStart);
  }
}

TEST_CASE("tile matrices follow plans written by hand", "[lower][tiles][plan]") {
  for (const Types& types : {kUnlikeBytes, kBf16})
    for (const char* rest : {" accumulators tile_registers tile 32x2 columns outermost",
                             " tile 16x1 rows outermost",
                             " tile 16x3 columns outermost",
                             " tile 48x1 rows outermost",
                             " tile 26x2 columns outermost",
                             " tile 3x1 columns outermost",
                             " tile 16x1 panel 2 columns outermost",
                             " tile 32x2 columns outermost split_k 3",
                             " tile 16x2 columns outermost row_block 32",
                             " tile 16x2 columns outermost accumulator_tiles 2 k_blocks 2",
                             " tile 16x2 rows outermost accumulator_tiles 2",
                             " tile 32x1 columns outermost accumulator_tiles 3",
                             " tile 16x3 columns outermost k_blocks 2",
                             " tile 16x1 columns outermost accumulator_tiles 2 k_blocks 2 row_block 32",
                             " tile 16x1 columns outermost split_k 2 row_block 16",
                             " tile 16x2 columns outermost split_m 2",
                             " tile 32x2 columns outermost swap_operands",
                             " tile 16x3 columns outermost interleaved_epilogue",
                             " tile 3x1 columns outermost interleaved_epilogue",
                             " tile 16x2 rows outermost interleaved_epilogue",
                             " tile 13x2 columns outermost row_block 26 interleaved_epilogue",
                             " tile 16x2 columns outermost split_m 2 interleaved_epilogue",
                             " tile 3x1 columns outermost split_m 3 interleaved_epilogue",
                             " tile 16x1 columns outermost split_k 2 interleaved_epilogue",
                             " tile 16x1 panel 2 columns outermost interleaved_epilogue"}) {
      INFO(rest);
      for (bool constant : {true, false}) {
        DotCase c{types, 53, 96, 70, constant, tile_plan(types, rest)};
        c.lhs_transposed = std::string(rest).find("swap_operands") != std::string::npos;
        c.rhs_transposed = c.lhs_transposed;
        expect_tiles(c);
      }
    }
}

TEST_CASE("tile matrices compute batches, and rows that lie apart", "[lower][tiles]") {
  for (const Types& types : {kUnlikeBytesSwapped, kBf16}) {
    std::string result = types.result + "[3,18,20]";
    expect_tiles("module @m { func @main(%x: " + types.lhs + "[18,3,32], %w: " + types.rhs +
                     "[3,32,20]) -> (" + result +
                     ") { %y = dot %x, %w {lhs_batch = [1], rhs_batch = [0], lhs_contract = [2], " +
                     "rhs_contract = [1], result = " + types.result + ", plan = \"" + tile_plan(types) +
                     "\"} : " + result + " return %y } }",
                 options_for(types, {}));
  }
}

TEST_CASE("tile matrices compute convolutions", "[lower][tiles]") {
  const std::string direct = " tile 16x1 columns outermost";
  for (const Types& types : {kUnlikeBytes, kSignedBytes, kBf16}) {
    std::string plan = tile_plan(types);
    using Case = ConvolutionCase;
    for (auto layout : {Case::Fixed, Case::Blocked, Case::ChannelsLast}) {
      INFO(layout);
      // Padding; channels that fill no block, and no group.
      expect_tiles(Case{types, 32, 33, 1, 3, "3x3 pad 1_1x1_1", 6, 9, layout, true, plan});
      expect_tiles(Case{types, 21, 16, 1, 3, "3x3 pad 1_1x1_1", 6, 9, layout, true, plan},
                   Placement::AtStart);
      expect_tiles(Case{types, 3, 8, 1, 3, "3x3 pad 1_1x1_1 stride 2x2", 3, 5, layout, true, plan});
      expect_tiles(Case{types, 16, 16, 1, 3, "3x3 dilate 2x3", 2, 3, layout, true, plan});
      expect_tiles(Case{types, 8, 12, 1, 3, "3x3 pad 3_0x0_2", 7, 9, layout, true, plan});
      expect_tiles(Case{types, 32, 16, 2, 3, "3x3 pad 1_1x1_1", 6, 9, layout, true, plan});
      expect_tiles(Case{types, 40, 20, 1, 1, "1x1", 6, 9, layout, true, plan});
      expect_tiles(Case{types, 40, 20, 1, 1, "1x1 stride 2x2", 3, 5, layout, false, plan});
      expect_tiles(Case{types, 12, 20, 1, 3, "3x3 pad 2_1x0_0", 7, 7, layout, false, plan});
    }
    // Blocks, and channels that lie last, are read where they lie.
    expect_tiles(Case{types, 40, 20, 1, 1, "1x1", 6, 9, Case::Blocked, true, plan + direct});
    expect_tiles(Case{types, 48, 20, 1, 3, "3x3 pad 1_1x0_0", 6, 7, Case::ChannelsLast, true, plan + direct});
    expect_tiles(Case{types, 32, 20, 1, 3, "3x3 pad 1_1x1_1", 6, 9, Case::Blocked, true,
                      plan + " tile 32x2 rows outermost packs_rows"});
    // The epilogue of a tile runs among the products of the next one.
    const std::string interleaved = " interleaved_epilogue";
    expect_tiles(Case{types, 32, 33, 1, 3, "3x3 pad 1_1x1_1", 6, 9, Case::Blocked, true,
                      plan + " tile 16x1 columns outermost packs_rows" + interleaved});
    expect_tiles(Case{types, 48, 20, 1, 3, "3x3", 4, 7, Case::ChannelsLast, true,
                      plan + " tile 6x1 columns outermost" + interleaved});
    expect_tiles(Case{types, 40, 70, 1, 1, "1x1", 6, 9, Case::Blocked, true,
                      plan + " tile 32x2 rows outermost packs_rows" + interleaved});
    // Blocks of lines of the window; rows that leave a batch of tiles half empty.
    expect_tiles(Case{types, 32, 20, 1, 3, "3x3 pad 1_1x1_1", 6, 9, Case::Blocked, true,
                      plan + " tile 16x1 columns outermost accumulator_tiles 3 k_blocks 3 packs_rows"});
  }
}

TEST_CASE("tile matrices read blocks of channels that are their rows", "[lower][tiles]") {
  using Case = ConvolutionCase;
  for (const Types& types : {kUnlikeBytes, kSignedBytes, kBf16}) {
    int row = types.lhs == "bf16" ? 32 : 64;
    std::string plan = tile_plan(types);
    auto expect = [&](Case c, Placement placement = Placement::AtEnd) {
      c.block = row;
      INFO(c.attributes << c.plan);
      expect_tiles(c, placement);
    };
    for (Placement placement : {Placement::AtEnd, Placement::AtStart}) {
      expect(Case{types, 2 * row, 70, 1, 1, "1x1", 6, 9, Case::Blocked, true, plan}, placement);
      expect(Case{types, row, 20, 1, 1, "1x1 stride 2x2", 3, 5, Case::Blocked, true, plan}, placement);
      expect(Case{types, row, 33, 1, 3, "3x3 pad 1_1x0_0", 6, 7, Case::Blocked, true,
                  plan + " tile 7x3 columns outermost"},
             placement);
      expect(Case{types, row, row, 1, 3, "3x3 pad 1_1x1_1", 6, 9, Case::Blocked, true, plan}, placement);
    }
    // Channels that fill no block, or no whole ones.
    expect(Case{types, row - 12, 20, 1, 1, "1x1", 6, 9, Case::Blocked, false,
                plan + " tile 16x1 rows outermost"});
    expect(Case{types, row + 16, 20, 1, 1, "1x1", 6, 9, Case::Blocked, true,
                plan + " tile 16x2 rows outermost"});
    for (const char* rest :
         {" tile 32x2 columns outermost accumulator_tiles 2 k_blocks 3",
          " tile 16x3 columns outermost interleaved_epilogue",
          " tile 32x2 rows outermost interleaved_epilogue", " tile 16x1 columns outermost split_m 2",
          " tile 32x2 rows outermost packs_rows"})
      expect(Case{types, 3 * row, 100, 1, 1, "1x1", 6, 9, Case::Blocked, true, plan + rest});
  }
}

TEST_CASE("tile matrices read copies of windows", "[lower][tiles]") {
  using Case = ConvolutionCase;
  for (const Types& types : {kUnlikeBytes, kSignedBytes, kBf16})
    for (const char* rest :
         {" tile 16x1 columns outermost packs_windows", " tile 32x2 rows outermost packs_windows",
          " tile 16x2 columns outermost accumulator_tiles 2 k_blocks 2 packs_windows",
          " tile 27x2 columns outermost packs_windows interleaved_epilogue"})
      for (auto layout : {Case::Fixed, Case::Blocked, Case::ChannelsLast}) {
        INFO(rest << ", " << layout);
        std::string plan = tile_plan(types, rest);
        auto expect = [&](int64_t channels, int64_t filters, const char* window, int64_t high, int64_t wide,
                          Placement placement = Placement::AtEnd) {
          expect_tiles(Case{types, channels, filters, 1, 3, window, high, wide, layout, true, plan},
                       placement);
        };
        expect(32, 33, "3x3 pad 1_1x1_1", 6, 9);
        expect(21, 16, "3x3 pad 1_1x1_1 stride 2x2", 3, 5, Placement::AtStart);
        expect(16, 35, "3x3 dilate 2x3", 2, 3);
        expect(8, 12, "3x3 pad 3_0x0_2 stride 1x2", 7, 5, Placement::AtStart);
        expect(40, 20, "3x3 pad 5_6x4_4 stride 3x1", 5, 15);
      }
}

TEST_CASE("threads share tile matrices", "[lower][tiles]") {
  for (const char* rest : {" tile 32x2 columns outermost split_m 2", " tile 16x2 rows outermost",
                           " tile 16x2 columns outermost row_block 32"}) {
    INFO(rest);
    DotCase c{kUnlikeBytes, 70, 64, 100, true, tile_plan(kUnlikeBytes, rest)};
    LoweredOptions options = options_for(c.types, {});
    options.threads = 3;
    expect_tiles(c.text(), options);
  }
}

TEST_CASE("sums of tile matrices pass through epilogues", "[lower][tiles]") {
  std::string types = "%x: u8[21,64], %s: f32[19], %b: i32[19], %e: f32[21,19]";
  LoweredOptions options = options_for(kUnlikeBytes, {});
  options.tolerance = 1e-6;
  options.ranges["s"] = {-1e-2, 1e-2};
  options.ranges["b"] = {-1e5, 1e5};
  expect_tiles(
      "module @m { func @main(" + types + ") -> (f32[21,19]) { %w = " + extreme_constant("i8", 64 * 19, 9) +
          " : i8[64,19] %r = fusion %x, %w, %s, %b, %e {kind = contraction, plan = \"" +
          tile_plan(kUnlikeBytes) +
          "\"} region (%p: u8[21,64], %q: i8[64,19], %t: f32[19], %d: i32[19], %g: f32[21,19]) { %y = "
          "dot %p, %q {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], "
          "result = i32} : i32[21,19] %c = broadcast_in_dim %d {dims = [1]} : i32[21,19] %a = add "
          "%y, %c : i32[21,19] %f = convert %a {to = f32} : f32[21,19] %u = broadcast_in_dim %t "
          "{dims = [1]} : f32[21,19] %m = multiply %f, %u : f32[21,19] %z = tanh %m : f32[21,19] "
          "%o = add %z, %g : f32[21,19] return %o } : f32[21,19] return %r } }",
      options);
}

TEST_CASE("the cost model takes tile matrices where rows are many", "[lower][tiles][plan]") {
  auto algorithm = [](const Types& types, int64_t m, int64_t k, int64_t n) {
    return lower_text(DotCase{types, m, k, n, false}.text(), "sapphirerapids").kernels.back()->algorithm;
  };
  auto has_tiles = [](const std::string& text) { return text.find("tile_matrix") != std::string::npos; };
  for (const Types& types : kMatrixTypes) {
    INFO(types.lhs << " " << types.rhs);
    CHECK(has_tiles(algorithm(types, 128, 768, 768)));
    CHECK(has_tiles(algorithm(types, 49, 96, 32)));
    CHECK_FALSE(has_tiles(algorithm(types, 1, 768, 768)));
    CHECK_FALSE(has_tiles(algorithm(types, 128, 769, 768))); // steps in no whole groups
  }
}

TEST_CASE("predicted cycles know the rate of tile matrices", "[lower][tiles][plan]") {
  auto cycles = [](const Types& types, int64_t m, const char* cpu) {
    auto module = parse_module("m.hlo", DotCase{types, m, 2048, 2048, false}.text());
    REQUIRE(module);
    auto target = find_target("x86_64-unknown-linux-gnu", cpu, "");
    REQUIRE(target);
    double sum = 0;
    for (const auto& instruction : (*module)->main().body().instructions())
      sum += plan::predicted_cycles(*instruction, *target, 0);
    return sum;
  };
  for (const Types& types : {kUnlikeBytes, kBf16}) {
    INFO(types.lhs);
    double tiles = cycles(types, 1024, "sapphirerapids"), vectors = cycles(types, 1024, "cascadelake");
    CHECK(tiles < vectors / 3);
    CHECK(tiles > vectors / 40);
    // With one row of tiles all columns come from the second cache level for few sums.
    CHECK(cycles(types, 4, "sapphirerapids") > tiles / 128);
  }
}

TEST_CASE("plans of tile matrices that cannot be followed are refused", "[lower][tiles][plan]") {
  auto error = [](const Types& types, int64_t k, const std::string& plan, bool transposed = false) {
    DotCase c{types, 40, k, 40, true, plan};
    c.lhs_transposed = transposed;
    return lowering_error(c.text(), "sapphirerapids");
  };
  auto has = [](const std::string& text, const char* part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(error(kUnlikeBytes, 64, tile_plan(kUnlikeBytes)).empty());
  CHECK(has(error(kUnlikeBytes, 66, tile_plan(kUnlikeBytes)), "whole groups of k"));
  CHECK(has(error(kUnlikeBytes, 64, tile_plan(kUnlikeBytes), true), "side by side"));
  CHECK(has(error({"i16", "i16", "i32"}, 64, "direct mac tile_matrix i16 i16 i32"), "are of bytes or bf16"));
  CHECK(has(error(kUnlikeBytes, 64, tile_plan(kUnlikeBytes, " tile 32x4 columns outermost")),
            "takes 14 registers"));
  CHECK(has(error(kUnlikeBytes, 64, tile_plan(kUnlikeBytes, " tile 16x1 splits 2 columns outermost")),
            "neither split nor interleaved"));
  CHECK(has(error(kUnlikeBytes, 64, tile_plan(kUnlikeBytes, " tile 16x1 columns outermost k_blocks 2")),
            "left without any"));
  CHECK(has(
      error(kUnlikeBytes, 64,
            tile_plan(kUnlikeBytes, " tile 16x1 columns outermost accumulator_tiles 2 interleaved_epilogue")),
      "one tile at a time"));
  CHECK(has(
      error(kUnlikeBytes, 64, "direct mac dot4 u8 i8 i32 tile 4x2 columns outermost interleaved_epilogue"),
      "only tile matrices"));
  CHECK(
      has(error(kUnlikeBytes, 64, "direct mac dot4 u8 i8 i32 tile 4x2 columns outermost accumulator_tiles 2"),
          "only tile matrices"));
  CHECK(has(error(kUnlikeBytes, 64, "direct mac dot4 u8 i8 i32 accumulators tile_registers"),
            "elsewhere than in registers"));
}

TEST_CASE("tile matrices multiply by columns of four bits", "[lower][tiles]") {
  for (const Types& types : {kUnlikeBytes, kSignedBytes})
    for (int64_t n : {16, 37, 64})
      for (const char* rest : {"", " tile 16x1 columns outermost four_bits widened",
                               " tile 32x2 columns outermost four_bits widened",
                               " tile 16x2 columns outermost k_blocks 2 four_bits widened",
                               " tile 16x2 columns outermost row_block 32 four_bits widened",
                               " tile 16x3 columns outermost four_bits widened interleaved_epilogue"}) {
        INFO(n << rest);
        DotCase c{types, 53, 192, n, true, tile_plan(types, rest), "i4"};
        expect_tiles(c);
        expect_tiles(c, Placement::AtStart);
      }
  for (const char* rest : {"", " packs_rows", " packs_windows"}) {
    ConvolutionCase c{kUnlikeBytes, 64, 37};
    c.numbers_of = "i4";
    c.layout = ConvolutionCase::Blocked;
    c.block = 64;
    c.plan = tile_plan(c.types, std::string(" tile 16x2 columns outermost four_bits widened") + rest);
    if (*rest == 0) c.attributes = "1x1", c.window = 1;
    INFO(rest);
    expect_tiles(c);
  }
}
