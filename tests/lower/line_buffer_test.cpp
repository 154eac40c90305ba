// Convolutions over buffered lines against the evaluator: dense and depthwise ones, whose map is padded with
// any number, unfolded or transposed, or the padded result of another convolution, in strips that divide the
// result and that do not.
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

struct Case {
  int64_t channels = 1, filters = 1; // equal if depthwise
  int64_t height = 1, width = 1;
  int64_t rows = 1; // lines of the result that a strip has
  bool depthwise = false;
  int64_t taps_high = 3, taps_wide = 3, stride = 1, dilation = 1;
  int64_t low = 1, high = 1; // padding of both spatial dims
  int64_t zero = -128;
  int64_t batch = 1;
  std::string dtype = "i8";
};

std::string join(const std::vector<int64_t>& numbers, const char* separator = ",") {
  std::string text;
  for (int64_t n : numbers) text += (text.empty() ? "" : separator) + std::to_string(n);
  return text;
}

class BufferText {
public:
  BufferText(const Case& c, const std::string& cpu) : c_(c) {
    const auto facts = target_of("", cpu).cpu;
    const int64_t block = facts.channel_block();
    // Products of rows read all channels of a position side by side; windows keep the blocks that they read.
    const bool reads_rows = facts.reducing_dot_bits > 0;
    map_block_ = in_blocks(reads_rows ? (c.channels + block - 1) / block * block : block);
    block_ = c.depthwise ? map_block_ : in_blocks(block);
    auto extent = [&](int64_t in, int64_t taps) {
      return (in + c.low + c.high - ((taps - 1) * c.dilation + 1)) / c.stride + 1;
    };
    map_ = {c.batch, c.channels, c.height + c.low + c.high, c.width + c.low + c.high};
    result_ = {c.batch, c.filters, extent(c.height, c.taps_high), extent(c.width, c.taps_wide)};
  }

  std::string padded() const {
    std::string in = type({c_.batch, c_.channels, c_.height, c_.width}), made = type(map_) + map_block_;
    return whole(in, "%b = copy %x : " + in + map_block_, "%b", in + map_block_,
                 "%m = pad %a, %z {low = [0, 0, " + join({c_.low, c_.low}, ", ") + "], high = [0, 0, " +
                     join({c_.high, c_.high}, ", ") + "], interior = [0, 0, 0, 0]} : " + made,
                 made, filter(), window(c_.taps_high, c_.taps_wide));
  }

  // The map is of an image whose channels lie together.
  std::string transposed() const {
    std::string in = type({c_.batch, c_.height, c_.width, c_.channels}),
                turned = type({c_.batch, c_.channels, c_.height, c_.width}), made = type(map_) + map_block_;
    return whole(in, "", "%x", in,
                 "%t = transpose %a {permutation = [0, 3, 1, 2]} : " + turned +
                     " %d = pad %t, %z {low = [0, 0, " + join({c_.low, c_.low}, ", ") + "], high = [0, 0, " +
                     join({c_.high, c_.high}, ", ") + "], interior = [0, 0, 0, 0]} : " + type(map_) +
                     " %m = copy %d : " + made,
                 made, filter(), window(c_.taps_high, c_.taps_wide));
  }

  // The map has the positions of a window along a line of one channel as channels.
  std::string unfolded() const {
    std::string in = type({c_.batch, 1, c_.height, c_.width}), lines = type(map_);
    std::string code = "%d = pad %a, %z {low = [0, 0, " + join({c_.low, c_.low}, ", ") + "], high = [0, 0, " +
                       join({c_.high, c_.high}, ", ") + "], interior = [0, 0, 0, 0]} : " + lines,
                parts;
    for (int64_t tap = 0; tap < c_.taps_wide; ++tap) {
      std::string name = "%s" + std::to_string(tap), at = std::to_string(tap * c_.dilation);
      int64_t limit = tap * c_.dilation + (result_[3] - 1) * c_.stride + 1;
      code += " " + name + " = slice %d {starts = [0, 0, 0, " + at + "], limits = [" +
              join({c_.batch, 1, map_[2], limit}, ", ") + "], strides = [1, 1, 1, " +
              std::to_string(c_.stride) + "]} : " + type({c_.batch, 1, map_[2], result_[3]});
      parts += (parts.empty() ? "" : ", ") + name;
    }
    std::string made = type({c_.batch, c_.taps_wide, map_[2], result_[3]});
    code += " %k = concatenate " + parts + " {dim = 1} : " + made + " %m = copy %k : " + made + map_block_;
    std::string narrow = "window = " + std::to_string(c_.taps_high) + "x1 stride " +
                         std::to_string(c_.stride) + "x1 dilate " + std::to_string(c_.dilation) + "x1";
    return whole(in, "", "%x", in, code, made + map_block_,
                 "i8[" + join({c_.filters, c_.taps_wide, c_.taps_high, 1}) + "]", narrow);
  }

  // The map is the padded result of a convolution of 12 channels by filters %o.
  std::string produced() const {
    const std::vector<int64_t> made = {c_.batch, c_.channels, c_.height, c_.width};
    const std::string in = type({c_.batch, 12, c_.height, c_.width}), made_type = type(made) + block_,
                      sums = "i32[" + join(made) + "]" + block_,
                      filters = "i8[" + std::to_string(c_.channels) + ",12,1,1]";
    const std::string contraction =
        "%n = fusion %a, %l {kind = contraction} region (%y: " + in + block_ + ", %j: " + filters +
        ") { %s1 = convolution %y, %j {window = 1x1, groups = 1, result = i32} : " + sums +
        " %s4 = convert %s1 {to = i8} : " + made_type + " return %s4 } : " + made_type;
    std::string text = whole(in, "%b = copy %x : " + in + block_, "%b", in + block_,
                             contraction + " %m = pad %n, %z {low = [0, 0, " + join({c_.low, c_.low}, ", ") +
                                 "], high = [0, 0, " + join({c_.high, c_.high}, ", ") +
                                 "], interior = [0, 0, 0, 0]} : " + type(map_) + block_,
                             type(map_) + block_, filter(), window(c_.taps_high, c_.taps_wide));
    auto insert = [&](const std::string& before, const std::string& added) {
      text.insert(text.find(before), added);
    };
    insert(") -> (i32[", ", %o: " + filters);
    insert(" {kind = line_buffer", ", %o");
    insert(") { %z = constant", ", %l: " + filters);
    return text;
  }

private:
  std::string type(const std::vector<int64_t>& dims) const { return c_.dtype + "[" + join(dims) + "]"; }
  static std::string in_blocks(int64_t channels) { return "{0,1,2,3:1x" + std::to_string(channels) + "}"; }
  std::string filter() const {
    return "i8[" + join({c_.filters, c_.depthwise ? 1 : c_.channels, c_.taps_high, c_.taps_wide}) + "]";
  }
  std::string window(int64_t high, int64_t wide) const {
    std::string s = std::to_string(c_.stride), d = std::to_string(c_.dilation);
    return "window = " + join({high, wide}, "x") + " stride " + s + "x" + s + " dilate " + d + "x" + d;
  }

  // `input`: the fusion's first operand, made by `before`; `code` makes the map %m of %a.
  std::string whole(const std::string& in, const std::string& before, const std::string& input,
                    const std::string& input_type, const std::string& code, const std::string& made,
                    const std::string& weights, const std::string& window) const {
    std::string sums = "i32[" + join(result_) + "]" + block_,
                bias = "i32[" + std::to_string(c_.filters) + "]",
                groups = std::to_string(c_.depthwise ? c_.channels : 1);
    return "module @m { func @main(%x: " + in + ", %w: " + weights + ", %v: " + bias + ") -> (i32[" +
           join(result_) + "]) { " + before + " %f = fusion " + input +
           ", %w, %v {kind = line_buffer, rows = " + std::to_string(c_.rows) + "} region (%a: " + input_type +
           ", %p: " + weights + ", %q: " + bias + ") { %z = constant [" + std::to_string(c_.zero) +
           "] : " + c_.dtype + "[] " + code +
           " %c = fusion %m, %p, %q {kind = contraction} region (%e: " + made + ", %g: " + weights +
           ", %h: " + bias + ") { %c0 = convolution %e, %g {" + window + ", groups = " + groups +
           ", result = i32} : " + sums + " %u = broadcast_in_dim %h {dims = [1]} : " + sums +
           " %s = add %c0, %u : " + sums + " return %s } : " + sums + " return %c } : " + sums +
           " %r = copy %f : i32[" + join(result_) + "] return %r } }";
  }

  const Case& c_;
  std::string block_, map_block_;
  std::vector<int64_t> map_, result_;
};

using Form = std::string (BufferText::*)() const;

void expect_buffered(const Case& c, Form form,
                     const std::vector<std::string>& cpus = {"native", "x86-64", "cortex-m4", "cortex-m3",
                                                             "cortex-m55"}) {
  for (const std::string& cpu : cpus) {
    std::string text = (BufferText(c, cpu).*form)();
    INFO(text);
    int buffered = 0;
    for (const auto& kernel : lower_text(text, cpu).kernels)
      buffered += kernel->algorithm.find("buffered rows " + std::to_string(c.rows)) != std::string::npos;
    CHECK(buffered == 1);
    double low = c.dtype == "u8" ? 0 : -128, high = c.dtype == "u8" ? 255 : 127;
    for (Placement placement : {Placement::AtEnd, Placement::AtStart})
      expect_lowered_module(
          text, {.tolerance = 0,
                 .ranges = {{"x", {low, high}}, {"w", {-128, 127}}, {"o", {-128, 127}}, {"v", {-9999, 9999}}},
                 .cpus = {cpu},
                 .placement = placement});
  }
}

} // namespace

TEST_CASE("dense convolutions over buffered lines of a padded map", "[lower]") {
  expect_buffered({.channels = 16, .filters = 16, .height = 9, .width = 11, .rows = 1}, &BufferText::padded);
  expect_buffered({.channels = 8, .filters = 20, .height = 10, .width = 8, .rows = 4, .stride = 2, .low = 0},
                  &BufferText::padded);
  expect_buffered({.channels = 5, .filters = 7, .height = 7, .width = 9, .rows = 3, .zero = 3, .batch = 2},
                  &BufferText::padded);
  expect_buffered({.channels = 4,
                   .filters = 8,
                   .height = 12,
                   .width = 6,
                   .rows = 12,
                   .taps_high = 5,
                   .taps_wide = 1,
                   .low = 2,
                   .high = 2},
                  &BufferText::padded);
  expect_buffered({.channels = 4,
                   .filters = 4,
                   .height = 9,
                   .width = 9,
                   .rows = 2,
                   .dilation = 2,
                   .low = 2,
                   .high = 2,
                   .zero = 127},
                  &BufferText::padded);
  expect_buffered({.channels = 16,
                   .filters = 8,
                   .height = 7,
                   .width = 7,
                   .rows = 2,
                   .low = 3,
                   .high = 0,
                   .zero = 200,
                   .dtype = "u8"},
                  &BufferText::padded);
}

TEST_CASE("depthwise convolutions over buffered lines of a padded map", "[lower]") {
  expect_buffered({.channels = 32, .filters = 32, .height = 9, .width = 11, .rows = 9, .depthwise = true},
                  &BufferText::padded);
  // Vectors would not lie along lines so short.
  expect_buffered({.channels = 32, .filters = 32, .height = 25, .width = 5, .rows = 4, .depthwise = true},
                  &BufferText::padded, {"cortex-m4", "cortex-m3"});
  expect_buffered({.channels = 12, .filters = 12, .height = 6, .width = 5, .rows = 6, .depthwise = true},
                  &BufferText::padded, {"cortex-m4", "cortex-m3"});
  expect_buffered({.channels = 64,
                   .filters = 64,
                   .height = 12,
                   .width = 14,
                   .rows = 2,
                   .depthwise = true,
                   .stride = 2,
                   .low = 0},
                  &BufferText::padded);
  expect_buffered({.channels = 32,
                   .filters = 32,
                   .height = 8,
                   .width = 7,
                   .rows = 3,
                   .depthwise = true,
                   .taps_high = 5,
                   .taps_wide = 5,
                   .low = 2,
                   .high = 2,
                   .zero = 5,
                   .batch = 2},
                  &BufferText::padded);
}

TEST_CASE("every number may surround a buffered map", "[lower]") {
  for (int64_t zero : {-128, -127, -1, 0, 1, 126, 127})
    for (bool depthwise : {false, true})
      expect_buffered({.channels = 32,
                       .filters = 32,
                       .height = 5,
                       .width = 6,
                       .rows = 2,
                       .depthwise = depthwise,
                       .zero = zero},
                      &BufferText::padded);
}

TEST_CASE("buffered lines of maps that are transposed or unfolded", "[lower]") {
  expect_buffered({.channels = 3, .filters = 8, .height = 10, .width = 9, .rows = 2},
                  &BufferText::transposed);
  expect_buffered(
      {.channels = 3, .filters = 16, .height = 11, .width = 12, .rows = 3, .stride = 2, .low = 0, .batch = 2},
      &BufferText::transposed);
  expect_buffered({.channels = 1, .filters = 8, .height = 10, .width = 12, .rows = 2, .stride = 2},
                  &BufferText::unfolded);
  expect_buffered({.channels = 1,
                   .filters = 64,
                   .height = 21,
                   .width = 10,
                   .rows = 5,
                   .taps_high = 10,
                   .taps_wide = 4,
                   .stride = 2,
                   .low = 4,
                   .high = 5,
                   .zero = -3},
                  &BufferText::unfolded);
}

TEST_CASE("depthwise convolutions over buffered lines that another convolution makes", "[lower]") {
  const std::vector<std::string> cpus = {"cortex-m4", "cortex-m3"};
  for (int64_t rows : {1, 2, 3, 6})
    expect_buffered({.channels = 16,
                     .filters = 16,
                     .height = 12,
                     .width = 9,
                     .rows = rows,
                     .depthwise = true,
                     .stride = 2,
                     .low = 0},
                    &BufferText::produced, cpus);
  for (int64_t rows : {2, 5, 7})
    expect_buffered({.channels = 8,
                     .filters = 8,
                     .height = 7,
                     .width = 6,
                     .rows = rows,
                     .depthwise = true,
                     .zero = 127,
                     .batch = 2},
                    &BufferText::produced, cpus);
  // The first strip has padding alone, and so has the last.
  expect_buffered({.channels = 4,
                   .filters = 4,
                   .height = 2,
                   .width = 3,
                   .rows = 1,
                   .depthwise = true,
                   .taps_high = 2,
                   .low = 3,
                   .high = 4,
                   .zero = -7},
                  &BufferText::produced, cpus);
}
