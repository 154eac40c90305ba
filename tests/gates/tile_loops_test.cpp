// The innermost loops of tile matrices: as many products as the plan has tiles of sums, each operand loaded
// once, and little beside them.
#include "tests/codegen/model_object.h"
#include "tests/gates/gate_kernels.h"

#include <catch2/catch.hpp>

#include <algorithm>

namespace firn::test {
namespace {

struct TileLoop {
  int products = 0, loads = 0, others = 0;
};

bool names(const std::string& line, const char* instruction) {
  return line.find(instruction) != std::string::npos;
}

// Loops with products; fails on spills in them.
std::vector<TileLoop> tile_loops(const std::string& text, const char* product) {
  std::vector<TileLoop> loops;
  for (const AssemblyLoop& loop :
       innermost_loops(assembly_of(text, target_of("x86_64-linux-gnu", "sapphirerapids")))) {
    TileLoop found;
    for (const std::string& line : loop.lines) {
      found.products += names(line, product);
      found.loads += names(line, "tileload");
    }
    if (found.products == 0) continue;
    INFO(loop.to_string());
    CHECK(loop.spills == 0);
    CHECK(loop.scalar_spills == 0);
    CHECK(loop.stack_reads == 0);
    found.others = static_cast<int>(loop.lines.size()) - found.products - found.loads;
    loops.push_back(found);
  }
  return loops;
}

std::string dot_text(const char* lhs, const char* rhs, const char* sum, const char* plan) {
  std::string result = std::string(sum) + "[96,64]";
  return std::string("module @m { func @main(%x: ") + lhs + "[96,384], %w: " + rhs + "[384,64]) -> (" +
         result +
         ") { %y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], "
         "result = " +
         sum + ", plan = \"" + plan + "\"} : " + result + " return %y } }";
}

} // namespace

TEST_CASE("loops of tile matrices multiply, load and do little else", "[gates][tiles]") {
  struct Case {
    const char *lhs, *rhs, *sum, *plan, *product;
    int products, loads;
  };
  for (const Case& c :
       {Case{"u8", "i8", "i32", "direct", "tdpbusd", 4, 4},
        Case{"i8", "u8", "i32", "direct", "tdpbsud", 4, 4},
        Case{"i8", "i8", "i32", "direct", "tdpbssd", 4, 4},
        Case{"u8", "u8", "i32", "direct", "tdpbuud", 4, 4},
        Case{"bf16", "bf16", "f32", "direct mac tile_matrix bf16 bf16 f32 tile 32x2 columns outermost",
             "tdpbf16ps", 4, 4},
        Case{"u8", "i8", "i32", "direct mac tile_matrix u8 i8 i32 tile 16x3 rows outermost", "tdpbusd", 3, 4},
        Case{"u8", "i8", "i32", "direct mac tile_matrix u8 i8 i32 tile 16x1 rows outermost", "tdpbusd", 1,
             2}}) {
    INFO(c.product << " " << c.plan);
    std::vector<TileLoop> loops = tile_loops(dot_text(c.lhs, c.rhs, c.sum, c.plan), c.product);
    REQUIRE_FALSE(loops.empty());
    auto max = std::max_element(loops.begin(), loops.end(),
                                [](const TileLoop& a, const TileLoop& b) { return a.products < b.products; });
    CHECK(max->products == c.products);
    CHECK(max->loads == c.loads);
    CHECK(max->others <= 3 + c.loads); // two places, the count, and an address for each load
  }
}

TEST_CASE("attention multiplies tiles by tiles for its scores and its values", "[gates][tiles]") {
  std::vector<TileLoop> loops = tile_loops(
      attention_text(2, 96, 128, ", plan = \"attention mac tile_matrix bf16 bf16 f32\""), "tdpbf16ps");
  REQUIRE(loops.size() == 2); // one makes scores, over depths, and one makes results, over keys
  for (const TileLoop& loop : loops) {
    CHECK(loop.products == 4);
    CHECK(loop.loads == 4);
    CHECK(loop.others <= 3 + loop.loads);
  }
}

TEST_CASE("convolutions of blocked bytes read a copy of the image in whole rows of tiles", "[gates][tiles]") {
  std::string image = "u8[1,64,28,28]{0,1,2,3:1x16}", result = "i32[1,64,28,28]{0,1,2,3:1x16}";
  std::string text =
      "module @m { func @main(%x: u8[1,64,28,28], %w: i8[64,64,3,3]) -> (i32[1,64,28,28]) { "
      "%i = copy %x : " +
      image + " %c = convolution %i, %w {window = 3x3 pad 1_1x1_1, groups = 1, result = i32} : " + result +
      " %r = copy %c : i32[1,64,28,28] return %r } }";
  std::vector<TileLoop> loops = tile_loops(text, "tdpbusd");
  REQUIRE_FALSE(loops.empty());
  for (const TileLoop& loop : loops) CHECK(loop.loads <= loop.products + 1);
}

TEST_CASE("sums of tile matrices are quantised by conversions that round", "[gates][tiles]") {
  auto splat = [](const std::string& name, const std::string& number) {
    return "%" + name + "s = constant [" + number + "] : f32[] %" + name + " = broadcast_in_dim %" + name +
           "s {dims = []} : f32[96,64] ";
  };
  std::string text =
      "module @m { func @main(%x: u8[96,384], %w: i8[384,64]) -> (u8[96,64]) { %r = fusion %x, %w "
      "{kind = contraction, plan = \"direct mac tile_matrix u8 i8 i32\"} region (%p: u8[96,384], "
      "%q: i8[384,64]) { %y = dot %p, %q {lhs_batch = [], rhs_batch = [], lhs_contract = [1], "
      "rhs_contract = [0], result = i32} : i32[96,64] %f = convert %y {to = f32} : f32[96,64] " +
      splat("s", "0.01") +
      "%m = multiply %f, %s : f32[96,64] %u = narrow %m {high = 255, low = 0, to = u8, zero = 7} : u8[96,64] "
      "return %u } : u8[96,64] return %r } }";
  int conversions = 0;
  for (const AssemblyLoop& loop :
       innermost_loops(assembly_of(text, target_of("x86_64-linux-gnu", "sapphirerapids"))))
    for (const std::string& line : loop.lines) {
      conversions += names(line, "vcvtps2dq");
      CHECK_FALSE(names(line, "vrndscale"));
      CHECK_FALSE(names(line, "vcvttps2dq"));
    }
  CHECK(conversions > 0);
}

} // namespace firn::test
