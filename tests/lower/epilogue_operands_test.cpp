// Operands of what follows a contraction or a pooling, in shapes that broadcast to the result and by way of
// movements, for every family of kernels: no kernel reads outside of them, nor outside of its own operands,
// though the last vector of channels or positions is a part of one, and all results are right. Shapes,
// operands and settings are drawn; the hidden test case draws more of them.
#include "tests/codegen/model_object.h"
#include "tests/lower/epilogue_text.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

using Dims = std::vector<int64_t>;
using Random = std::mt19937;

// A module that was drawn, with the ranges of its inputs.
struct Drawn {
  std::string text;
  std::map<std::string, Range> ranges;
  double tolerance = 2e-5;
};

int64_t pick(Random& random, std::initializer_list<int64_t> values) {
  return values.begin()[random() % values.size()];
}
int64_t pick_channels(Random& random) {
  return pick(random, {1, 3, 5, 7, 13, 17, 24, 33});
}
int64_t pick_extent(Random& random) {
  return pick(random, {1, 2, 3, 5, 6, 9, 14, 17});
}

// A window over some spatial dims, drawn so that something is left of each.
struct Window {
  Dims in, taps, out;
  std::string text;
};
Window draw_window(Random& random, size_t rank, int64_t max_taps = 5, bool strided = true,
                   bool dilated = true) {
  Window w;
  std::string size, pad, stride, dilate;
  for (size_t d = 0; d < rank; ++d) {
    int64_t k = 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(max_taps)),
            low = static_cast<int64_t>(random() % 3), high = static_cast<int64_t>(random() % 3),
            s = strided && random() % 3 == 0 ? 2 : 1, dilation = dilated && random() % 5 == 0 ? 2 : 1,
            covered = (k - 1) * dilation + 1,
            in = std::max(pick_extent(random), std::max<int64_t>(covered - low - high, 1));
    w.in.push_back(in), w.taps.push_back(k), w.out.push_back((in + low + high - covered) / s + 1);
    std::string between = d ? "x" : "";
    size += between + std::to_string(k);
    pad += between + std::to_string(low) + "_" + std::to_string(high);
    stride += between + std::to_string(s), dilate += between + std::to_string(dilation);
  }
  w.text = size + " pad " + pad + " stride " + stride + " dilate " + dilate;
  return w;
}

Dims tensor(int64_t batch, int64_t channels, const Dims& spatial) {
  Dims dims = {batch, channels};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return dims;
}

// One fusion between a copy to the layout that it reads and one back.
struct Single {
  std::string dtype = "f32", kind = "contraction";
  Dims in, filter, out; // no filter: none is read
  bool blocked_in = true, blocked_out = true;
  bool constant_filter = false;
  std::string op; // makes %c of %p and %qi
};

Drawn draw_single(Random& random, const Machine& target, const Single& c) {
  auto type = [&](const Dims& dims, bool blocked) {
    return blocked ? blocked_type(c.dtype, dims, target) : plain_type(c.dtype, dims);
  };
  std::string in = type(c.in, c.blocked_in), out = type(c.out, c.blocked_out),
              plain_in = plain_type(c.dtype, c.in), plain_out = plain_type(c.dtype, c.out);
  Epilogue epilogue("o", c.dtype, c.out, out);
  std::string filter = plain_type(c.dtype, c.filter), constant;
  if (!c.filter.empty()) epilogue.read("q", filter);
  epilogue.add_random(random, 4);
  std::string parameters = epilogue.parameters();
  if (c.constant_filter) {
    int64_t count = 1;
    for (int64_t dim : c.filter) count *= dim;
    constant = " %q = " + random_constant(count, 7) + " : " + filter;
    parameters.erase(0, (", %q: " + filter).size());
  }
  return {"module @m { func @main(%x: " + plain_in + parameters + ") -> (" + plain_out + ") {" + constant +
              " %n = negate %x : " + plain_in + " %b = copy %n : " + in +
              epilogue.fusion("f", "%b", in, c.kind, c.op) + " %r = copy %f : " + plain_out +
              " return %r } }",
          epilogue.ranges(), c.dtype == "f32" ? 2e-5 : 2e-2};
}

Single convolution(Random& random, const Window& w, int64_t in, int64_t filters, int64_t groups) {
  Single c;
  c.dtype = random() % 4 == 0 ? "f16" : "f32";
  int64_t batch = pick(random, {1, 1, 2});
  c.in = tensor(batch, in, w.in), c.out = tensor(batch, filters, w.out);
  c.filter = tensor(filters, in / groups, w.taps);
  c.op = "%c = convolution %p, %qi {window = " + w.text + ", groups = " + std::to_string(groups) + "}";
  return c;
}

Drawn draw_pooling(Random& random, const Machine& target) {
  Window w = draw_window(random, pick(random, {1, 2, 2, 3}));
  Single c;
  c.kind = "window", c.dtype = random() % 4 == 0 ? "f16" : "f32";
  int64_t batch = pick(random, {1, 2}), channels = pick_channels(random);
  c.in = tensor(batch, channels, w.in), c.out = tensor(batch, channels, w.out);
  bool adds = random() % 2;
  std::string one = c.dtype + "[]", text = w.text;
  // The window has batch and channels, too.
  for (auto [word, unit] : {std::pair{" pad ", "0_0x0_0x"}, {" stride ", "1x1x"}, {" dilate ", "1x1x"}})
    text.insert(text.find(word) + std::string(word).size(), unit);
  c.op = std::string("%z = constant [") + (adds ? "0.0" : "-inf") + "] : " + one +
         " %c = reduce_window %p, %z {window = 1x1x" + text + "} region (%l: " + one + ", %m: " + one +
         ") { %t = " + (adds ? "add" : "maximum") + " %l, %m : " + one + " return %t }";
  return draw_single(random, target, c);
}

Drawn draw_direct(Random& random, const Machine& target) {
  Window w = draw_window(random, pick(random, {1, 2, 2, 3}));
  return draw_single(random, target, convolution(random, w, pick_channels(random), pick_channels(random), 1));
}

Drawn draw_pointwise(Random& random, const Machine& target) {
  Window w;
  size_t rank = 1 + random() % 3;
  for (size_t d = 0; d < rank; ++d) {
    w.in.push_back(pick_extent(random));
    w.taps.push_back(1);
    w.text += d ? "x1" : "1";
  }
  w.out = w.in;
  return draw_single(random, target, convolution(random, w, pick_channels(random), pick_channels(random), 1));
}

// Kernels for planes take lines of some length only.
Drawn draw_planes(Random& random, const Machine& target) {
  int64_t width = pick(random, {18, 21, 33, 40}), height = pick(random, {1, 5, 9});
  Window w = random() % 2 ? Window{{height, width}, {3, 3}, {height, width}, "3x3 pad 1_1x1_1"}
                          : Window{{width}, {5}, {width - 1}, "5 pad 0_3"};
  Single c = convolution(random, w, pick(random, {1, 3, 8, 17}), pick(random, {1, 2, 3}), 1);
  c.dtype = "f32";
  c.blocked_out = false, c.blocked_in = random() % 2;
  return draw_single(random, target, c);
}

Drawn draw_depthwise(Random& random, const Machine& target) {
  Window w = draw_window(random, pick(random, {1, 2, 2, 3}));
  int64_t channels = pick(random, {3, 5, 7, 13, 17, 24, 33});
  return draw_single(random, target, convolution(random, w, channels, channels, channels));
}

Drawn draw_narrow_groups(Random& random, const Machine& target) {
  Window w = draw_window(random, pick(random, {1, 2, 2}), 3);
  int64_t group = pick(random, {2, 4, 8});
  while (group >= target.cpu.channel_block()) group /= 2;
  int64_t groups = pick(random, {3, 5, 9}), channels = groups * group;
  return draw_single(random, target, convolution(random, w, channels, channels, groups));
}

Drawn draw_wide_groups(Random& random, const Machine& target) {
  Window w = draw_window(random, 2, 3);
  int64_t groups = pick(random, {2, 3});
  return draw_single(
      random, target,
      convolution(random, w, groups * pick(random, {3, 5, 16}), groups * pick(random, {3, 5, 16}), groups));
}

Drawn draw_winograd(Random& random, const Machine& target) {
  int64_t extent = pick(random, {13, 16, 19});
  Window w{{extent, extent + 1}, {3, 3}, {extent, extent + 1}, "3x3 pad 1_1x1_1"};
  Single c = convolution(random, w, pick(random, {33, 40}), pick(random, {33, 40, 49}), 1);
  c.dtype = "f32", c.constant_filter = true;
  Drawn drawn = draw_single(random, target, c);
  drawn.tolerance = 1e-4;
  return drawn;
}

// Transposed convolutions by phases, each of which stores its own positions.
Drawn draw_transposed(Random& random, const Machine& target) {
  int64_t height = pick(random, {2, 3, 5}), width = pick(random, {3, 6, 9}), taps = pick(random, {2, 3, 4}),
          pad = random() % 2 ? taps - 1 : taps / 2;
  auto out = [&](int64_t in) { return (in - 1) * 2 + 1 + 2 * pad - taps + 1; };
  std::string t = std::to_string(taps), p = std::to_string(pad) + "_" + std::to_string(pad);
  Window w{{height, width},
           {taps, taps},
           {out(height), out(width)},
           t + "x" + t + " pad " + p + "x" + p + " input_dilate 2x2"};
  Single c = convolution(random, w, pick_channels(random), pick(random, {16, 32}), 1);
  c.constant_filter = true;
  return draw_single(random, target, c);
}

Drawn draw_dot(Random& random, const Machine& target, int64_t rows, int64_t columns, Dims batch = {}) {
  int64_t depth = pick(random, {1, 5, 24, 40});
  Single c;
  c.dtype = random() % 4 == 0 ? "f16" : "f32";
  c.blocked_in = c.blocked_out = false;
  c.constant_filter = batch.empty() && random() % 2;
  c.in = c.filter = c.out = batch;
  c.in.insert(c.in.end(), {rows, depth});
  c.filter.insert(c.filter.end(), {depth, columns});
  c.out.insert(c.out.end(), {rows, columns});
  std::string shared = batch.empty() ? "" : "0", lhs = std::to_string(batch.size() + 1),
              rhs = std::to_string(batch.size());
  c.op = "%c = dot %p, %qi {lhs_batch = [" + shared + "], rhs_batch = [" + shared + "], lhs_contract = [" +
         lhs + "], rhs_contract = [" + rhs + "]}";
  return draw_single(random, target, c);
}

Drawn draw_row(Random& random, const Machine& target) {
  return draw_dot(random, target, 1, pick(random, {1, 3, 17, 33, 70}));
}
Drawn draw_column(Random& random, const Machine& target) {
  return draw_dot(random, target, pick(random, {3, 17, 33, 70}), 1);
}
Drawn draw_matrix(Random& random, const Machine& target) {
  return draw_dot(random, target, pick(random, {2, 5, 7, 19}), pick_channels(random));
}
Drawn draw_matrices(Random& random, const Machine& target) {
  return draw_dot(random, target, pick(random, {1, 2, 7}), pick_channels(random), {3});
}

// [expand,] depthwise [, project], operands behind each.
Drawn draw_strips(Random& random, const Machine& target) {
  int64_t stride = pick(random, {1, 2}), height = pick(random, {5, 9, 13}), width = pick(random, {16, 19}),
          after_height = (height + 1) / 2, after_width = (width + 1) / 2, batch = pick(random, {1, 2});
  if (stride == 1) after_height = height, after_width = width;
  int64_t parts = pick(random, {1, 2, 3}), // bits: expand, project
      wide = pick(random, {7, 24, 33, 40}), first = parts & 1 ? pick_channels(random) : wide,
          last = parts & 2 ? pick_channels(random) : wide;
  std::string outer, region, chain, value = "%x0", value_type, s = std::to_string(stride);
  std::map<std::string, Range> ranges;
  Dims in = {batch, first, height, width}, result = {batch, last, after_height, after_width};
  value_type = blocked_type("f32", in, target);
  auto add = [&](const std::string& name, const Dims& dims, const Dims& filter,
                 const std::string& attributes) {
    std::string type = blocked_type("f32", dims, target);
    Epilogue epilogue(name + "o", "f32", dims, type);
    epilogue.read(name + "q", plain_type("f32", filter));
    epilogue.add_random(random, 2);
    outer += epilogue.parameters(), region += epilogue.parameters("s");
    chain += epilogue.fusion(name, value, value_type, "contraction",
                             "%c = convolution %p, %" + name + "qi {" + attributes + "}", "s");
    for (const auto& range : epilogue.ranges()) ranges.insert(range);
    value = "%" + name, value_type = type;
    return epilogue.arguments();
  };
  std::string arguments;
  if (parts & 1)
    arguments += add("e", {batch, wide, height, width}, {wide, first, 1, 1}, "window = 1x1, groups = 1");
  arguments += add("d", {batch, wide, after_height, after_width}, {wide, 1, 3, 3},
                   "window = 3x3 pad 1_1x1_1 stride " + s + "x" + s + ", groups = " + std::to_string(wide));
  if (parts & 2) arguments += add("p", result, {last, wide, 1, 1}, "window = 1x1, groups = 1");
  std::string x = plain_type("f32", in), r = plain_type("f32", result),
              blocks = blocked_type("f32", in, target);
  return {"module @m { func @main(%x: " + x + outer + ") -> (" + r + ") { %b = copy %x : " + blocks +
              " %f = fusion %b" + arguments + " {kind = depthwise_chain, rows = " +
              std::to_string(pick(random, {1, 3, 4})) + "} region (%x0: " + blocks + region + ") {" + chain +
              " return " + value + " } : " + value_type + " %r = copy %f : " + r + " return %r } }",
          ranges, 2e-5};
}

struct Family {
  const char* algorithm; // part of the name of kernels in it
  Drawn (*draw)(Random&, const Machine&);
};
constexpr Family kFamilies[] = {
    {"pooling", draw_pooling},     {"direct", draw_direct},
    {"1 direct", draw_pointwise},  {"planes", draw_planes},
    {"depthwise", draw_depthwise}, {"groups of", draw_narrow_groups},
    {"direct", draw_wide_groups},  {"winograd", draw_winograd},
    {"direct", draw_transposed},   {"dot", draw_row},
    {"dot", draw_column},          {"dot", draw_matrix},
    {"dot", draw_matrices},        {"depthwise_chain rows", draw_strips},
};

// Vectors of 4, 8 and 16 lanes, as far as they run here.
std::vector<std::string> cpus_of_all_widths() {
  std::vector<std::string> cpus;
  for (const std::string& cpu : runnable_cpus())
    if (cpu == "x86-64" || cpu == "x86-64-v3" || cpu == "x86-64-v4" || cpu == "sapphirerapids")
      cpus.push_back(cpu);
  return cpus.empty() ? std::vector<std::string>{"native"} : cpus;
}

bool is_in_family(const std::string& text, const std::string& cpu, const char* algorithm) {
  for (const auto& kernel : lower_text(text, cpu).kernels)
    if (kernel->algorithm.find(algorithm) != std::string::npos) return true;
  return false;
}

// Draws number `from` to `to` of every family, each for one CPU.
void expect_inside(unsigned from, unsigned to) {
  std::vector<std::string> cpus = cpus_of_all_widths();
  for (const Family& family : kFamilies) {
    int found = 0;
    for (unsigned number = from; number < to; ++number) {
      Random random(number * 1000 + static_cast<unsigned>(&family - kFamilies));
      const std::string& cpu = cpus[number % cpus.size()];
      Drawn drawn = family.draw(random, target_of("", cpu));
      INFO("family " << &family - kFamilies << " (" << family.algorithm << "), draw " << number);
      INFO(drawn.text);
      found += is_in_family(drawn.text, cpu, family.algorithm);
      LoweredOptions options{.tolerance = drawn.tolerance, .ranges = drawn.ranges, .cpus = {cpu}};
      options.placement = number / cpus.size() % 2 ? Placement::AtStart : Placement::AtEnd;
      options.optimize_size = random() % 6 == 0;
      if (random() % 6 == 0) options.math = firn::Math::Strict;
      expect_lowered_module(drawn.text, options);
    }
    INFO("family " << &family - kFamilies << " (" << family.algorithm << ")");
    CHECK(found > 0);
  }
}

} // namespace

TEST_CASE("every broadcast and every movement behind a depthwise convolution with a broken block",
          "[lower][guard]") {
  for (const std::string& cpu : cpus_of_all_widths())
    for (bool moves : {false, true}) {
      Machine target = target_of("", cpu);
      Dims in = {2, 13, 3, 5};
      std::string type = blocked_type("f32", in, target), plain = plain_type("f32", in);
      Epilogue epilogue("o", "f32", in, type);
      epilogue.read("q", "f32[13,1,3,3]");
      for (int kept = 0; kept < 16 && !moves; ++kept)
        epilogue.add(Movement::None, kept, 0, kept % 3 ? "f32" : kept % 2 ? "i8" : "f16");
      for (int dim = 0; dim < 4 && moves; ++dim)
        for (int movement = 1; movement < kMovements; ++movement)
          epilogue.add(static_cast<Movement>(movement), movement % 2 ? 1 << dim : 15, dim, "f32");
      expect_lowered_module("module @m { func @main(%x: " + plain + epilogue.parameters() + ") -> (" + plain +
                                ") { %n = negate %x : " + plain + " %b = copy %n : " + type +
                                epilogue.fusion("f", "%b", type, "contraction",
                                                "%c = convolution %p, %qi {window = 3x3 pad 1_1x1_1, groups "
                                                "= 13}") +
                                " %r = copy %f : " + plain + " return %r } }",
                            {.tolerance = 2e-5, .ranges = epilogue.ranges(), .cpus = {cpu}});
    }
}

TEST_CASE("operands of epilogues are read inside their memory", "[lower][guard]") {
  expect_inside(0, 6);
}

TEST_CASE("more operands of epilogues", "[.][more-epilogues]") {
  expect_inside(6, 200);
}
