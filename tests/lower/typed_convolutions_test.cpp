// Convolutions of bytes and bf16, whose products take several channels: on every CPU with products of its
// own, against the evaluator.
#include "tests/codegen/model_object.h"
#include "tests/lower/typed_cases.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

void expect_convolution(const ConvolutionCase& c, const std::vector<std::string>& cpus = kProductCpus) {
  for (const std::string& cpu : cpus_for(c.types.lhs, cpus))
    expect_lowered_module(c.text(cpu), options_for(c.types, {cpu}));
}

} // namespace

TEST_CASE("convolutions of narrow types are computed by tiles on every CPU", "[lower][typed]") {
  for (const Types& types : kProductTypes)
    for (auto layout : {ConvolutionCase::Fixed, ConvolutionCase::Blocked}) {
      ConvolutionCase c{types, 19, 21};
      c.layout = layout;
      expect_convolution(c);
    }
}

TEST_CASE("convolutions of narrow types over any channels, windows and layouts", "[lower][typed]") {
  for (const Types& types : {kUnlikeBytes, kI16Bytes, kBf16})
    for (auto layout : {ConvolutionCase::Fixed, ConvolutionCase::Blocked, ConvolutionCase::ChannelsLast})
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
          expect_convolution(c, constant ? std::vector<std::string>{"native", "x86-64"}
                                         : std::vector<std::string>{"native"});
        }
}

TEST_CASE("convolutions of narrow types follow plans written by hand", "[lower][typed][plan]") {
  for (const Types& types : {kUnlikeBytes, kI16Bytes, kBf16}) {
    std::string own = are_bytes(types) ? "dot4 " : "dot2 ";
    std::string operands = types.lhs + " " + types.rhs + " " + types.result;
    const std::string plans[] = {"direct mac " + own + operands,
                                 "direct mac fma " + operands + " tile 3x2",
                                 "direct mac " + own + operands + " tile 5x2 rows outermost",
                                 "direct tile 1x1 columns outermost",
                                 "direct tile 9x1 columns outermost rolled_epilogue",
                                 "direct tile 4x2 splits 2 columns outermost bias_in_accumulators",
                                 "direct tile 4x2 columns outermost optimize_size",
                                 "direct tile 4x2 columns outermost split_m 3",
                                 "elements"};
    for (const std::string& plan : plans)
      for (auto layout : {ConvolutionCase::Fixed, ConvolutionCase::Blocked}) {
        ConvolutionCase c{types, 22, 37};
        c.layout = layout;
        c.plan = plan;
        expect_convolution(c, {"native", "x86-64-v3"});
      }
  }
}

TEST_CASE("sums of a convolution of bytes start from their bias and leave as bytes", "[lower][typed]") {
  // Kept between bounds behind a zero point; the narrowing of some CPUs saturates at one of them itself.
  struct Narrowed {
    std::string dtype;
    int zero, low, high;
  };
  const Narrowed all[] = {{"u8", 0, 0, 255},    {"u8", 124, 0, 255},    {"u8", 9, 9, 230},
                          {"i8", 0, -128, 127}, {"i8", -20, -128, 127}, {"i8", 3, -100, 127},
                          {"i16", 0, 0, 255},   {"i16", 77, 0, 201},    {"i16", 5, -128, 127},
                          {"i16", -3, -3, 127}};
  for (std::string cpu : {"native", "x86-64-v3", "x86-64", "cortex-a72", "cortex-m4", "cortex-m55"})
    for (const Narrowed& to : all)
      for (std::string scale : {"0.001", "1e5"}) { // beyond i32 as well
        std::string plan = scale == "1e5"
                               ? "direct tile 3x1 columns outermost rolled_epilogue bias_in_accumulators"
                               : "direct";
        INFO(cpu << ": " << to.dtype << " " << to.zero << " in [" << to.low << ", " << to.high << "]");
        std::string block = ":1x" + std::to_string(target_of("", cpu).cpu.channel_block()) + "}";
        std::string in = "u8[1,18,5,7]{0,1,2,3" + block, accumulators = "[1,20,5,7]{0,1,2,3" + block,
                    out = to.dtype + accumulators, plain = to.dtype + "[1,20,5,7]";
        LoweredOptions options = options_for(kUnlikeBytes, {cpu});
        options.ranges["b"] = {-1e9, 1e9};
        auto everywhere = [&](const std::string& name, const std::string& value) {
          return " %" + name + "0 = constant [" + value + "] : f32[] %" + name + " = broadcast_in_dim %" +
                 name + "0 {dims = []} : f32" + accumulators;
        };
        expect_lowered_module(
            "module @m { func @main(%x: u8[1,18,5,7], %b: i32[20]) -> (" + plain + ") { %w = " +
                extreme_constant("i8", 20 * 18 * 9, 5) + " : i8[20,18,3,3] %i = copy %x : " + in +
                " %c = fusion %i, %w, %b {kind = contraction, plan = \"" + plan + "\"} region (%p: " + in +
                ", %q: i8[20,18,3,3], %d: i32[20]) { %s = convolution %p, %q {window = 3x3 pad 1_1x1_1, "
                "groups = 1, result = i32} : i32" +
                accumulators + " %e = broadcast_in_dim %d {dims = [1]} : i32" + accumulators +
                " %t = add %s, %e : i32" + accumulators + " %f = convert %t {to = f32} : f32" + accumulators +
                everywhere("k", scale) + " %m = multiply %f, %k : f32" + accumulators +
                " %z = narrow %m {high = " + std::to_string(to.high) + ", low = " + std::to_string(to.low) +
                ", to = " + to.dtype + ", zero = " + std::to_string(to.zero) + "} : " + out +
                " return %z } : " + out + " %r = copy %c : " + plain + " return %r } }",
            options);
      }
}

TEST_CASE("kernels of narrow types hold their products", "[lower][typed]") {
  using firn::kernel::OpKind;
  const OpKind kinds[] = {OpKind::DotU8S8, OpKind::DotU8S8, OpKind::DotS8S8, OpKind::DotU8U8,
                          OpKind::DotS16,  OpKind::DotS16,  OpKind::DotS16,  OpKind::DotBF16};
  for (size_t i = 0; i < kProductTypes.size(); ++i)
    for (const std::string& cpu : cpus_for(kProductTypes[i].lhs, kProductCpus)) {
      INFO(cpu << ", " << kProductTypes[i].lhs << " and " << kProductTypes[i].rhs);
      const Types& types = kProductTypes[i];
      std::string product = are_bytes(types) ? "dot4" : "dot2";
      // Given: the CPU at hand may have others that are faster.
      std::string plan = "direct mac " + product + " " + types.lhs + " " + types.rhs + " " + types.result;
      DotCase dot{types, 5, 9, 7, true, plan};
      ConvolutionCase convolution{types, 9, 7};
      convolution.plan = plan;
      for (const std::string& text : {dot.text(), convolution.text(cpu)}) {
        auto program = lower_text(text, cpu);
        CHECK(count_ops(program.kernels[0]->body, kinds[i]) > 0);
        CHECK(program.kernels[0]->algorithm.find(" " + product + " ") != std::string::npos);
      }
    }
}

TEST_CASE("kernels of narrow types in few bytes of code", "[lower][typed]") {
  for (const Types& types : {kUnlikeBytes, kBf16}) {
    LoweredOptions options = options_for(types, {"native", "x86-64"});
    options.optimize_size = true;
    expect_lowered_module(DotCase{types, 7, 27, 19}.text(), options);
    for (const char* cpu : {"native", "x86-64"}) {
      ConvolutionCase c{types, 19, 21};
      c.layout = ConvolutionCase::Blocked;
      options.cpus = {cpu};
      expect_lowered_module(c.text(cpu), options);
    }
  }
}

TEST_CASE("filters of bytes are widened beside floats", "[lower][typed]") {
  const Types types{"f32", "i8", "f32"};
  struct Windows {
    std::string attributes;
    int64_t window, out_high, out_wide;
  };
  for (const Windows& w : {Windows{"1x1", 1, 6, 9}, Windows{"3x3 pad 1_1x1_1 stride 2x2", 3, 3, 5},
                           Windows{"3x3 pad 1_1x1_1", 3, 6, 9}})
    for (auto layout : {ConvolutionCase::Fixed, ConvolutionCase::Blocked})
      for (bool constant : {true, false}) {
        ConvolutionCase c{types, 22, 37};
        c.attributes = w.attributes, c.window = w.window, c.out_high = w.out_high, c.out_wide = w.out_wide;
        c.layout = layout;
        c.constant = constant;
        expect_convolution(
            c, {"native", "x86-64-v3", "x86-64", "cortex-a72", "cortex-m4", "cortex-m55", "generic-rv64"});
      }
}

// Phases of a transposed convolution are a convolution over all channels.
TEST_CASE("transposed convolutions of narrow types", "[lower][typed]") {
  for (const Types& types : {kBf16, kUnlikeBytes, kSignedBytes})
    for (std::string cpu : {"native", "x86-64-v3", "x86-64", "neoverse-n1"})
      for (std::string plan : {"polyphase", "elements"}) {
        if (cpus_for(types.lhs, {cpu}).empty()) continue;
        int block = target_of("", cpu).cpu.channel_block();
        std::string layout = "{0,1,2,3:1x" + std::to_string(block) + "}", filters = std::to_string(2 * block),
                    in = types.lhs + "[1,9,5,6]", out = types.result + "[1," + filters + ",10,12]";
        expect_lowered_module("module @m { func @main(%x: " + in + ") -> (" + out +
                                  ") { %w = " + extreme_constant(types.rhs, 2 * block * 9 * 16, 7) + " : " +
                                  types.rhs + "[" + filters + ",9,4,4] %i = copy %x : " + in + layout +
                                  " %c = convolution %i, %w {window = 4x4 pad 2_2x2_2 input_dilate 2x2, "
                                  "groups = 1, result = " +
                                  types.result + ", plan = \"" + plan + "\"} : " + out + layout +
                                  " %r = copy %c : " + out + " return %r } }",
                              options_for(types, {cpu}));
      }
}

// Results of 1x1 convolutions may lie over their inputs: words of four channels are read before they are
// written.
TEST_CASE("convolutions of bytes behind each other", "[lower][typed]") {
  for (std::string cpu : kNativeCpus)
    for (int channels : {16, 18}) {
      std::string count = std::to_string(channels), dims = "[1," + count + ",5,7]",
                  layout =
                      dims + "{0,1,2,3:1x" + std::to_string(target_of("", cpu).cpu.channel_block()) + "}",
                  weights = "i8[" + count + "," + count + ",1,1]", body = "%v0 = copy %x : u8" + layout;
      for (int i = 0; i < 4; ++i) {
        std::string before = "%v" + std::to_string(i), after = "%v" + std::to_string(i + 1),
                    w = "%w" + std::to_string(i);
        body += " " + w + " = " + extreme_constant("i8", int64_t{channels} * channels, 11) + " : " + weights +
                " " + after + " = fusion " + before + ", " + w + " {kind = contraction} region (%p: u8" +
                layout + ", %q: " + weights +
                ") { %s = convolution %p, %q {window = 1x1, groups = 1, result = i32} : i32" + layout +
                " %k = constant [10] : i32[] %b = broadcast_in_dim %k {dims = []} : i32" + layout +
                " %h = shift_right %s, %b : i32" + layout + " %z = convert %h {to = u8} : u8" + layout +
                " return %z } : u8" + layout;
      }
      expect_lowered_module("module @m { func @main(%x: u8" + dims + ") -> (u8" + dims + ") { " + body +
                                " %r = copy %v4 : u8" + dims + " return %r } }",
                            options_for(kUnlikeBytes, {cpu}));
    }
}

TEST_CASE("convolutions whose pairs of products fit 16 bits", "[lower][typed]") {
  // Channels in odd numbers and windows; every pair at the limit, of either sign.
  for (int channels : {2, 5, 18})
    for (const std::string layout : {"", "{0,1,2,3:1x8}"}) {
      std::string weights, type = "i8[9," + std::to_string(channels) + ",3,3]",
                           in = "u8[1," + std::to_string(channels) + ",5,6]", out = "i32[1,9,5,6]";
      for (int filter = 0; filter < 9; ++filter)
        for (int channel = 0; channel < channels; ++channel)
          for (int tap = 0; tap < 9; ++tap) {
            int pair = filter + channel / 2 + tap, first = pair % 2 ? 64 + pair % 9 : -64 + pair % 7,
                second = pair % 2 ? 128 - first : -128 - first;
            weights += (weights.empty() ? "" : ", ") + std::to_string(channel % 2 ? second : first);
          }
      std::string text =
          "module @m { func @main(%x: " + in + ") -> (" + out + ") { %w = constant [" + weights +
          "] : " + type + " %i = copy %x : " + in + layout +
          " %c = convolution %i, %w {window = 3x3 pad 1_1x1_1, groups = 1, result = i32} : " + out + layout +
          " %r = copy %c : " + out + " return %r } }";
      int64_t products = 0;
      for (const auto& kernel : lower_text(text, "x86-64-v3").kernels)
        products += count_ops(kernel->body, firn::kernel::OpKind::DotU8S8Narrow);
      CHECK(products > 0);
      for (Range range : {Range{255, 255}, Range{0, 255}}) {
        LoweredOptions options = options_for(kUnlikeBytes, {"x86-64-v3", "x86-64-v2"});
        options.ranges["x"] = range;
        expect_lowered_module(text, options);
      }
    }
}
