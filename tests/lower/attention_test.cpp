// The attention kernel against the evaluator: sizes around tiles and vectors, blocks of keys, operands read
// through movements, masks.
#include "tests/codegen/model_object.h"
#include "tests/lower/attention_text.h"
#include "tests/lower/epilogue_text.h"
#include "tests/lower/plan_and_lower.h"

#include <catch2/catch.hpp>

#include <functional>

using namespace firn::test;

namespace {

// `parameters` has %mask, `mask_code` is code from %s to %m, `values_code` what makes %values of %v.
void expect_attention(const Sizes& z, const std::string& parameters, const std::string& mask_code,
                      const LoweredOptions& options, const std::string& values_code = "") {
  Others others;
  if (!parameters.empty()) others = {", " + parameters, ", " + parameters, ", %mask"};
  Text text = attention_text(z, others, mask_code, values_code);
  expect_lowered(text.parameters, text.body, text.type, options);
}

std::string module_text(const Sizes& z, const std::string& mask_code) {
  Text text = attention_text(z, {}, mask_code, "");
  return "module @m { func @main(" + text.parameters + ") -> (" + text.type + ") { " + text.body +
         " return %r } }";
}

// Whether the kernel knows how many keys its tiles see.
bool leaves_out_keys(const Sizes& z, const std::string& mask_code) {
  auto program = lower_text(module_text(z, mask_code), "x86-64-v3");
  return firn::kernel::print_program(program).find("\"shown\"") != std::string::npos;
}

std::string scaled(const Sizes& z, double scale, const std::string& result = "%m") {
  std::string type = "f32" + dims({z.batch, z.heads, z.rows, z.keys});
  return "%c = constant [" + std::to_string(scale) +
         "] : f32[]\n%cc = broadcast_in_dim %c {dims = []} : " + type + "\n" + result +
         " = multiply %s, %cc : " + type + "\n";
}

} // namespace

TEST_CASE("attention of many sizes", "[lower][attention]") {
  for (const Sizes& z :
       {Sizes{1, 2, 1, 1, 4, 4}, Sizes{1, 3, 5, 7, 8, 8}, Sizes{2, 2, 16, 16, 16, 16},
        Sizes{1, 1, 33, 40, 20, 12}, Sizes{1, 2, 29, 65, 32, 48}, Sizes{2, 1, 14, 31, 17, 33},
        Sizes{1, 1, 2, 129, 64, 64}, Sizes{1, 2, 47, 50, 3, 1}}) {
    INFO(z.rows << " x " << z.keys << " x " << z.depth);
    expect_attention(z, "", scaled(z, 0.5), {.tolerance = 3e-6});
  }
}

TEST_CASE("attention over blocks of keys", "[lower][attention]") {
  Sizes z{1, 2, 20, 700, 16, 24};
  // Scores so large that a row's maximum often moves from block to block; their own rounding limits what is
  // exact.
  expect_attention(z, "", scaled(z, 4.0), {.tolerance = 2e-5});
  z = {1, 1, 9, 1500, 33, 20};
  expect_attention(z, "", scaled(z, 1.0), {.tolerance = 3e-6});
}

TEST_CASE("attention of few rows reads keys where they lie", "[lower][attention]") {
  for (const Sizes& z : {Sizes{1, 3, 1, 40, 64, 64}, Sizes{2, 2, 3, 17, 32, 20}, Sizes{1, 2, 2, 16, 16, 8},
                         Sizes{1, 1, 1, 9000, 16, 16}, Sizes{1, 2, 4, 33, 16, 16}}) {
    INFO(z.rows << " x " << z.keys << " x " << z.depth);
    expect_attention(z, "", scaled(z, 0.5), {.tolerance = 1e-5});
  }
  std::string text =
      "module @m { func @main(%q: f32[2,3,16], %k: f32[2,50,16], %v: f32[2,50,16]) -> (f32[2,3,16]) {"
      " %r = fusion %q, %k, %v {kind = attention} region (%a: f32[2,3,16], %b: f32[2,50,16], "
      "%c: f32[2,50,16]) { %s = dot %a, %b {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], "
      "rhs_contract = [2]} : f32[2,3,50]\n" +
      softmax("%s", "%w", {2, 3, 50}) +
      " %o = dot %w, %c {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]} "
      ": f32[2,3,16] return %o } : f32[2,3,16] return %r } }";
  CHECK(lower_text(text, "x86-64-v3").kernels.size() == 1);
}

TEST_CASE("attention whose values lie scattered", "[lower][attention]") {
  Sizes z{1, 8, 70, 600, 8, 8}; // 150 KiB from the first row of values to the last
  expect_attention(z, "", scaled(z, 0.5), {.tolerance = 3e-6, .cpus = {"x86-64"}});
}

TEST_CASE("attention with masks", "[lower][attention]") {
  for (const Sizes& z : {Sizes{2, 3, 9, 21, 8, 8}, Sizes{1, 2, 30, 600, 16, 16}}) {
    std::string type = "f32" + dims({z.batch, z.heads, z.rows, z.keys});
    // Added, one per batch entry and key.
    expect_attention(z, "%mask: f32" + dims({z.batch, z.keys}),
                     scaled(z, 0.25, "%c1") + "%mm = broadcast_in_dim %mask {dims = [0, 3]} : " + type +
                         "\n%m = add %c1, %mm : " + type + "\n",
                     {.tolerance = 3e-6, .ranges = {{"mask", {-9, 0}}}});
    // Selected, one per row and key; whole rows may be masked with a finite number.
    expect_attention(z, "%mask: bool" + dims({z.rows, z.keys}),
                     "%low = constant [-3e38] : f32[]\n%ll = broadcast_in_dim %low {dims = []} : " + type +
                         "\n%mm = broadcast_in_dim %mask {dims = [2, 3]} : bool" +
                         dims({z.batch, z.heads, z.rows, z.keys}) + "\n%m = select %mm, %s, %ll : " + type +
                         "\n",
                     {.tolerance = 3e-6});
    // Capped, and causal by positions.
    std::string positions = "i32" + dims({z.batch, z.heads, z.rows, z.keys});
    expect_attention(
        z, "",
        "%t = tanh %s : " + type + "\n%i = iota {dim = 2} : " + positions +
            "\n%j = iota {dim = 3} : " + positions + "\n%before = compare %i, %j {direction = ge} : bool" +
            dims({z.batch, z.heads, z.rows, z.keys}) +
            "\n%low = constant [-inf] : f32[]\n%ll = broadcast_in_dim %low {dims = []} : " + type +
            "\n%m = select %before, %t, %ll : " + type + "\n",
        {.tolerance = 3e-6});
  }
}

TEST_CASE("masks in all shapes that broadcast, by way of movements", "[lower][attention][guard]") {
  unsigned number = 0;
  std::vector<std::string> cpus = runnable_cpus();
  for (const Sizes& z : {Sizes{2, 3, 1, 7, 5, 3}, Sizes{1, 2, 5, 17, 8, 8}, Sizes{2, 2, 3, 33, 7, 24},
                         Sizes{1, 1, 17, 24, 5, 5}, Sizes{1, 3, 2, 1, 4, 1}, Sizes{2, 1, 9, 600, 3, 7}})
    for (int group = 0; group < 4; ++group, ++number) {
      std::mt19937 random(number);
      const std::string& cpu = cpus[number % cpus.size()];
      std::string type = "f32" + dims({z.batch, z.heads, z.rows, z.keys});
      Epilogue masks("mask", "f32", {z.batch, z.heads, z.rows, z.keys}, type);
      for (int kept = 4 * group; kept < 4 * group + 4; ++kept)
        masks.add(kept % 2 ? Movement::None : static_cast<Movement>(random() % kMovements), kept,
                  static_cast<int>(random() % 4), kept % 3 ? "f32" : "f16");
      Text text = attention_text(z, {masks.parameters(), masks.parameters("i"), masks.arguments()},
                                 "%c = negate %s : " + type + masks.code() + " %m = negate " + masks.sum() +
                                     " : " + type + "\n",
                                 "");
      INFO(number << " on " << cpu);
      expect_lowered(text.parameters, text.body, text.type,
                     {.tolerance = 1e-5,
                      .ranges = masks.ranges(),
                      .cpus = {cpu},
                      .placement = number % 5 ? Placement::AtEnd : Placement::AtStart});
    }
}

// A constant mask: row r sees the keys up to last(r), and has the score `low` for others.
std::string constant_mask(const Sizes& z, const std::string& low, const std::function<int(int)>& last,
                          bool selects_hidden = false) {
  std::string type = "f32" + dims({z.batch, z.heads, z.rows, z.keys}),
              flags = "bool" + dims({z.batch, z.heads, z.rows, z.keys}), text = "[";
  for (int r = 0; r < z.rows; ++r)
    for (int k = 0; k < z.keys; ++k) {
      bool shown = k <= last(r);
      text += (r + k ? ", " : "") + std::string(shown != selects_hidden ? "true" : "false");
    }
  return scaled(z, 0.5, "%c1") + "%low = constant [" + low +
         "] : f32[]\n%ll = broadcast_in_dim %low {dims = []} : " + type + "\n%cm = constant " + text +
         "] : bool" + dims({z.rows, z.keys}) + "\n%mm = broadcast_in_dim %cm {dims = [2, 3]} : " + flags +
         "\n%m = select %mm, " + (selects_hidden ? "%ll, %c1" : "%c1, %ll") + " : " + type + "\n";
}

TEST_CASE("attention with causal masks that are constants", "[lower][attention]") {
  for (const Sizes& z : {Sizes{1, 2, 33, 33, 8, 8}, Sizes{2, 1, 47, 70, 16, 20}, Sizes{1, 1, 40, 1300, 8, 8},
                         Sizes{1, 1, 64, 64, 64, 64}})
    for (const char* low : {"-inf", "-3e38"}) {
      INFO(z.rows << " x " << z.keys << ", " << low);
      int past = z.keys > 1000 ? 300 : z.keys - z.rows;
      auto last = [&](int r) { return r + past; };
      expect_attention(z, "", constant_mask(z, low, last), {.tolerance = 3e-6});
      expect_attention(z, "", constant_mask(z, low, last, true), {.tolerance = 3e-6});
    }
}

TEST_CASE("products with hidden keys are left out where a mask hides enough", "[lower][attention]") {
  Sizes z{1, 2, 64, 64, 8, 8};
  CHECK(leaves_out_keys(z, constant_mask(z, "-inf", [](int r) { return r; })));
  CHECK(leaves_out_keys(z, constant_mask(
                               z, "-inf", [](int r) { return r; }, true)));
  CHECK(leaves_out_keys(z, constant_mask(z, "-inf", [](int) { return 20; })));
  CHECK_FALSE(leaves_out_keys(z, constant_mask(z, "-inf", [](int) { return 60; })));
  CHECK_FALSE(leaves_out_keys(z, scaled(z, 0.5)));
}

TEST_CASE("the plan says whether products with hidden keys are left out", "[lower][attention][plan]") {
  Sizes z{1, 2, 33, 37, 8, 8};
  for (int shown : {20, 36})
    for (std::string plan :
         {"tile 5x1 unroll 4 block 16 packs_keys", "tile 3x2 unroll 2 block 32 packs_keys"})
      for (bool skips : {false, true}) {
        std::string text =
            module_text(z, constant_mask(z, "-inf", [&](int r) { return std::min(r, shown); }));
        std::string kind = "kind = attention", whole = "attention " + plan + (skips ? " skips_hidden" : "");
        INFO(whole);
        text.insert(text.find(kind) + kind.size(), ", plan = \"" + whole + "\"");
        auto program = lower_text(text, "x86-64-v3");
        CHECK((firn::kernel::print_program(program).find("\"shown\"") != std::string::npos) == skips);
        expect_lowered_module(text, {.tolerance = 3e-6, .cpus = {"x86-64", "x86-64-v3"}});
      }
}

TEST_CASE("hidden keys end between the rounds of products without vectors", "[lower][attention]") {
  // A scalar machine with fused multiply-adds: four keys per round.
  Sizes z{1, 2, 33, 33, 8, 8};
  firn::test::LoweringSetup options;
  options.target = target_of("riscv64-linux-gnu", "");
  REQUIRE(options.target.cpu.has_fma);
  REQUIRE(options.target.cpu.lanes(32) == 1);
  auto module =
      firn::parse_module("m.hlo", module_text(z, constant_mask(z, "-1e9", [](int r) { return r; })));
  REQUIRE(module);
  auto program = firn::test::plan_and_lower(**module, options);
  REQUIRE(program);
  std::string text = firn::kernel::print_program(*program);
  CHECK(text.find("= index (4*min(8, ") != std::string::npos);
}

TEST_CASE("constant masks that hide all keys of rows", "[lower][attention]") {
  // With a finite number in place of their scores hidden keys may still have weights, and then they count.
  Sizes z{1, 2, 40, 48, 8, 8};
  for (const char* low : {"-inf", "-3e38", "0", "3"})
    expect_attention(z, "", constant_mask(z, low, [](int r) { return r < 20 ? -1 : r - 12; }),
                     {.tolerance = 3e-6});
}

TEST_CASE("infinity and NaN in values that a constant mask hides", "[lower][attention]") {
  Sizes z{1, 1, 40, 48, 8, 8};
  std::string type = "f32" + dims({z.batch, z.keys, z.heads, z.value_depth}), far;
  for (const char* value : {"inf", "nan"}) {
    std::string text;
    for (int k = 0; k < z.keys; ++k)
      for (int d = 0; d < z.value_depth; ++d)
        text += (text.empty() ? "" : ", ") + std::string(k == 45 && d == 3 ? value : "0");
    expect_attention(z, "", constant_mask(z, "-inf", [](int r) { return r; }), {.tolerance = 3e-6},
                     "%far = constant [" + text + "] : " + type + " %values = add %v, %far : " + type + "\n");
  }
}

TEST_CASE("attention whose first block of keys is masked whole", "[lower][attention]") {
  Sizes z{1, 1, 3, 1200, 8, 8};
  std::string type = "f32" + dims({1, 1, 3, 1200}), positions = "i32" + dims({1, 1, 3, 1200});
  expect_attention(
      z, "",
      "%j = iota {dim = 3} : " + positions +
          "\n%n = constant [1100] : i32[]\n%nn = broadcast_in_dim %n {dims = []} : " + positions +
          "\n%late = compare %j, %nn {direction = ge} : bool" + dims({1, 1, 3, 1200}) +
          "\n%low = constant [-inf] : f32[]\n%ll = broadcast_in_dim %low {dims = []} : " + type +
          "\n%m = select %late, %s, %ll : " + type + "\n",
      {.tolerance = 3e-6});
}

TEST_CASE("attention of scores far from zero", "[lower][attention]") {
  // Scores are so large that their spacing is as wide as differences that matter: the dot adds nothing.
  for (const Sizes& z : {Sizes{1, 2, 20, 40, 8, 8}, Sizes{1, 1, 18, 1200, 8, 8}}) {
    std::string type = "f32" + dims({z.batch, z.heads, z.rows, z.keys});
    for (double reach : {20.0, 6e6}) {
      INFO(z.keys << " keys, reach " << reach);
      expect_attention(z, "%mask: f32" + dims({z.rows, z.keys}),
                       scaled(z, 0, "%none") + "%mm = broadcast_in_dim %mask {dims = [2, 3]} : " + type +
                           "\n%m = add %none, %mm : " + type + "\n",
                       {.tolerance = 3e-6, .ranges = {{"mask", {-reach, reach}}}});
    }
  }
}

TEST_CASE("attention whose blocks of keys are far apart", "[lower][attention]") {
  Sizes z{1, 1, 20, 1300, 8, 8};
  std::string type = "f32" + dims({1, 1, 20, 1300}), flags = "bool" + dims({1, 1, 20, 1300}),
              positions = "i32" + dims({1, 1, 20, 1300});
  for (const char* far : {"-5e6", "5e6", "-3e38", "3e38", "-inf", "inf"})
    for (const char* direction : {"lt", "ge"}) {
      INFO(far << " for keys " << direction << " 600");
      expect_attention(
          z, "",
          "%j = iota {dim = 3} : " + positions +
              "\n%n = constant [600] : i32[]\n%nn = broadcast_in_dim %n {dims = []} : " + positions +
              "\n%is = compare %j, %nn {direction = " + direction + "} : " + flags + "\n%far = constant [" +
              far + "] : f32[]\n%ff = broadcast_in_dim %far {dims = []} : " + type +
              "\n%m = select %is, %ff, %s : " + type + "\n",
          {.tolerance = 3e-6});
    }
}

TEST_CASE("attention of rows that are masked whole, or hold infinity or NaN", "[lower][attention]") {
  for (const Sizes& z : {Sizes{1, 2, 20, 40, 8, 8}, Sizes{1, 1, 18, 1200, 8, 8}}) {
    std::string type = "f32" + dims({z.batch, z.heads, z.rows, z.keys}),
                flags = "bool" + dims({z.batch, z.heads, z.rows, z.keys}),
                positions = "i32" + dims({z.batch, z.heads, z.rows, z.keys});
    auto where = [&](const std::string& name, int dim, const std::string& direction, int number) {
      std::string n = std::to_string(number);
      return "%i" + name + " = iota {dim = " + std::to_string(dim) + "} : " + positions + "\n%n" + name +
             " = constant [" + n + "] : i32[]\n%b" + name + " = broadcast_in_dim %n" + name +
             " {dims = []} : " + positions + "\n%" + name + " = compare %i" + name + ", %b" + name +
             " {direction = " + direction + "} : " + flags + "\n";
    };
    for (const char* odd : {"inf", "nan"})
      expect_attention(z, "",
                       where("first", 2, "lt", 3) + where("row", 2, "eq", 7) + where("key", 3, "eq", 30) +
                           "%place = and %row, %key : " + flags + "\n%low = constant [-inf] : f32[]\n" +
                           "%ll = broadcast_in_dim %low {dims = []} : " + type + "\n%odd = constant [" + odd +
                           "] : f32[]\n%oo = broadcast_in_dim %odd {dims = []} : " + type +
                           "\n%m1 = select %first, %ll, %s : " + type +
                           "\n%m = select %place, %oo, %m1 : " + type + "\n",
                       {.tolerance = 3e-6});
  }
}

TEST_CASE("attention on parts of one tensor, with shared key heads", "[lower][attention]") {
  // q, k and v lie in [seq, 6 heads, depth]: four query heads in two groups, one key head and one value head.
  std::string text =
      "%r = fusion %x {kind = attention} region (%x1: f32[19,6,8]) {\n"
      "%q = slice %x1 {starts = [0, 0, 0], limits = [19, 4, 8], strides = [1, 1, 1]} : f32[19,4,8]\n"
      "%k = slice %x1 {starts = [0, 4, 0], limits = [19, 5, 8], strides = [1, 1, 1]} : f32[19,1,8]\n"
      "%v = slice %x1 {starts = [0, 5, 0], limits = [19, 6, 8], strides = [1, 1, 1]} : f32[19,1,8]\n"
      "%qt = transpose %q {permutation = [1, 0, 2]} : f32[4,19,8]\n"
      "%qs = reshape %qt : f32[1,4,19,8]\n"
      "%s = dot %qs, %k {lhs_batch = [0], rhs_batch = [1], lhs_contract = [3], rhs_contract = [2]} : "
      "f32[1,4,19,19]\n" +
      softmax("%s", "%w", {1, 4, 19, 19}) +
      "%y = dot %w, %v {lhs_batch = [0], rhs_batch = [1], lhs_contract = [3], rhs_contract = [0]} : "
      "f32[1,4,19,8]\n"
      "return %y } : f32[1,4,19,8]";
  expect_lowered("%x: f32[19,6,8]", text, "f32[1,4,19,8]", {.tolerance = 3e-6});
}

TEST_CASE("attention whose values come transposed", "[lower][attention]") {
  std::string text = "%r = fusion %q, %k, %v {kind = attention} region (%q1: f32[2,11,8], %k1: f32[2,8,40], "
                     "%v1: f32[2,9,40]) {\n"
                     "%s = dot %q1, %k1 {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract "
                     "= [1]} : f32[2,11,40]\n" +
                     softmax("%s", "%w", {2, 11, 40}) +
                     "%y = dot %v1, %w {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = "
                     "[2]} : f32[2,9,11]\n"
                     "return %y } : f32[2,9,11]";
  expect_lowered("%q: f32[2,11,8], %k: f32[2,8,40], %v: f32[2,9,40]", text, "f32[2,9,11]",
                 {.tolerance = 3e-6});
}
