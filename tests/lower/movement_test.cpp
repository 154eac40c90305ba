// Data movement: views, copies between layouts, slices, padding, concatenation, gathers.
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {
const LoweredOptions kExact = {.tolerance = 0};
} // namespace

TEST_CASE("reshapes and contiguous slices are views", "[lower]") {
  auto program = lower_text("module @m { func @main(%x: f32[4,6]) -> (f32[12]) { %a = negate %x : f32[4,6] "
                            "%s = slice %a {starts = [2, 0], limits = [4, 6], strides = [1, 1]} : f32[2,6] "
                            "%t = reshape %s : f32[12] %r = negate %t : f32[12] return %r } }",
                            "x86-64-v3");
  CHECK(program.kernels.size() == 2);
  expect_lowered("%x: f32[4,6]",
                 "%a = negate %x : f32[4,6] %s = slice %a {starts = [2, 0], limits = [4, 6], strides = [1, "
                 "1]} : f32[2,6] "
                 "%t = reshape %s : f32[12] %r = negate %t : f32[12]",
                 "f32[12]", kExact);
}

TEST_CASE("results that are inputs, constants or duplicates are copied", "[lower]") {
  expect_lowered_module(
      "module @m { func @main(%x: f32[5]) -> (f32[5], f32[3], f32[5], f32[5]) { "
      "%c = constant [1.0, 2.0, 3.0] : f32[3] %n = negate %x : f32[5] return %x, %c, %n, %n } }",
      kExact);
  expect_lowered_module("module @m { func @main(%x: i64[5]) -> (i64[2]) { "
                        "%s = slice %x {starts = [1], limits = [3], strides = [1]} : i64[2] return %s } }",
                        kExact);
}

TEST_CASE("transposes", "[lower]") {
  expect_lowered("%x: f32[5,7]", "%r = transpose %x {permutation = [1, 0]} : f32[7,5]", "f32[7,5]", kExact);
  expect_lowered("%x: f32[33,65]", "%r = transpose %x {permutation = [1, 0]} : f32[65,33]", "f32[65,33]",
                 kExact);
  expect_lowered("%x: f32[2,3,17,9]", "%r = transpose %x {permutation = [0, 2, 3, 1]} : f32[2,17,9,3]",
                 "f32[2,17,9,3]", kExact);
  expect_lowered("%x: i8[2,3,17,9]", "%r = transpose %x {permutation = [3, 1, 0, 2]} : i8[9,3,2,17]",
                 "i8[9,3,2,17]", kExact);
}

TEST_CASE("transposes and changes of layout move squares of vectors", "[lower]") {
  struct Case {
    const char *parameters, *body, *type;
  };
  const Case kCases[] = {
      // Whole squares, ends that overlap, dims shorter than a vector, three dims, dims that join.
      {"%x: f32[64,48]", "%r = transpose %x {permutation = [1, 0]} : f32[48,64]", "f32[48,64]"},
      {"%x: i32[5,30]", "%r = transpose %x {permutation = [1, 0]} : i32[30,5]", "i32[30,5]"},
      {"%x: f32[3,20,21]", "%r = transpose %x {permutation = [2, 0, 1]} : f32[21,3,20]", "f32[21,3,20]"},
      {"%x: f32[2,160,19,23]", "%r = transpose %x {permutation = [0, 2, 3, 1]} : f32[2,19,23,160]",
       "f32[2,19,23,160]"},
      // Into blocks and out of them, with a last block of every kind: full, a few channels, one.
      {"%x: f32[1,32,9,5]",
       "%n = negate %x : f32[1,32,9,5] %c = copy %n : f32[1,32,9,5]{0,1,2,3:1x16} "
       "%m = negate %c : f32[1,32,9,5]{0,1,2,3:1x16} %r = copy %m : f32[1,32,9,5]",
       "f32[1,32,9,5]"},
      {"%x: f32[1,19,9,5]",
       "%n = negate %x : f32[1,19,9,5] %c = copy %n : f32[1,19,9,5]{0,1,2,3:1x16} "
       "%m = negate %c : f32[1,19,9,5]{0,1,2,3:1x16} %r = copy %m : f32[1,19,9,5]",
       "f32[1,19,9,5]"},
      {"%x: f32[2,33,9,5]",
       "%n = negate %x : f32[2,33,9,5] %c = copy %n : f32[2,33,9,5]{0,1,2,3:1x16} "
       "%m = negate %c : f32[2,33,9,5]{0,1,2,3:1x16} %r = copy %m : f32[2,33,9,5]",
       "f32[2,33,9,5]"},
      // Channels last: vectors of channels as they are.
      {"%x: f32[1,9,5,40]",
       "%t = transpose %x {permutation = [0, 3, 1, 2]} : f32[1,40,9,5]{0,1,2,3:1x16} "
       "%m = negate %t : f32[1,40,9,5]{0,1,2,3:1x16} "
       "%r = transpose %m {permutation = [0, 2, 3, 1]} : f32[1,9,5,40]",
       "f32[1,9,5,40]"},
  };
  for (const Case& c : kCases) expect_lowered(c.parameters, c.body, c.type, kExact);
  // No element is moved on its own where squares fit.
  auto program = lower_text("module @m { func @main(%x: f32[64,48]) -> (f32[48,64]) { "
                            "%r = transpose %x {permutation = [1, 0]} : f32[48,64] return %r } }",
                            "x86-64-v3");
  std::string text = firn::kernel::print_program(program);
  CHECK(text.find("shuffle") != std::string::npos);
  CHECK(text.find("insert") == std::string::npos);
}

TEST_CASE("elements that stand a few times in a row are shuffled out of vectors", "[lower]") {
  for (int times : {2, 3, 5, 8})
    for (int wide : {4, 5, 16, 37}) {
      std::string line = std::to_string(wide), type = "f32[3," + line + "," + std::to_string(times) + "]";
      expect_lowered("%x: f32[3," + line + "]", "%r = broadcast_in_dim %x {dims = [0, 1]} : " + type, type,
                     kExact);
    }
  expect_lowered("%x: i32[2,3,21]", "%r = broadcast_in_dim %x {dims = [0, 1, 3]} : i32[2,3,2,21,2]",
                 "i32[2,3,2,21,2]", kExact);
  expect_lowered("%x: f32[1,21]", "%r = broadcast_in_dim %x {dims = [0, 1]} : f32[3,21,2]", "f32[3,21,2]",
                 kExact);
}

TEST_CASE("transposes of slices read them where they lie", "[lower]") {
  struct Case {
    std::string whole, starts, limits, strides, slice, dims, result;
  };
  for (const Case& c : {Case{"f32[1,20,96]", "[0, 0, 32]", "[1, 20, 64]", "[1, 1, 1]", "f32[1,20,32]",
                             "f32[1,20,2,16]", "f32[1,2,20,16]"},
                        Case{"f32[2,21,90]", "[0, 1, 3]", "[2, 20, 73]", "[1, 1, 2]", "f32[2,19,35]",
                             "f32[2,19,5,7]", "f32[2,5,19,7]"},
                        Case{"i64[1,20,96]", "[0, 0, 32]", "[1, 20, 64]", "[1, 1, 1]", "i64[1,20,32]",
                             "i64[1,20,2,16]", "i64[1,2,20,16]"}}) { // no kernel moves vectors of these
    std::string fusion = "%r = fusion %x {kind = movement} region (%p: " + c.whole +
                         ") {\n%s = slice %p {starts = " + c.starts + ", limits = " + c.limits +
                         ", strides = " + c.strides + "} : " + c.slice + "\n%h = reshape %s : " + c.dims +
                         "\n%t = transpose %h {permutation = [0, 2, 1, 3]} : " + c.result +
                         " return %t\n} : " + c.result;
    INFO(fusion);
    expect_lowered("%x: " + c.whole, fusion, c.result, kExact);
    std::string text =
        "module @m { func @main(%x: " + c.whole + ") -> (" + c.result + ") { " + fusion + " return %r } }";
    CHECK(lower_text(text, "x86-64-v3").kernels.size() == 1);
  }
}

TEST_CASE("slices, reversals and strides", "[lower]") {
  expect_lowered("%x: f32[5,37]",
                 "%r = slice %x {starts = [1, 3], limits = [5, 36], strides = [2, 3]} : f32[2,11]",
                 "f32[2,11]", kExact);
  expect_lowered("%x: f32[5,37]", "%r = reverse %x {dims = [1]} : f32[5,37]", "f32[5,37]", kExact);
  expect_lowered("%x: f16[5,37]", "%r = reverse %x {dims = [0, 1]} : f16[5,37]", "f16[5,37]", kExact);
}

TEST_CASE("padding", "[lower]") {
  expect_lowered("%x: f32[3,5,7], %v: f32[]",
                 "%r = pad %x, %v {low = [0, 1, 2], high = [0, 2, 1], interior = [0, 0, 0]} : f32[3,8,10]",
                 "f32[3,8,10]", kExact);
  expect_lowered("%x: f32[5,37], %v: f32[]",
                 "%r = pad %x, %v {low = [-1, 9], high = [1, -4], interior = [0, 0]} : f32[5,42]",
                 "f32[5,42]", kExact);
  expect_lowered("%x: i32[3,4], %v: i32[]",
                 "%r = pad %x, %v {low = [1, 0], high = [0, 2], interior = [1, 2]} : i32[6,12]", "i32[6,12]",
                 kExact);
}

TEST_CASE("concatenation with and without copies", "[lower]") {
  expect_lowered("%x: f32[2,3,5], %y: f32[2,4,5]",
                 "%a = negate %x : f32[2,3,5] %b = negate %y : f32[2,4,5] %r = concatenate %a, %b, %a {dim = "
                 "1} : f32[2,10,5]",
                 "f32[2,10,5]", kExact);
  std::string text =
      "module @m { func @main(%x: f32[1,3,5], %y: f32[1,4,5]) -> (f32[1,7,5]) { %a = negate %x : f32[1,3,5] "
      "%b = negate %y : f32[1,4,5] %r = concatenate %a, %b {dim = 1} : f32[1,7,5] return %r } }";
  CHECK(lower_text(text, "x86-64-v3").kernels.size() == 2);
  expect_lowered_module(text, kExact);
  expect_lowered(
      "%x: f32[1,16,5,5], %y: f32[1,24,5,5]",
      "%a = copy %x : f32[1,16,5,5]{0,1,2,3:1x8} %b = copy %y : f32[1,24,5,5]{0,1,2,3:1x8} "
      "%c = concatenate %a, %b {dim = 1} : f32[1,40,5,5]{0,1,2,3:1x8} %r = copy %c : f32[1,40,5,5]",
      "f32[1,40,5,5]", kExact);
}

TEST_CASE("a part of a concatenation that lies in the result is copied from there", "[lower]") {
  expect_lowered("%x: f32[2,1,13], %y: f32[11,1,13]",
                 "%a = negate %y : f32[11,1,13] %r = concatenate %x, %a, %a {dim = 0} : f32[24,1,13]",
                 "f32[24,1,13]");
  expect_lowered(
      "%x: f32[5,7]",
      "%a = negate %x : f32[5,7] %s = slice %a {starts = [1, 0], limits = [4, 7], strides = [1, 1]} "
      ": f32[3,7] %r = concatenate %s, %a, %s {dim = 0} : f32[11,7]",
      "f32[11,7]");
}

TEST_CASE("concatenations of the same values share memory", "[lower]") {
  std::string part = "f32[1,3,5]";
  std::string text = "module @m { func @main(%x: " + part + ") -> (f32[1,9,5]) { %a = negate %x : " + part +
                     " %b = tanh %x : " + part +
                     " %c = concatenate %a, %b {dim = 1} : f32[1,6,5] %d = slice %c {starts = [0, 2, 0], "
                     "limits = [1, 5, 5], "
                     "strides = [1, 1, 1]} : " +
                     part + " %e = exponential %d : " + part +
                     " %r = concatenate %a, %b, %e {dim = 1} : f32[1,9,5] return %r } }";
  CHECK(lower_text(text, "x86-64-v3").kernels.size() == 3);
  expect_lowered_module(text, {.tolerance = 1e-6});
}

TEST_CASE("upsampling in blocks lies where it is concatenated", "[lower]") {
  std::string in = "f32[1,24,3,5]{0,1,2,3:1x8}", out = "f32[1,24,6,10]{0,1,2,3:1x8}",
              both = "f32[1,48,6,10]{0,1,2,3:1x8}";
  std::string text =
      "module @m { func @main(%x: f32[1,24,3,5], %y: f32[1,24,6,10]) -> (f32[1,48,6,10]) { %a = copy %x : " +
      in +
      " %b = broadcast_in_dim %a {dims = [0, 1, 2, 4]} : f32[1,24,3,2,5,2]{0,1,2,3,4,5:1x8} %c = reshape %b "
      ": " +
      out + " %d = copy %y : " + out + " %e = concatenate %c, %d {dim = 1} : " + both +
      " %r = copy %e : f32[1,48,6,10] return %r } }";
  CHECK(lower_text(text, "x86-64-v3").kernels.size() == 4);
  expect_lowered_module(text, kExact);
}

TEST_CASE("copies between plain and blocked layouts", "[lower]") {
  for (const char* dims : {"1,16,5,7", "1,40,7,7", "2,3,9,9", "1,64,8,8"}) {
    std::string type = std::string("f32[") + dims + "]";
    expect_lowered("%x: " + type,
                   "%a = copy %x : " + type + "{0,1,2,3:1x16} %b = negate %a : " + type +
                       "{0,1,2,3:1x16} %r = copy %b : " + type,
                   type, kExact);
    expect_lowered("%x: " + type,
                   "%a = copy %x : " + type + "{0,1,2,3:1x8} %b = copy %a : " + type +
                       "{0,2,3,1} %r = copy %b : " + type,
                   type, kExact);
  }
}

TEST_CASE("gathers", "[lower]") {
  LoweredOptions options = {.tolerance = 0, .ranges = {{"i", {-4, 3}}}};
  expect_lowered("%x: f32[4,37], %i: i64[5]", "%r = gather %x, %i {axis = 0} : f32[5,37]", "f32[5,37]",
                 options);
  expect_lowered("%x: f32[3,4,5], %i: i32[2,3]", "%r = gather %x, %i {axis = 1} : f32[3,2,3,5]",
                 "f32[3,2,3,5]", options);
  expect_lowered("%x: f32[3,4], %i: i64[]", "%r = gather %x, %i {axis = 1} : f32[3]", "f32[3]", options);
  expect_lowered("%x: f32[4,9], %i: i64[3,9]", "%r = gather_elements %x, %i {axis = 0} : f32[3,9]",
                 "f32[3,9]", options);
  expect_lowered("%x: f32[4,4,9], %i: i64[5,2]", "%r = gather_nd %x, %i {batch_dims = 0} : f32[5,9]",
                 "f32[5,9]", options);
  expect_lowered("%x: f32[9,11], %i: i64[], %j: i64[]",
                 "%r = dynamic_slice %x, %i, %j {sizes = [3, 8]} : f32[3,8]", "f32[3,8]",
                 {.tolerance = 0, .ranges = {{"i", {-3, 12}}, {"j", {0, 5}}}});
  // In blocks, as the interpolation of a resize reads them.
  LoweredOptions blocks;
  blocks.ranges = {{"i", {0, 2}}, {"j", {0, 2}}};
  blocks.cpus = {"x86-64-v3"};
  expect_lowered("%x: f32[1,11,2,3], %i: i64[9], %j: i64[9]",
                 "%xb = copy %x : f32[1,11,2,3]{0,1,2,3:1x8}\n"
                 "%f = fusion %xb, %i, %j {kind = elementwise} region(%p: f32[1,11,2,3]{0,1,2,3:1x8}, "
                 "%q: i64[9], %k: i64[9]) {\n"
                 "%a = gather %p, %q {axis = 3} : f32[1,11,2,9]{0,1,2,3:1x8}\n"
                 "%b = gather %p, %k {axis = 3} : f32[1,11,2,9]{0,1,2,3:1x8}\n"
                 "%s = subtract %a, %b : f32[1,11,2,9]{0,1,2,3:1x8}\n"
                 "return %s\n} : f32[1,11,2,9]{0,1,2,3:1x8}\n"
                 "%r = copy %f : f32[1,11,2,9]",
                 "f32[1,11,2,9]", blocks);
}

TEST_CASE("gathered elements lie side by side in vectors", "[lower]") {
  std::vector<std::string> cpus = runnable_cpus();
  cpus.push_back("cortex-a72");
  auto expect = [&](const std::string& x, const std::string& i, const std::string& op, const std::string& y,
                    Range range = {-7, 6}) {
    expect_lowered("%x: " + x + ", %i: " + i, "%r = " + op + " : " + y, y,
                   {.tolerance = 0, .ranges = {{"i", range}}, .cpus = cpus});
  };
  for (std::string type : {"f32", "f64", "i64", "i32", "i16", "u8", "f16", "bf16", "bool"})
    expect(type + "[3,7]", "i64[37]", "gather %x, %i {axis = 1}", type + "[3,37]");
  for (std::string type : {"i8", "i16", "i32"})
    expect("f32[3,7]", type + "[21]", "gather %x, %i {axis = 1}", "f32[3,21]");
  for (std::string type : {"u8", "u16", "u32", "u64"})
    expect("f32[3,7]", type + "[21]", "gather %x, %i {axis = 1}", "f32[3,21]", {0, 6});
  // Few elements, indices of two dims, columns of a matrix, and elements of the lanes' own columns.
  for (std::string n : {"1", "2", "5", "8"})
    expect("f32[2,7]", "i64[" + n + "]", "gather %x, %i {axis = 1}", "f32[2," + n + "]");
  expect("f32[3,7]", "i32[5,9]", "gather %x, %i {axis = 1}", "f32[3,5,9]");
  expect("f32[7,3]", "i32[19]", "gather %x, %i {axis = 0}", "f32[19,3]");
  expect("f32[7,1]", "i32[19]", "gather %x, %i {axis = 0}", "f32[19,1]");
  expect("f32[7,19]", "i64[5,19]", "gather_elements %x, %i {axis = 0}", "f32[5,19]");
  expect("f32[4,7]", "i64[4,19]", "gather_elements %x, %i {axis = 1}", "f32[4,19]");
  expect("f32[2,7,5]", "i32[2,9,5]", "gather_elements %x, %i {axis = 1}", "f32[2,9,5]");
  // Known places, all of which lie inside, and some that count from the end.
  for (std::string places : {"[6, 0, 1, 1, 2, 3, 5, 4, 0, 2, 6]", "[6, -7, 1, 1, 2, 3, 5, 4, 0, 2, -1]"})
    expect_lowered("%x: f32[3,7]",
                   "%i = constant " + places + " : i64[11] %r = gather %x, %i {axis = 1} : f32[3,11]",
                   "f32[3,11]", {.tolerance = 0, .cpus = cpus});
}

TEST_CASE("iota and bit casts", "[lower]") {
  expect_lowered("", "%r = iota {dim = 1} : f32[3,19]", "f32[3,19]", kExact);
  expect_lowered("", "%r = iota {dim = 0} : i64[19]", "i64[19]", kExact);
  expect_lowered("%x: f32[19]", "%r = bitcast_convert %x : i32[19]", "i32[19]", kExact);
}
