// Kernels over bytes: depthwise convolutions and poolings in blocks of channels, tables of bytes.
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

// All numbers that bytes have.
std::map<std::string, Range> all_bytes(const std::string& dtype) {
  Range range = dtype == "u8" ? Range{0, 255} : Range{-128, 127};
  return {{"x", range}, {"w", {-128, 127}}};
}

struct Blocks {
  std::string plain, blocked;
};

// The plain type, and the type in blocks of so many vectors of channels.
Blocks blocks_of(const std::string& dtype, int channels, const std::string& spatial, const std::string& cpu,
                 int vectors = 1) {
  std::string plain = dtype + "[2," + std::to_string(channels) + "," + spatial + "]";
  return {plain,
          plain + "{0,1,2,3:1x" + std::to_string(vectors * target_of("", cpu).cpu.channel_block()) + "}"};
}

struct Depthwise {
  std::string dtype;
  int channels;
  std::string in, taps, window, out; // spatial dims
};

std::string depthwise_text(const Depthwise& d, const std::string& cpu, const std::string& plan = "") {
  Blocks x = blocks_of(d.dtype, d.channels, d.in, cpu), y = blocks_of("i32", d.channels, d.out, cpu);
  std::string c = std::to_string(d.channels), w = "i8[" + c + ",1," + d.taps + "]", bias = "i32[" + c + "]";
  return "module @m { func @main(%x: " + x.plain + ", %w: " + w + ", %v: " + bias + ") -> (" + y.plain +
         ") { %b = copy %x : " + x.blocked + " %f = fusion %b, %w, %v {kind = contraction" +
         (plan.empty() ? "" : ", plan = \"" + plan + "\"") + "} region (%p: " + x.blocked + ", %q: " + w +
         ", %u: " + bias + ") { %c = convolution %p, %q {window = " + d.window + ", groups = " + c +
         ", result = i32} : " + y.blocked + " %a = broadcast_in_dim %u {dims = [1]} : " + y.blocked +
         " %s = add %c, %a : " + y.blocked + " return %s } : " + y.blocked + " %r = copy %f : " + y.plain +
         " return %r } }";
}

void expect_depthwise(const Depthwise& d) {
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"}) {
    std::string text = depthwise_text(d, cpu);
    bool found = false;
    for (const auto& kernel : lower_text(text, cpu).kernels)
      found |= kernel->algorithm.find("depthwise") != std::string::npos;
    CHECK(found);
    expect_lowered_module(text, {.tolerance = 0, .ranges = all_bytes(d.dtype), .cpus = {cpu}});
  }
}

void expect_pooling(const std::string& dtype, const std::string& identity, const std::string& op,
                    const std::string& in, const std::string& window, const std::string& out) {
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"})
    for (int vectors : {1, 2, 4}) {
      Blocks x = blocks_of(dtype, 21, in, cpu, vectors), y = blocks_of(dtype, 21, out, cpu, vectors);
      std::string text = "module @m { func @main(%x: " + x.plain + ") -> (" + y.plain +
                         ") { %b = copy %x : " + x.blocked + " %i = constant [" + identity + "] : " + dtype +
                         "[] %p = reduce_window %b, %i {window = " + window + "} region (%l: " + dtype +
                         "[], %q: " + dtype + "[]) { %m = " + op + " %l, %q : " + dtype +
                         "[] return %m } : " + y.blocked + " %r = copy %p : " + y.plain + " return %r } }";
      bool found = false;
      for (const auto& kernel : lower_text(text, cpu).kernels) found |= kernel->name.find("pooling") == 0;
      CHECK(found);
      expect_lowered_module(text, {.tolerance = 0, .ranges = all_bytes(dtype), .cpus = {cpu}});
    }
}

// A table of 256 of `dtype`, here `7 * i` in bytes, and what is looked up in it.
std::string table_text(const std::string& dtype, const std::string& dims) {
  return "module @m { func @main(%x: u8[" + dims + "]) -> (" + dtype + "[" + dims +
         "]) { %i = iota {dim = 0} : i32[256] %s = constant [7] : i32[] %m = broadcast_in_dim %s {dims = []} "
         ": "
         "i32[256] %p = multiply %i, %m : i32[256] %t = convert %p {to = " +
         dtype + "} : " + dtype + "[256] %r = gather %t, %x {axis = 0} : " + dtype + "[" + dims +
         "] return %r } }";
}

} // namespace

TEST_CASE("depthwise convolutions of bytes", "[lower]") {
  expect_depthwise({"u8", 24, "9,9", "3,3", "3x3 pad 1_1x1_1", "9,9"});
  expect_depthwise({"i8", 16, "12,33", "3,3", "3x3 pad 0_1x1_1 stride 2x2", "6,17"});
  expect_depthwise({"u8", 5, "10,17", "5,5", "5x5 pad 2_2x2_2", "10,17"});
  expect_depthwise({"i8", 40, "3,2", "5,5", "5x5 pad 2_2x2_2", "3,2"});
  expect_depthwise({"u8", 33, "6,40", "1,3", "1x3 pad 0_0x2_0", "6,40"});
}

TEST_CASE("depthwise convolutions multiply four lines of bytes at a time", "[lower][plan][guard]") {
  const Depthwise cases[] = {{"u8", 20, "9,11", "3,3", "3x3 pad 1_1x1_1", "9,11"},
                             {"i8", 5, "10,13", "5,5", "5x5 pad 2_2x2_2 stride 2x2", "5,7"},
                             {"u8", 17, "11,8", "4,3", "4x3 pad 5_0x0_4 dilate 2x1", "10,10"},
                             {"u8", 33, "12,9", "9,2", "9x2 pad 4_8x1_0", "16,9"},
                             {"i8", 16, "7,3", "2,3", "2x3 pad 3_4x2_2 stride 3x1", "5,5"}};
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"})
    for (const Depthwise& d : cases)
      for (const char* tiling :
           {"tile 1 along 1", "tile 4 along 1 unrolled", "tile 5 along 0", "tile 2 along 0 unrolled",
            "tile 3 along 1 unrolled taps_in_registers bias_in_accumulators",
            "tile 4 along 0 rolled_epilogue"}) {
        INFO(cpu << ", " << d.window << ": " << tiling);
        std::string text = depthwise_text(d, cpu, "depthwise mac dot4 " + d.dtype + " i8 i32 " + tiling);
        for (Placement placement : {Placement::AtEnd, Placement::AtStart})
          expect_lowered_module(
              text, {.tolerance = 0, .ranges = all_bytes(d.dtype), .cpus = {cpu}, .placement = placement});
      }
  Depthwise bytes = cases[0];
  auto product = firn::kernel::OpKind::DotU8S8;
  auto products = [&](const char* cpu) {
    int64_t count = 0;
    for (const auto& kernel : lower_text(depthwise_text(bytes, cpu), cpu).kernels)
      count += count_ops(kernel->body, product);
    return count;
  };
  CHECK(products("icelake-server") > 0);
  CHECK(products("x86-64-v3") == 0); // three instructions for what is one elsewhere
  bytes.dtype = "i8", product = firn::kernel::OpKind::DotS8S8;
  CHECK(products("icelake-server") == 0); // unsigned bytes alone are its own
}

TEST_CASE("poolings of bytes", "[lower]") {
  expect_pooling("u8", "0", "maximum", "9,11", "1x1x3x3 pad 0_0x0_0x1_1x1_1 stride 1x1x2x2", "5,6");
  expect_pooling("i8", "-128", "maximum", "8,8", "1x1x2x2 stride 1x1x2x2", "4,4");
  expect_pooling("i8", "127", "minimum", "7,5", "1x1x3x1 pad 0_0x0_0x1_1x0_0", "7,5");
}

TEST_CASE("weights of bytes that floats are multiplied by", "[lower]") {
  // Rows, columns, steps; the weights are the lhs or the rhs, constant or not.
  struct Shape {
    int m, n, k;
  };
  for (Shape s : {Shape{1, 64, 33}, {1, 200, 7}, {3, 17, 40}, {2, 1, 5}, {9, 48, 16}})
    for (const char* dtype : {"i8", "u8"}) {
      auto type = [](const std::string& of, int rows, int columns) {
        return of + "[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
      };
      std::string contract =
          "{lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1], result = f32}";
      auto expect = [&](const std::string& lhs, const std::string& rhs, const std::string& result) {
        expect_lowered_module("module @m { func @main(%a: " + lhs + ", %b: " + rhs + ") -> (" + result +
                                  ") { %r = dot %a, %b " + contract + " : " + result + " return %r } }",
                              {.tolerance = 1e-5, .cpus = {"x86-64", "x86-64-v3", "native"}});
      };
      expect(type("f32", s.m, s.k), type(dtype, s.n, s.k), type("f32", s.m, s.n));
      expect(type(dtype, s.n, s.k), type("f32", s.m, s.k), type("f32", s.n, s.m));
    }
}

TEST_CASE("tables of bytes", "[lower]") {
  for (const char* dims : {"1", "63", "64", "3,5,67", "4,200", "2,130", "1,1"})
    for (const char* dtype : {"u8", "i8", "f32", "i32"})
      expect_lowered_module(table_text(dtype, dims),
                            {.tolerance = 0,
                             .ranges = all_bytes("u8"),
                             .cpus = {"x86-64", "x86-64-v3", "x86-64-v4", "native"}});
}
