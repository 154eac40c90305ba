// Attention by tile matrices, on CPUs without them by interpreting their instructions.
#include "tests/codegen/model_object.h"
#include "tests/codegen/tile_interpreter.h"
#include "tests/lower/attention_text.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn::test;

namespace {

const std::string kTiles = "x86-64-v4 +amx-tile,+amx-int8,+amx-bf16",
                  kMatrices = "attention mac tile_matrix bf16 bf16 f32",
                  kPairs = "attention mac dot2 bf16 bf16 f32";

// The tolerance fits bf16 factors of eight bits, and scores as large as some here.
LoweredOptions bf16_options() {
  return {.tolerance = 4e-2};
}

void expect_tiles_of(const Text& text, LoweredOptions options) {
  auto cpus = runnable_cpus();
  if (std::find(cpus.begin(), cpus.end(), "x86-64-v4") == cpus.end()) return;
  interpret_tiles();
  take_tile_counts();
  options.cpus = {kTiles};
  expect_lowered(text.parameters, text.body, text.type, options);
  if (tiles_are_interpreted()) CHECK(take_tile_counts().products > 0);
}

// Runs on ARM in an emulator, and here if the host multiplies pairs.
void expect_pairs_of(const Text& text, LoweredOptions options) {
  options.cpus = {"neoverse-n2"};
  firn::Machine host = target_of("", "native"), zen = target_of("", "znver4");
  if (host.arch == zen.arch && !(zen.required_cpu_features & ~host.required_cpu_features))
    options.cpus.push_back("znver4");
  expect_lowered(text.parameters, text.body, text.type, options);
}

Text planned(const Sizes& z, const Others& others, const std::string& mask_code, const std::string& plan) {
  return attention_text(z, others, mask_code, "", ", plan = \"" + plan + "\"");
}

// Tests blocks of 32 keys, and those that the cost model takes.
void expect_both(const Sizes& z, const Others& others, const std::string& mask_code,
                 const LoweredOptions& options, bool in_blocks = false) {
  const std::string rest = " block 32 packs_keys packs_values fused_exponents",
                    matrices = in_blocks ? " tile 9x1 unroll 1" + rest : "",
                    pairs = in_blocks ? " tile 7x2 unroll 4" + rest : "";
  expect_tiles_of(planned(z, others, mask_code, kMatrices + matrices), options);
  expect_pairs_of(planned(z, others, mask_code, kPairs + pairs), options);
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

bool takes(const char* op, const Sizes& z, const std::string& attributes, const std::string& cpu) {
  auto program = lower_text(module_text(z, attributes), cpu);
  return firn::kernel::print_program(program).find(op) != std::string::npos;
}

} // namespace

TEST_CASE("products of bf16 compute attention of many sizes", "[lower][attention][tiles]") {
  for (const Sizes& z :
       {Sizes{1, 2, 1, 1, 4, 4}, Sizes{1, 3, 5, 7, 8, 8}, Sizes{2, 2, 16, 16, 16, 16},
        Sizes{1, 1, 33, 40, 20, 12}, Sizes{1, 2, 29, 65, 32, 48}, Sizes{2, 1, 14, 31, 17, 33},
        Sizes{1, 1, 2, 129, 64, 64}, Sizes{1, 2, 47, 50, 3, 2}, Sizes{1, 1, 67, 33, 40, 70}})
    for (Placement placement : {Placement::AtEnd, Placement::AtStart}) {
      INFO(z.rows << " x " << z.keys << " x " << z.depth << " x " << z.value_depth);
      LoweredOptions options = bf16_options();
      options.placement = placement;
      expect_both(z, {}, scaled(z, 0.5), options);
    }
}

TEST_CASE("products of bf16 follow plans of attention written by hand", "[lower][attention][tiles]") {
  Sizes z{1, 2, 37, 150, 24, 40};
  auto expect = [&](const auto& expect_of, const std::string& plan) {
    INFO(plan);
    LoweredOptions options = bf16_options();
    expect_of(planned(z, {}, scaled(z, 2.0), plan), options);
    options.threads = 2;
    expect_of(planned(z, {}, scaled(z, 2.0), plan), options);
  };
  for (const char* rest : {" tile 32x2 unroll 1 block 160 packs_keys packs_values fused_exponents",
                           " tile 16x3 unroll 1 block 32 packs_keys packs_values fused_exponents",
                           " tile 7x1 unroll 1 block 64 accumulators 1 packs_keys packs_values",
                           " tile 31x1 unroll 1 block 96 packs_keys packs_values fused_exponents"})
    expect(expect_tiles_of, kMatrices + rest);
  for (const char* rest : {" tile 1x1 unroll 2 block 160 packs_keys packs_values fused_exponents",
                           " tile 9x2 unroll 4 block 32 packs_keys packs_values fused_exponents",
                           " tile 30x1 unroll 2 block 64 accumulators 1 packs_keys packs_values",
                           " tile 5x5 unroll 8 block 96 packs_keys packs_values fused_exponents"})
    expect(expect_pairs_of, kPairs + rest);
}

TEST_CASE("products of bf16 keep the masks of attention", "[lower][attention][tiles]") {
  for (const Sizes& z : {Sizes{2, 3, 9, 21, 8, 8}, Sizes{1, 2, 30, 200, 16, 16}})
    for (bool in_blocks : {false, true}) {
      std::string type = "f32" + dims({z.batch, z.heads, z.rows, z.keys}),
                  bools = "bool" + dims({z.batch, z.heads, z.rows, z.keys});
      LoweredOptions options = bf16_options();
      options.ranges = {{"mask", {-9, 0}}};
      std::string added = "%mask: f32" + dims({z.batch, z.keys});
      expect_both(z, {", " + added, ", " + added, ", %mask"},
                  scaled(z, 0.25, "%c1") + "%mm = broadcast_in_dim %mask {dims = [0, 3]} : " + type +
                      "\n%m = add %c1, %mm : " + type + "\n",
                  options, in_blocks);
      std::string chosen = "%mask: bool" + dims({z.rows, z.keys});
      expect_both(z, {", " + chosen, ", " + chosen, ", %mask"},
                  "%low = constant [-3e38] : f32[]\n%ll = broadcast_in_dim %low {dims = []} : " + type +
                      "\n%mm = broadcast_in_dim %mask {dims = [2, 3]} : " + bools +
                      "\n%m = select %mm, %s, %ll : " + type + "\n",
                  bf16_options(), in_blocks);
      std::string positions = "i32" + dims({z.batch, z.heads, z.rows, z.keys});
      expect_both(z, {},
                  "%t = tanh %s : " + type + "\n%i = iota {dim = 2} : " + positions +
                      "\n%j = iota {dim = 3} : " + positions +
                      "\n%before = compare %i, %j {direction = ge} : " + bools +
                      "\n%low = constant [-inf] : f32[]\n%ll = broadcast_in_dim %low {dims = []} : " + type +
                      "\n%m = select %before, %t, %ll : " + type + "\n",
                  bf16_options(), in_blocks);
    }
}

TEST_CASE("products of bf16 compute attention of shared key heads", "[lower][attention][tiles]") {
  // q, k and v lie in [seq, 6 heads, depth]: four query heads, one key head and one value head.
  auto text = [](const std::string& plan) {
    return Text{
        "%x: f32[35,6,8]",
        "%r = fusion %x {kind = attention, plan = \"" + plan + "\"}" +
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
        "f32[1,4,35,8]"};
  };
  expect_tiles_of(text(kMatrices), bf16_options());
  expect_pairs_of(text(kPairs), bf16_options());
}

TEST_CASE("attention multiplies bf16 where its factors may be rounded and rows pay for packing",
          "[lower][attention][tiles]") {
  Sizes many{1, 3, 197, 197, 64, 64}, one{1, 3, 1, 197, 64, 64};
  const char* factors = ", factors = bf16";
  CHECK(takes("tile_dot_bf16", many, factors, "sapphirerapids"));
  CHECK_FALSE(takes("tile_dot_bf16", one, factors, "sapphirerapids"));
  CHECK_FALSE(takes("tile_dot_bf16", many, "", "sapphirerapids"));
  for (const char* cpu : {"znver4", "cooperlake", "neoverse-n2"}) {
    CHECK(takes(" dot_bf16", many, factors, cpu));
    CHECK_FALSE(takes(" dot_bf16", one, factors, cpu));
    CHECK_FALSE(takes(" dot_bf16", many, "", cpu));
  }
  CHECK_FALSE(takes("dot_bf16", many, factors, "x86-64-v4"));
  CHECK_FALSE(takes(" dot_bf16", many, factors, "sapphirerapids"));
}
