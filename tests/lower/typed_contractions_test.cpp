// Dots and convolutions of bytes, bf16 and other narrow types, whose products take several steps of the
// reduction: on every CPU with products of its own, against the evaluator.
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <random>

using namespace firn::test;

namespace {

// x86 with AVX512-VNNI and -BF16 or what this machine has, AVX2, SSE2; aarch64 with and without dot products;
// Cortex-M with and without the DSP extension.
const std::vector<std::string> kCpus = {"native",      "x86-64-v3",   "x86-64",    "cortex-a72",
                                        "neoverse-n1", "neoverse-n2", "cortex-m4", "cortex-m3"};
const std::vector<std::string> kNativeCpus = {"native", "x86-64-v3", "x86-64"};

bool is_float_type(const std::string& dtype) {
  return dtype == "bf16" || dtype == "f16" || dtype == "f32";
}

std::vector<std::string> cpus_for(const std::string& dtype, std::vector<std::string> cpus) {
  if (is_float_type(dtype)) std::erase(cpus, "cortex-m3");
  return cpus;
}

Range range_of(const std::string& dtype) {
  if (dtype == "u8") return {0, 255};
  if (dtype == "i8") return {-128, 127};
  if (dtype == "u16") return {0, 65535};
  if (dtype == "i16") return {-32768, 32767};
  if (dtype == "i32") return {-1e6, 1e6};
  return {-2, 2};
}

// Half of them at the ends of the type's range, where sums of products saturate first.
std::string extreme_constant(const std::string& dtype, int64_t count, unsigned seed) {
  if (is_float_type(dtype)) return random_constant(count, seed);
  std::mt19937 random(seed);
  Range range = range_of(dtype);
  std::string text = "constant [";
  for (int64_t i = 0; i < count; ++i) {
    auto low = static_cast<int64_t>(range.low), high = static_cast<int64_t>(range.high);
    int64_t value = random() % 2 ? (random() % 2 ? low : high)
                                 : std::uniform_int_distribution<int64_t>(low, high)(random);
    text += (i ? ", " : "") + std::to_string(value);
  }
  return text + "]";
}

struct Types {
  std::string lhs, rhs, result;
};

std::string dims_text(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

struct DotCase {
  Types types;
  int64_t m, k, n;
  bool constant = true;
  std::string plan = {};
  bool lhs_transposed = false, rhs_transposed = false;

  std::string text() const {
    std::string x = types.lhs + dims_text(lhs_transposed ? std::vector{k, m} : std::vector{m, k}),
                w = types.rhs + dims_text(rhs_transposed ? std::vector{n, k} : std::vector{k, n}),
                y = types.result + dims_text({m, n});
    return "module @m { func @main(%x: " + x + (constant ? "" : ", %w: " + w) + ") -> (" + y + ") { " +
           (constant ? "%w = " + extreme_constant(types.rhs, k * n, 3) + " : " + w + " " : "") +
           "%y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [" +
           (lhs_transposed ? "0" : "1") + "], rhs_contract = [" + (rhs_transposed ? "1" : "0") +
           "], result = " + types.result + (plan.empty() ? "" : ", plan = \"" + plan + "\"") + "} : " + y +
           " return %y } }";
  }
};

LoweredOptions options_for(const Types& types, const std::vector<std::string>& cpus) {
  LoweredOptions options;
  options.tolerance = is_float_type(types.result) ? 1e-5 : 0;
  options.ranges = {{"x", range_of(types.lhs)}, {"w", range_of(types.rhs)}};
  options.cpus = cpus_for(types.lhs, cpus);
  return options;
}

void expect_dot(const DotCase& c, const std::vector<std::string>& cpus = kCpus) {
  expect_lowered_module(c.text(), options_for(c.types, cpus));
}

const Types kTypes[] = {{"u8", "i8", "i32"},
                        {"i8", "u8", "i32"},
                        {"i8", "i8", "i32"},
                        {"u8", "u8", "i32"},
                        {"bf16", "bf16", "f32"}};

} // namespace

TEST_CASE("dots of narrow types are computed by tiles on every CPU", "[lower][typed]") {
  for (const Types& types : kTypes)
    for (bool constant : {true, false}) expect_dot({types, 5, 39, 21, constant});
}

// Many dots as one program.
void expect_dots(const std::vector<DotCase>& cases, const std::vector<std::string>& cpus) {
  std::string parameters, results, body, returned;
  LoweredOptions options = options_for(cases[0].types, cpus);
  for (size_t i = 0; i < cases.size(); ++i) {
    const DotCase& c = cases[i];
    std::string number = std::to_string(i), comma = i ? ", " : "";
    parameters += comma + "%x" + number + ": " + c.types.lhs + dims_text({c.m, c.k});
    std::string w = "%w" + number, type = c.types.rhs + dims_text({c.k, c.n});
    if (c.constant)
      body += w + " = " + extreme_constant(c.types.rhs, c.k * c.n, 3) + " : " + type + "\n";
    else
      parameters += ", " + w + ": " + type;
    std::string y = c.types.result + dims_text({c.m, c.n});
    body += "%y" + number + " = dot %x" + number + ", " + w +
            " {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], result = " +
            c.types.result + "} : " + y + "\n";
    results += comma + y;
    returned += comma + "%y" + number;
    options.ranges["x" + number] = range_of(c.types.lhs);
    options.ranges["w" + number] = range_of(c.types.rhs);
  }
  expect_lowered_module("module @m { func @main(" + parameters + ") -> (" + results + ") {\n" + body +
                            "return " + returned + " } }",
                        options);
}

TEST_CASE("dots of narrow types of any extents", "[lower][typed]") {
  for (const Types& types : {kTypes[0], kTypes[1], kTypes[4]})
    for (int64_t k : {1, 2, 3, 4, 5, 7, 16, 33}) {
      std::vector<DotCase> cases;
      for (int64_t m : {1, 3, 17})
        for (int64_t n : {1, 2, 5, 16, 33})
          for (bool constant : {true, false}) cases.push_back({types, m, k, n, constant});
      expect_dots(cases, kNativeCpus);
    }
  for (const Types& types : {kTypes[0], kTypes[4]}) // one byte after the last one is another page's
    for (Placement placement : {Placement::AtEnd, Placement::AtStart}) {
      LoweredOptions options = options_for(types, kNativeCpus);
      options.placement = placement;
      expect_lowered_module(DotCase{types, 3, 11, 7}.text(), options);
    }
}

TEST_CASE("dots of no elements", "[lower][typed]") {
  for (const Types& types : {kTypes[0], kTypes[4]})
    expect_dots({{types, 0, 5, 3}, {types, 3, 0, 5, false}, {types, 3, 5, 0, false}}, kNativeCpus);
}

TEST_CASE("dots of integers that have no product of several steps", "[lower][typed]") {
  for (const Types& types :
       {Types{"i32", "i32", "i32"}, Types{"i16", "u8", "i32"}, Types{"u16", "i16", "i32"},
        Types{"i8", "i32", "i32"}, Types{"u8", "i8", "i8"}, Types{"i32", "i8", "i64"}})
    for (bool constant : {true, false})
      expect_dot({types, 5, 13, 19, constant}, {"native", "x86-64", "cortex-a72", "cortex-m3"});
}

TEST_CASE("dots of narrow types whose steps do not lie side by side", "[lower][typed]") {
  for (const Types& types : kTypes)
    for (bool constant : {true, false}) {
      DotCase c{types, 6, 11, 18, constant};
      c.lhs_transposed = true;
      expect_dot(c, {"native", "x86-64", "neoverse-n1", "cortex-m4"});
      c.rhs_transposed = true;
      expect_dot(c, kNativeCpus);
      c.lhs_transposed = false;
      expect_dot(c, kNativeCpus);
    }
}

TEST_CASE("dots of narrow types with batches and several contracted dims", "[lower][typed]") {
  for (const Types& types : {kTypes[0], kTypes[1], kTypes[4]}) {
    LoweredOptions options = options_for(types, kNativeCpus);
    std::string result = types.result + "[3,5,9]";
    expect_lowered_module("module @m { func @main(%x: " + types.lhs + "[3,5,7], %w: " + types.rhs +
                              "[3,7,9]) -> (" + result +
                              ") { %y = dot %x, %w {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], "
                              "rhs_contract = [1], result = " +
                              types.result + "} : " + result + " return %y } }",
                          options);
    // The lhs' last dim is contracted first.
    result = types.result + "[5,6]";
    expect_lowered_module("module @m { func @main(%x: " + types.lhs + "[3,5,7], %w: " + types.rhs +
                              "[7,6,3]) -> (" + result +
                              ") { %y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [2, 0], "
                              "rhs_contract = [0, 2], result = " +
                              types.result + "} : " + result + " return %y } }",
                          options);
  }
}

TEST_CASE("dots of narrow types follow plans written by hand", "[lower][typed][plan]") {
  for (const Types& types : {kTypes[0], kTypes[2], kTypes[4]}) {
    std::string own = is_float_type(types.lhs) ? "dot2 " : "dot4 ";
    std::string operands = types.lhs + " " + types.rhs + " " + types.result;
    const std::string plans[] = {"direct",
                                 "direct product " + own + operands,
                                 "direct product fma " + operands + " tile 3x2",
                                 "direct product " + own + operands + " tile 5x3 rows outermost",
                                 "direct tile 13x1 splits 4 columns outermost",
                                 "direct tile 3x2 splits 2 rows outermost",
                                 "direct tile 4x1 columns outermost parts 3",
                                 "direct tile 2x2 columns outermost row_block 6",
                                 "direct tile 3x1 columns outermost parts 2 row_block 3",
                                 "direct tile 6x2 columns outermost compact",
                                 "direct tile 4x2 columns outermost lhs_columns",
                                 "direct tile 3x1 columns outermost shares 4",
                                 "elements"};
    for (const std::string& plan : plans)
      for (bool constant : {true, false}) {
        INFO(plan);
        expect_dot({types, 13, 30, 37, constant, plan}, {"native", "x86-64-v3"});
      }
  }
}

TEST_CASE("sums of bytes are dequantised and quantised in the epilogue", "[lower][typed]") {
  std::string head = "module @m { func @main(%x: u8[7,22], %s: f32[19], %b: i32[19]) -> (",
              dot = ") { %w = " + extreme_constant("i8", 22 * 19, 9) +
                    " : i8[22,19] %r = fusion %x, %w, %s, %b {kind = contraction} region (%p: u8[7,22], %q: "
                    "i8[22,19], %t: f32[19], %d: i32[19]) { %y = dot %p, %q {lhs_batch = [], rhs_batch = [], "
                    "lhs_contract = [1], rhs_contract = [0], result = i32} : i32[7,19] %e = broadcast_in_dim "
                    "%d {dims = [1]} : i32[7,19] %a = add %y, %e : i32[7,19] %f = convert %a {to = f32} : "
                    "f32[7,19] %u = broadcast_in_dim %t {dims = [1]} : f32[7,19] %m = multiply %f, %u : "
                    "f32[7,19] ";
  LoweredOptions options = options_for(kTypes[0], kCpus);
  std::erase(options.cpus, "cortex-m3");
  options.tolerance = 1e-6;
  options.ranges["s"] = {-1e-2, 1e-2};
  options.ranges["b"] = {-1e5, 1e5};
  expect_lowered_module(
      head + "f32[7,19]" + dot + "%z = tanh %m : f32[7,19] return %z } : f32[7,19] return %r } }", options);
  for (std::string dtype : {"u8", "i8"}) {
    std::string type = dtype + "[7,19]", low = dtype == "u8" ? "0" : "-128",
                high = dtype == "u8" ? "255" : "127";
    expect_lowered_module(head + type + dot + "%l = constant [" + low + "] : f32[] %h = constant [" + high +
                              "] : f32[] %lb = broadcast_in_dim %l {dims = []} : f32[7,19] %hb = "
                              "broadcast_in_dim %h {dims = []} : f32[7,19] %o = round_nearest_even %m : "
                              "f32[7,19] %c = clamp %lb, %o, %hb : f32[7,19] %z = convert %c {to = " +
                              dtype + "} : " + type + " return %z } : " + type + " return %r } }",
                          options);
  }
}

namespace {

struct ConvolutionCase {
  Types types;
  int64_t channels, filters, groups = 1, window = 3;
  std::string attributes = "3x3 pad 1_1x1_1";
  int64_t out_high = 6, out_wide = 9; // of 6x9
  enum { Plain, Blocked, ChannelsLast } layout = Plain;
  bool constant = true;
  std::string plan = {};

  // The input as it is given, in the layout of the case; the result plain or in blocks.
  std::string text(const std::string& cpu) const {
    size_t space = std::min(cpu.find(' '), cpu.size());
    std::string block = ":1x" + std::to_string(target_of("", cpu.substr(0, space)).channel_block());
    std::string in = types.lhs + dims_text({2, channels, 6, 9}),
                w = types.rhs + dims_text({filters, channels / groups, window, window}),
                out = types.result + dims_text({2, filters, out_high, out_wide});
    std::string laid_in = in + (layout == Blocked ? "{0,1,2,3" + block + "}" : ""),
                laid_out = out + (layout == Blocked ? "{0,1,2,3" + block + "}" : "");
    std::string given = layout == ChannelsLast ? types.lhs + dims_text({2, 6, 9, channels}) : in;
    int64_t count = filters * channels / groups * window * window;
    std::string copy = layout == Blocked ? "%i = copy %x : " + laid_in
                       : layout == ChannelsLast
                           ? "%i = transpose %x {permutation = [0, 3, 1, 2]} : " + in + "{0,2,3,1}"
                           : "";
    return "module @m { func @main(%x: " + given + (constant ? "" : ", %w: " + w) + ") -> (" + out + ") { " +
           (constant ? "%w = " + extreme_constant(types.rhs, count, 5) + " : " + w + " " : "") + copy +
           " %c = convolution " + (layout == Plain ? "%x" : "%i") + ", %w {window = " + attributes +
           ", groups = " + std::to_string(groups) + ", result = " + types.result +
           (plan.empty() ? "" : ", plan = \"" + plan + "\"") + "} : " + laid_out +
           (layout == Blocked ? " %r = copy %c : " + out + " return %r } }" : " return %c } }");
  }
};

void expect_convolution(const ConvolutionCase& c, const std::vector<std::string>& cpus = kCpus) {
  for (const std::string& cpu : cpus_for(c.types.lhs, cpus))
    expect_lowered_module(c.text(cpu), options_for(c.types, {cpu}));
}

} // namespace

TEST_CASE("convolutions of narrow types are computed by tiles on every CPU", "[lower][typed]") {
  for (const Types& types : kTypes)
    for (auto layout : {ConvolutionCase::Plain, ConvolutionCase::Blocked}) {
      ConvolutionCase c{types, 19, 21};
      c.layout = layout;
      expect_convolution(c);
    }
}

TEST_CASE("convolutions of narrow types over any channels, windows and layouts", "[lower][typed]") {
  for (const Types& types : {kTypes[0], kTypes[4]})
    for (auto layout : {ConvolutionCase::Plain, ConvolutionCase::Blocked, ConvolutionCase::ChannelsLast})
      for (bool constant : {true, false})
        for (ConvolutionCase c :
             {ConvolutionCase{types, 1, 3}, ConvolutionCase{types, 3, 16}, ConvolutionCase{types, 4, 5},
              ConvolutionCase{types, 33, 18}, ConvolutionCase{types, 16, 33, 1, 1, "1x1"},
              ConvolutionCase{types, 18, 20, 1, 1, "1x1 stride 2x3", 3, 3},
              ConvolutionCase{types, 7, 6, 1, 3, "3x3 pad 2_2x2_2 dilate 2x2"},
              ConvolutionCase{types, 17, 4, 1, 3, "3x3", 4, 7}, ConvolutionCase{types, 12, 6, 2},
              ConvolutionCase{types, 32, 32, 2}, ConvolutionCase{types, 10, 8, 2},
              ConvolutionCase{types, 8, 8, 8}}) {
          c.layout = layout;
          c.constant = constant;
          if (c.groups > 1 && layout == ConvolutionCase::ChannelsLast) continue;
          expect_convolution(c, {"native", "x86-64"});
        }
}

TEST_CASE("convolutions of narrow types follow plans written by hand", "[lower][typed][plan]") {
  for (const Types& types : {kTypes[0], kTypes[4]}) {
    std::string own = is_float_type(types.lhs) ? "dot2 " : "dot4 ";
    std::string operands = types.lhs + " " + types.rhs + " " + types.result;
    const std::string plans[] = {"direct product " + own + operands,
                                 "direct product fma " + operands + " tile 3x2",
                                 "direct product " + own + operands + " tile 5x2 rows outermost",
                                 "direct tile 1x1 columns outermost",
                                 "direct tile 9x1 columns outermost looped_epilogue",
                                 "direct tile 4x2 splits 2 columns outermost bias_first",
                                 "direct tile 4x2 columns outermost compact",
                                 "direct tile 4x2 columns outermost shares 3",
                                 "elements"};
    for (const std::string& plan : plans)
      for (auto layout : {ConvolutionCase::Plain, ConvolutionCase::Blocked}) {
        ConvolutionCase c{types, 22, 37};
        c.layout = layout;
        c.plan = plan;
        expect_convolution(c, {"native", "x86-64-v3"});
      }
  }
}

TEST_CASE("sums of a convolution of bytes start from their bias and leave as bytes", "[lower][typed]") {
  for (std::string cpu : {"native", "x86-64-v3", "cortex-a72", "cortex-m4"})
    for (std::string plan : {"direct", "direct tile 3x1 columns outermost looped_epilogue bias_first"}) {
      std::string block = ":1x" + std::to_string(target_of("", cpu).channel_block()) + "}";
      std::string in = "u8[1,18,7,9]{0,1,2,3" + block, sums = "[1,20,7,9]{0,1,2,3" + block, out = "u8" + sums;
      LoweredOptions options = options_for(kTypes[0], {cpu});
      options.ranges["b"] = {-1e5, 1e5};
      expect_lowered_module(
          "module @m { func @main(%x: u8[1,18,7,9], %b: i32[20]) -> (u8[1,20,7,9]) { %w = " +
              extreme_constant("i8", 20 * 18 * 9, 5) + " : i8[20,18,3,3] %i = copy %x : " + in +
              " %c = fusion %i, %w, %b {kind = contraction, plan = \"" + plan + "\"} region (%p: " + in +
              ", %q: i8[20,18,3,3], %d: i32[20]) { %s = convolution %p, %q {window = 3x3 pad 1_1x1_1, groups "
              "= 1, result = i32} : i32" +
              sums + " %e = broadcast_in_dim %d {dims = [1]} : i32" + sums + " %t = add %s, %e : i32" + sums +
              " %f = convert %t {to = f32} : f32" + sums +
              " %k = constant [0.001] : f32[] %g = " + "broadcast_in_dim %k {dims = []} : f32" + sums +
              " %m = multiply %f, %g : f32" + sums + " %n = round_nearest_even %m : f32" + sums +
              " %l = constant [0] : f32[] %h = constant [255] : " +
              "f32[] %lb = broadcast_in_dim %l {dims = []} : f32" + sums +
              " %hb = broadcast_in_dim %h {dims = []} : f32" + sums + " %o = clamp %lb, %n, %hb : f32" +
              sums + " %z = convert %o {to = u8} : " + out + " return %z } : " + out +
              " %r = copy %c : u8[1,20,7,9] return %r } }",
          options);
    }
}

TEST_CASE("kernels of narrow types hold their products", "[lower][typed]") {
  using firn::kernel::OpKind;
  const OpKind kinds[] = {OpKind::DotU8S8, OpKind::DotU8S8, OpKind::DotS8S8, OpKind::DotU8U8,
                          OpKind::DotBF16};
  for (size_t i = 0; i < std::size(kTypes); ++i)
    for (const std::string& cpu : cpus_for(kTypes[i].lhs, kCpus)) {
      INFO(cpu << ", " << kTypes[i].lhs << " and " << kTypes[i].rhs);
      for (const std::string& text :
           {DotCase{kTypes[i], 5, 9, 7}.text(), ConvolutionCase{kTypes[i], 9, 7}.text(cpu)}) {
        auto program = lower_text(text, cpu);
        CHECK(count_ops(program.kernels[0]->body, kinds[i]) > 0);
        CHECK(program.kernels[0]->algorithm.find(
                  is_float_type(kTypes[i].lhs) ? " dot2 bf16 bf16 f32" : " dot4 ") != std::string::npos);
      }
    }
}

TEST_CASE("plans name products, and those that types do not have are refused", "[lower][typed][plan]") {
  auto has = [](const std::string& text, const char* part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  auto error = [](const Types& types, const std::string& plan) {
    return lowering_error(DotCase{types, 5, 9, 7, true, plan}.text());
  };
  CHECK(has(error(kTypes[0], "direct product dot4 i8 i8 i32"), "it multiplies u8 and i8 and sums in i32"));
  CHECK(has(error(kTypes[0], "direct product dot4 u8 i8 f32"), "it multiplies u8 and i8 and sums in i32"));
  CHECK(has(error(kTypes[0], "direct product dot2 u8 i8 i32"), "dot4 is of bytes, and dot2 of bf16"));
  CHECK(has(error(kTypes[4], "direct product dot4 bf16 bf16 f32"), "dot4 is of bytes"));
  CHECK(has(error(kTypes[0], "direct product tile_matrix u8 i8 i32"), "no kernel is made of tile matrices"));
  CHECK(has(error(kTypes[0], "direct product dot4 u8 i8 i32 sums tile_registers"),
            "elsewhere than in registers"));
  CHECK(has(error({"i8", "i8", "i8"}, "direct"), "register tiles do not sum such products"));
  CHECK(has(error(kTypes[0], "direct tile 3x2 columns outermost unpacked"), "do not lie together"));
  CHECK(has(error(kTypes[0], "direct tile 3x2 columns outermost parts 4"),
            "parts would be left without steps"));
}
