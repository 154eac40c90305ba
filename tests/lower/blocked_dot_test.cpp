// Products with integers in blocks that each have a scale: on every CPU, of any extents, against the
// evaluator.
#include "tests/lower/typed_cases.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

const std::vector<std::string> kCpus = {"native",     "x86-64",      "x86-64-v3", "x86-64-v3 in x86-64-v4",
                                        "cortex-a53", "neoverse-n1", "cortex-m4"};

struct BlockedCase {
  std::string integers, scales;
  int64_t rows, blocks, block, columns;
  bool has_epilogue = false, constant_scales = true, byte_rows = false;
  std::string plan = {};
  bool rows_vary = false; // up to `rows`, from 0 on

  std::string rows_text(const std::vector<int64_t>& rest) const {
    return "[" + (rows_vary ? "n" : std::to_string(rows)) + "," + dims_text(rest).substr(1);
  }

  std::string text() const {
    std::string x = (byte_rows ? "i8" : "f32") + rows_text({blocks * block}),
                y = "f32" + rows_text({columns});
    std::string q = integers + dims_text({columns, blocks, block}), s = scales + dims_text({columns, blocks}),
                w = dims_text({columns, blocks, block});
    std::string numbers;
    for (int64_t i = 0; i < columns * blocks * block; ++i)
      numbers += (i ? ", " : "") + std::to_string(i * 7 % 16 - (byte_rows ? 0 : 8));
    std::string row_scales = "f32" + rows_text({blocks}), row_starts = "i32" + rows_text({blocks}),
                rows_wide = rows_text({blocks, block}), others = byte_rows ? ", %rs, %rt" : "",
                wide_x = "f32" + rows_text({blocks * block});
    std::string widen = "%rw = convert %a {to = f32} : " + wide_x + "\n%rr = reshape %rw : f32" + rows_wide +
                        "\n%rb = broadcast_in_dim %n {dims = [0, 1]} : f32" + rows_wide +
                        "\n%rm = multiply %rr, %rb : f32" + rows_wide + "\n%xx = reshape %rm : " + wide_x +
                        "\n";
    std::string planned = plan.empty() ? "" : ", plan = \"" + plan + "\"";
    std::string dot = "composite %x, %q, %s" + others + " {name = blocked_dot" + planned +
                      "} region(%a: " + x + ", %b: " + q + ", %c: " + s +
                      (byte_rows ? ", %n: " + row_scales + ", %o: " + row_starts : "") + ") {\n" +
                      (byte_rows ? widen : "") +
                      R"(
        %d0 = convert %b {to = f32} : f32)" +
                      w + "\n" + as_summed(w) + R"(
        %e = convert %c {to = f32} : f32)" +
                      dims_text({columns, blocks}) + R"(
        %f = broadcast_in_dim %e {dims = [0, 1]} : f32)" +
                      w + R"(
        %g = multiply %d, %f : f32)" +
                      w + R"(
        %h = reshape %g : f32)" +
                      dims_text({columns, blocks * block}) + R"(
        %i = dot )" + (byte_rows ? "%xx" : "%a") +
                      R"(, %h {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]} : )" +
                      y +
                      R"(
        return %i
      } : )" + y + "\n";
    if (has_epilogue)
      dot = "fusion %p, %q, %s, %t" + others + " {kind = contraction} region(%x: " + x + ", %q: " + q +
            ", %s: " + s + ", %t: " + y + (byte_rows ? ", %rs: " + row_scales + ", %rt: " + row_starts : "") +
            ") {\n%j = " + dot + "%k = add %j, %t : " + y + "\nreturn %k } : " + y + "\n";
    std::string main = has_epilogue ? "%p: " + x + ", %t: " + y : "%x: " + x;
    if (byte_rows) main += ", %rs: " + row_scales;
    if (!constant_scales) main += ", %s: " + s;
    std::string parts;
    for (int64_t i = 0; i < columns * blocks; ++i)
      parts += (i ? ", " : "") + std::to_string(static_cast<double>(i % 11 - 5) / 4);
    if (constant_scales) parts = "%s = constant [" + parts + "] : " + s + "\n";
    // Integers that are stored from 0 on add an offset to sums of blocks, which is taken away.
    std::string starts =
        "%sx = convert " + std::string(has_epilogue ? "%p" : "%x") + " {to = f32} : " + wide_x +
        "\n%sw = reshape %sx : f32" + rows_wide + "\n%sz = constant [0] : f32[]\n%ss = reduce %sw, " +
        "%sz {dims = [2]} region (%l: f32[], %m: f32[]) { %a = add %l, %m : f32[] return %a } : " +
        row_scales + "\n%sd = constant [" + (integers == "u4" ? "-8" : "-128") +
        "] : f32[]\n%se = broadcast_in_dim %sd {dims = []} : " + row_scales +
        "\n%sf = multiply %ss, %se : " + row_scales + "\n%rt = convert %sf {to = i32} : " + row_starts + "\n";
    if (!byte_rows) starts.clear();
    return "module @m { " + (rows_vary ? "symbol n in [0, " + std::to_string(rows) + "] " : "") +
           "func @main(" + main + ") -> (" + y + ") {\n" + starts + "%q = constant [" + numbers + "] : " + q +
           "\n" + (constant_scales ? parts : "") + "%r = " + dot + "return %r } }";
  }

  // Makes %d, the values that the stored integers %d0 stand for.
  std::string as_summed(const std::string& w) const {
    if (!byte_rows) return "%d = copy %d0 : f32" + w;
    std::string moved = "%dz = constant [" + std::string(integers == "u4" ? "8" : "128") +
                        "] : f32[]\n%dy = broadcast_in_dim %dz {dims = []} : f32" + w;
    if (integers == "u8") return moved + "\n%d = subtract %d0, %dy : f32" + w;
    std::string words = dims_text({columns, blocks, block / 8, 4, 2}),
                steps = dims_text({columns, blocks, block / 8, 2, 4});
    return moved + "\n%d1 = subtract %d0, %dy : f32" + w + "\n%d2 = reshape %d1 : f32" + words +
           "\n%d3 = transpose %d2 {permutation = [0, 1, 2, 4, 3]} : f32" + steps +
           "\n%d = reshape %d3 : f32" + w;
  }
};

void expect_blocked(const BlockedCase& c, std::vector<std::string> cpus = kCpus) {
  LoweredOptions options;
  options.cpus = std::move(cpus);
  options.tolerance = c.byte_rows ? 1e-5 : 2e-6;
  options.ranges = {{c.has_epilogue ? "p" : "x", range_of(c.byte_rows ? "i8" : "f32")}};
  expect_lowered_module(c.text(), options);
}

} // namespace

TEST_CASE("blocked dots on every CPU", "[lower][blocked]") {
  for (const char* integers : {"i4", "i8"})
    for (const char* scales : {"f32", "bf16", "f16"}) expect_blocked({integers, scales, 2, 3, 32, 37, true});
}

TEST_CASE("blocked dots of any extents", "[lower][blocked]") {
  for (const char* integers : {"i4", "i8"})
    for (int64_t rows : {1, 3, 5})
      for (int64_t blocks : {1, 4})
        for (int64_t columns : {1, 16, 33})
          expect_blocked({integers, "bf16", rows, blocks, 16, columns}, kNativeCpus);
  // Blocks that are no whole words are computed without register tiles.
  expect_blocked({"i8", "f32", 1, 3, 5, 19}, kNativeCpus);
  expect_blocked({"i8", "f32", 1, 2, 32, 19, true, /*constant_scales=*/false}, kNativeCpus);
  expect_blocked({"i4", "f32", 1, 2, 32, 19, false, /*constant_scales=*/false}, kNativeCpus);
}

// Columns become floats once, group by group; the last group may have a part of a vector.
TEST_CASE("blocked dots of more rows than a tile has", "[lower][blocked]") {
  for (const char* integers : {"i4", "i8"}) {
    expect_blocked({integers, "f32", 19, 3, 16, 37, true});
    for (int64_t rows : {9, 16, 41})
      for (int64_t blocks : {1, 4})
        for (int64_t columns : {1, 16, 33, 200})
          expect_blocked({integers, "bf16", rows, blocks, 16, columns}, kNativeCpus);
  }
  for (const char* plan :
       {"direct mac fma f32 i4 f32 tile 2x2 columns outermost widened",
        "direct mac fma f32 i4 f32 tile 3x1 columns outermost split_m 2 widened",
        "direct mac fma f32 i4 f32 tile 8x2 panel 4 columns outermost widened",
        "direct mac fma f32 i4 f32 tile 4x2 columns outermost row_block 8 widened",
        "direct mac fma f32 i4 f32 tile 2x3 columns outermost split_k 3 row_block 4 widened"})
    expect_blocked({"i4", "f32", 19, 3, 32, 70, true, true, false, plan}, kNativeCpus);
  // Otherwise columns become floats again for every tile.
  expect_blocked({"i8", "f32", 19, 3, 16, 37, false, true, false,
                  "direct mac fma f32 i8 f32 tile 2x2 columns outermost"},
                 kNativeCpus);
}

TEST_CASE("dots of floats and bytes of more rows than a tile has", "[lower][blocked]") {
  for (int64_t columns : {1, 16, 70}) {
    std::string numbers;
    for (int64_t i = 0; i < columns * 24; ++i)
      numbers += (i ? ", " : "") + std::to_string(i * 37 % 256 - 128);
    std::string n = std::to_string(columns);
    for (const char* batch : {"", "2,"})
      expect_lowered_module("module @m { func @main(%x: f32[" + std::string(batch) + "19,24]) -> (f32[" +
                                batch + "19," + n + "]) { %q = constant [" + numbers + "] : i8[24," + n +
                                "] %r = dot %x, %q {lhs_batch = [], rhs_batch = [], " + "lhs_contract = [" +
                                (*batch ? "2" : "1") + "], rhs_contract = [0], result = f32} : f32[" + batch +
                                "19," + n + "] return %r } }",
                            LoweredOptions{});
  }
}

TEST_CASE("rows of blocked dots vary", "[lower][blocked][extents]") {
  for (const char* integers : {"i4", "i8"})
    for (int64_t columns : {33, 200}) {
      BlockedCase c{integers, "f32", 19, 3, 32, columns, true};
      c.rows_vary = true;
      LoweredOptions options;
      options.tolerance = 2e-6;
      options.ranges = {{"p", range_of("f32")}};
      for (int64_t n : {0, 1, 2, 5, 8, 18, 19}) options.extents.push_back({{"n", n}});
      for (Placement placement : {Placement::AtEnd, Placement::AtStart}) {
        options.placement = placement;
        options.cpus = kNativeCpus;
        expect_lowered_module(c.text(), options);
      }
    }
}

TEST_CASE("blocked dots of rows of bytes", "[lower][blocked]") {
  for (const char* integers : {"u4", "u8"}) {
    for (const char* scales : {"f32", "bf16"})
      expect_blocked({integers, scales, 2, 3, 32, 37, true, true, true});
    for (int64_t rows : {1, 3, 5, 19})
      for (int64_t blocks : {1, 4})
        for (int64_t columns : {1, 16, 33, 200})
          expect_blocked({integers, "f32", rows, blocks, 16, columns, false, true, true}, kNativeCpus);
    expect_blocked({integers, "f32", 1, 2, 256, 40, false, true, true}, kNativeCpus);
    expect_blocked({integers, "f32", 1, 2, 32, 19, true, /*constant_scales=*/false, true}, kNativeCpus);
  }
  for (const char* integers : {"u4", "u8"})
    expect_blocked({integers, "f32", 2, 3, 32, 300, false, true, true,
                    "direct mac dot4 i8 u8 i32 tile 2x1 columns outermost column_streams 4"},
                   kNativeCpus);
  // Blocks that are no whole products are computed without register tiles.
  expect_blocked({"u8", "f32", 1, 3, 6, 19, false, true, true}, kNativeCpus);
}

TEST_CASE("rows of bytes of blocked dots vary", "[lower][blocked][extents]") {
  for (const char* integers : {"u4", "u8"})
    for (int64_t columns : {33, 200})
      for (bool has_epilogue : {false, true}) {
        BlockedCase c{integers, "f32", 19, 3, 32, columns, has_epilogue, true, true};
        c.rows_vary = true;
        LoweredOptions options;
        options.tolerance = 1e-5;
        options.ranges = {{has_epilogue ? "p" : "x", range_of("i8")}};
        for (int64_t n : {0, 1, 2, 5, 8, 18, 19}) options.extents.push_back({{"n", n}});
        for (Placement placement : {Placement::AtEnd, Placement::AtStart}) {
          options.placement = placement;
          options.cpus = kNativeCpus;
          expect_lowered_module(c.text(), options);
        }
      }
}

TEST_CASE("words of integers are read as they are", "[lower][blocked]") {
  firn::kernel::Program program =
      lower_text(BlockedCase{"i4", "bf16", 1, 4, 32, 48, true}.text(), "x86-64-v3");
  int64_t bytes = 0;
  for (const firn::kernel::Constant& constant : program.constants)
    bytes += program.buffers[static_cast<size_t>(constant.buffer)].bytes;
  REQUIRE(bytes == 48 * 4 * (16 + 2));
}
