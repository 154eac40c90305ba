// Attention by tile matrices, on CPUs without them by interpreting their instructions.
#include "tests/codegen/tile_interpreter.h"
#include "tests/lower/attention_text.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn::test;

namespace {

const std::string kTiles = "x86-64-v4 +amx-tile,+amx-int8,+amx-bf16",
                  kProduct = "attention product tile_matrix bf16 bf16 f32";

// With the eight bits of factors in bf16, in weights of scores as large as some here.
LoweredOptions tile_options() {
  return {.tolerance = 4e-2, .cpus = {kTiles}};
}

void expect_tiles_of(const Text& text, const LoweredOptions& options) {
  auto cpus = runnable_cpus();
  if (std::find(cpus.begin(), cpus.end(), "x86-64-v4") == cpus.end()) return;
  interpret_tiles();
  take_tile_counts();
  expect_lowered(text.parameters, text.body, text.type, options);
  if (tiles_are_interpreted()) CHECK(take_tile_counts().products > 0);
}

void expect_tiles(const Sizes& z, const Others& others, const std::string& mask_code, const std::string& plan,
                  const LoweredOptions& options) {
  expect_tiles_of(attention_text(z, others, mask_code, "", ", plan = \"" + plan + "\""), options);
}

std::string scaled(const Sizes& z, double scale, const std::string& result = "%m") {
  std::string type = "f32" + dims({z.batch, z.heads, z.rows, z.keys});
  return "%c = constant [" + std::to_string(scale) +
         "] : f32[]\n%cc = broadcast_in_dim %c {dims = []} : " + type + "\n" + result +
         " = multiply %s, %cc : " + type + "\n";
}

std::string module_text(const Sizes& z, const std::string& attributes) {
  Text text = attention_text(z, {}, scaled(z, 0.5), "", attributes);
  return "module @m { func @main(" + text.parameters + ") -> (" + text.type + ") { " + text.body +
         " return %r } }";
}

bool takes_tiles(const Sizes& z, const std::string& attributes, const std::string& cpu) {
  auto program = lower_text(module_text(z, attributes), cpu);
  return firn::kernel::print_program(program).find("tile_dot_bf16") != std::string::npos;
}

} // namespace

TEST_CASE("tile matrices compute attention of many sizes", "[lower][attention][tiles]") {
  for (const Sizes& z :
       {Sizes{1, 2, 1, 1, 4, 4}, Sizes{1, 3, 5, 7, 8, 8}, Sizes{2, 2, 16, 16, 16, 16},
        Sizes{1, 1, 33, 40, 20, 12}, Sizes{1, 2, 29, 65, 32, 48}, Sizes{2, 1, 14, 31, 17, 33},
        Sizes{1, 1, 2, 129, 64, 64}, Sizes{1, 2, 47, 50, 3, 2}, Sizes{1, 1, 67, 33, 40, 70}})
    for (Placement placement : {Placement::AtEnd, Placement::AtStart}) {
      INFO(z.rows << " x " << z.keys << " x " << z.depth << " x " << z.value_depth);
      LoweredOptions options = tile_options();
      options.placement = placement;
      expect_tiles(z, {}, scaled(z, 0.5), kProduct, options);
    }
}

TEST_CASE("tile matrices follow plans of attention written by hand", "[lower][attention][tiles]") {
  Sizes z{1, 2, 37, 150, 24, 40};
  for (const char* rest : {" tile 32x2 steps 1 block 160 packs_keys packs_values fused_exponents",
                           " tile 16x3 steps 1 block 32 packs_keys packs_values fused_exponents",
                           " tile 7x1 steps 1 block 64 accumulators 1 packs_keys packs_values",
                           " tile 31x1 steps 1 block 96 packs_keys packs_values fused_exponents"}) {
    INFO(rest);
    LoweredOptions options = tile_options();
    expect_tiles(z, {}, scaled(z, 2.0), kProduct + rest, options);
    options.threads = 2;
    expect_tiles(z, {}, scaled(z, 2.0), kProduct + rest, options);
  }
}

TEST_CASE("tile matrices keep the masks of attention", "[lower][attention][tiles]") {
  for (const Sizes& z : {Sizes{2, 3, 9, 21, 8, 8}, Sizes{1, 2, 30, 200, 16, 16}})
    for (const char* rest : {"", " tile 9x1 steps 1 block 32 packs_keys packs_values fused_exponents"}) {
      std::string type = "f32" + dims({z.batch, z.heads, z.rows, z.keys}),
                  bools = "bool" + dims({z.batch, z.heads, z.rows, z.keys});
      LoweredOptions options = tile_options();
      options.ranges = {{"mask", {-9, 0}}};
      std::string added = "%mask: f32" + dims({z.batch, z.keys});
      expect_tiles(z, {", " + added, ", " + added, ", %mask"},
                   scaled(z, 0.25, "%c1") + "%mm = broadcast_in_dim %mask {dims = [0, 3]} : " + type +
                       "\n%m = add %c1, %mm : " + type + "\n",
                   kProduct + rest, options);
      std::string chosen = "%mask: bool" + dims({z.rows, z.keys});
      expect_tiles(z, {", " + chosen, ", " + chosen, ", %mask"},
                   "%low = constant [-3e38] : f32[]\n%ll = broadcast_in_dim %low {dims = []} : " + type +
                       "\n%mm = broadcast_in_dim %mask {dims = [2, 3]} : " + bools +
                       "\n%m = select %mm, %s, %ll : " + type + "\n",
                   kProduct + rest, tile_options());
      std::string positions = "i32" + dims({z.batch, z.heads, z.rows, z.keys});
      expect_tiles(z, {},
                   "%t = tanh %s : " + type + "\n%i = iota {dim = 2} : " + positions +
                       "\n%j = iota {dim = 3} : " + positions +
                       "\n%before = compare %i, %j {direction = ge} : " + bools +
                       "\n%low = constant [-inf] : f32[]\n%ll = broadcast_in_dim %low {dims = []} : " + type +
                       "\n%m = select %before, %t, %ll : " + type + "\n",
                   kProduct + rest, tile_options());
    }
}

TEST_CASE("tile matrices compute attention of shared key heads", "[lower][attention][tiles]") {
  // q, k and v lie in [seq, 6 heads, depth]: four query heads, one key head and one value head.
  const std::string plan = "{kind = attention, plan = \"" + kProduct + "\"}";
  expect_tiles_of(
      {"%x: f32[35,6,8]",
       "%r = fusion %x " + plan +
           " region (%x1: f32[35,6,8]) {\n"
           "%q = slice %x1 {starts = [0, 0, 0], limits = [35, 4, 8], strides = [1, 1, 1]} : f32[35,4,8]\n"
           "%k = slice %x1 {starts = [0, 4, 0], limits = [35, 5, 8], strides = [1, 1, 1]} : f32[35,1,8]\n"
           "%v = slice %x1 {starts = [0, 5, 0], limits = [35, 6, 8], strides = [1, 1, 1]} : f32[35,1,8]\n"
           "%qt = transpose %q {permutation = [1, 0, 2]} : f32[4,35,8]\n"
           "%qs = reshape %qt : f32[1,4,35,8]\n"
           "%s = dot %qs, %k {lhs_batch = [0], rhs_batch = [1], lhs_contract = [3], rhs_contract = [2]} "
           ": f32[1,4,35,35]\n" +
           softmax("%s", "%w", {1, 4, 35, 35}) +
           "%y = dot %w, %v {lhs_batch = [0], rhs_batch = [1], lhs_contract = [3], rhs_contract = [0]} : "
           "f32[1,4,35,8]\nreturn %y } : f32[1,4,35,8]",
       "f32[1,4,35,8]"},
      tile_options());
}

TEST_CASE("attention takes tile matrices where its factors may be rounded and rows pay for packing",
          "[lower][attention][tiles]") {
  Sizes many{1, 3, 197, 197, 64, 64}, one{1, 3, 1, 197, 64, 64};
  CHECK(takes_tiles(many, ", factors = bf16", "sapphirerapids"));
  CHECK_FALSE(takes_tiles(one, ", factors = bf16", "sapphirerapids"));
  CHECK_FALSE(takes_tiles(many, "", "sapphirerapids"));
  CHECK_FALSE(takes_tiles(many, ", factors = bf16", "x86-64-v4"));
}
