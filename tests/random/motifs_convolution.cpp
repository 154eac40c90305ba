// Motifs of convolutions of one to three dims, and of what stands around them in networks.
#include "tests/random/motifs.h"

#include <algorithm>

namespace firn::test {
namespace {

std::string image(Growth& g, int64_t spatial) {
  if (g.random.chance(0.25)) {
    bool large = g.max_elements() > 2048;
    int64_t side = spatial == 1 ? 65 : spatial == 2 ? (large ? 40 : 17) : (large ? 12 : 6);
    Dims dims{g.random.pick({1, 1, 1, 2}),
              g.random.pick({1, 3, 4, 5, 8, 11, 16, 17, 24, 32, 33, large ? 64 : 9})};
    for (int64_t i = 0; i < spatial; ++i) dims.push_back(g.random.between(large ? side / 3 : 1, side));
    return g.input(g.draw_literal(g.draw_float(), dims));
  }
  return g.float_of_rank(spatial + 2);
}

// A convolution of `x` to `channels` in `groups`, with or without bias; "" if the window does not fit.
std::string convolve(Growth& g, const std::string& x, int64_t channels, int64_t groups, int64_t window) {
  if (x.empty()) return "";
  const Dims& dims = g.dims(x);
  auto spatial = dims.size() - 2;
  Dims filter{channels, dims[1] / groups}, strides, dilations, pads(2 * spatial);
  int64_t work = channels * dims[1] / groups;
  for (size_t i = 0; i < spatial; ++i) {
    filter.push_back(g.random.chance(0.8) ? window : g.random.between(1, 4));
    strides.push_back(g.random.pick({1, 1, 1, 2, 3}));
    dilations.push_back(g.random.pick({1, 1, 1, 1, 2}));
    int64_t reach = (filter.back() - 1) * dilations.back();
    pads[i] = g.random.chance(0.6) ? reach / 2 : g.random.between(0, reach);
    pads[spatial + i] = g.random.chance(0.6) ? reach / 2 : g.random.between(0, reach);
    if (dims[2 + i] + pads[i] + pads[spatial + i] < reach + 1) return "";
    work *= filter.back() * dims[2 + i];
  }
  if (work * dims[0] > 2000 * g.max_elements()) return "";
  Names operands{x, g.weights(g.dtype(x), filter)};
  if (g.random.chance(0.6)) operands.push_back(g.weights(g.dtype(x), {channels}));
  return g.add("Conv", operands,
               {attribute_ints("strides", strides), attribute_ints("dilations", dilations),
                attribute_ints("pads", pads), attribute("group", groups)});
}

int64_t draw_channels(Growth& g) {
  return g.random.pick({1, 2, 3, 5, 7, 8, 11, 13, 16, 17, 24, 31, 32, 33, 48, 64});
}

std::string conv(Growth& g) {
  std::string x = image(g, g.random.pick({1, 2, 2, 2, 3}));
  return convolve(g, x, draw_channels(g), 1, g.random.pick({1, 1, 3, 3, 3, 5, 7, 2}));
}

std::string grouped_conv(Growth& g) {
  std::string x = image(g, g.random.pick({1, 2, 2, 3}));
  if (x.empty()) return "";
  int64_t channels = g.dims(x)[1];
  for (int64_t groups : {g.random.pick({2, 3, 4}), g.random.pick({2, 3, 5})})
    if (channels % groups == 0)
      return convolve(g, x, groups * g.random.between(1, 9), groups, g.random.pick({1, 3, 3, 5}));
  return "";
}

std::string depthwise(Growth& g) {
  std::string x = image(g, g.random.pick({1, 2, 2, 2, 3}));
  if (x.empty()) return "";
  int64_t channels = g.dims(x)[1];
  return convolve(g, x, channels * g.random.pick({1, 1, 1, 2}), channels, g.random.pick({3, 3, 5, 7, 2}));
}

std::string transposed_conv(Growth& g) {
  std::string x = image(g, g.random.pick({1, 2, 2, 3}));
  if (x.empty()) return "";
  const Dims& dims = g.dims(x);
  int64_t groups = dims[1] % 2 == 0 && g.random.chance(0.2) ? 2 : g.random.chance(0.1) ? dims[1] : 1;
  Dims filter{dims[1], g.random.pick({1, 2, 3, 5, 8, 16})}, strides, dilations, pads;
  int64_t work = filter[0] * filter[1];
  for (size_t i = 2; i < dims.size(); ++i) {
    filter.push_back(g.random.between(1, 5));
    strides.push_back(g.random.pick({1, 2, 2, 3}));
    dilations.push_back(g.random.pick({1, 1, 1, 2}));
    pads.push_back(g.random.between(0, (filter.back() - 1) / 2));
    work *= filter.back() * dims[i];
    if ((dims[i] - 1) * strides.back() + (filter.back() - 1) * dilations.back() + 1 - 2 * pads.back() < 1)
      return "";
  }
  if (work > 500 * g.max_elements()) return "";
  Dims both = pads;
  both.insert(both.end(), pads.begin(), pads.end());
  Names operands{x, g.weights(g.dtype(x), filter)};
  if (g.random.chance(0.5)) operands.push_back(g.weights(g.dtype(x), {filter[1] * groups}));
  return g.add("ConvTranspose", operands,
               {attribute_ints("strides", strides), attribute_ints("dilations", dilations),
                attribute_ints("pads", both), attribute("group", groups)});
}

// An image that is longer along one of its dims than along the other, and a window that is long along that,
// with padding at both ends.
struct LongWindow {
  Dims image, window, strides, dilations, pads;
};

LongWindow draw_long_window(Growth& g) {
  int64_t spatial = g.random.pick({1, 1, 2}), along = g.random.between(0, spatial - 1);
  LongWindow w;
  w.image = {g.random.pick({1, 1, 2}), g.random.pick({1, 2, 4, 6, 8, 16, 17, 24})};
  w.pads.resize(static_cast<size_t>(2 * spatial));
  for (int64_t i = 0; i < spatial; ++i) {
    bool is_long = i == along;
    w.window.push_back(is_long ? g.random.pick({17, 18, 24, 31, 32, 33, 64, 100, 255, 300})
                               : g.random.between(1, 3));
    w.image.push_back(is_long ? g.random.between(1, 80) : g.random.between(1, 5));
    w.strides.push_back(is_long ? g.random.pick({1, 1, 1, 2, 3, 7}) : 1);
    w.dilations.push_back(is_long ? g.random.pick({1, 1, 1, 2}) : 1);
    int64_t reach = (w.window.back() - 1) * w.dilations.back();
    for (int64_t side : {i, spatial + i})
      w.pads[static_cast<size_t>(side)] = g.random.chance(0.6) ? reach / 2 : g.random.between(0, reach);
  }
  return w;
}

std::string long_window(Growth& g) {
  LongWindow w = draw_long_window(g);
  const char* op = g.random.pick(
      {"Conv", "Conv", "Conv", "Conv", "ConvInteger", "ConvTranspose", "MaxPool", "AveragePool"});
  std::string kind = op;
  bool is_pool = kind == "MaxPool" || kind == "AveragePool", is_integer = kind == "ConvInteger";
  int64_t channels = w.image[1], groups = g.random.pick({int64_t{1}, int64_t{1}, channels, int64_t{2}});
  if (channels % groups != 0) groups = 1;
  for (size_t i = 0; i < w.window.size(); ++i) {
    // No window of a pooling may be all padding.
    if (is_pool)
      for (size_t side : {i, w.window.size() + i}) w.pads[side] = std::min(w.pads[side], w.window[i] / 2);
    if (is_pool) w.dilations[i] = 1;
    int64_t reach = (w.window[i] - 1) * w.dilations[i],
            room = w.image[2 + i] + w.pads[i] + w.pads[w.window.size() + i];
    if (room < reach + 1 && kind != "ConvTranspose") return "";
  }
  std::vector<Message> attributes{attribute_ints("strides", w.strides), attribute_ints("pads", w.pads)};
  std::string x = g.input(g.draw_literal(is_integer ? DType::U8 : g.draw_float(), w.image));
  if (is_pool) {
    attributes.push_back(attribute_ints("kernel_shape", w.window));
    return g.add(kind, {x}, attributes);
  }
  attributes.push_back(attribute_ints("dilations", w.dilations));
  attributes.push_back(attribute("group", groups));
  int64_t filters = groups * g.random.pick({1, 1, 2, 5, 16, 33});
  Dims filter{filters, channels / groups};
  if (kind == "ConvTranspose") filter = {channels, filters / groups};
  filter.insert(filter.end(), w.window.begin(), w.window.end());
  int64_t work = 1;
  for (int64_t extent : filter) work *= extent;
  for (size_t i = 2; i < w.image.size(); ++i) work *= w.image[i];
  if (work > 2000 * g.max_elements()) return "";
  return g.add(kind, {x, g.weights(is_integer ? DType::I8 : g.dtype(x), filter)}, attributes);
}

std::string activation(Growth& g, const std::string& x) {
  if (x.empty() || g.random.chance(0.2)) return x;
  if (g.random.chance(0.25)) return g.add("Mul", {x, g.add("Sigmoid", {x})});
  if (g.random.chance(0.2))
    return g.add("Clip", {x, g.constant_scalar(g.dtype(x), 0), g.constant_scalar(g.dtype(x), 6)});
  return g.add(g.random.pick({"Relu", "HardSwish", "LeakyRelu", "Tanh", "Sigmoid"}), {x});
}

std::string batch_norm(Growth& g, const std::string& x) {
  if (x.empty()) return "";
  Dims c{g.dims(x)[1]};
  DType dtype = g.dtype(x);
  return g.add("BatchNormalization", {x, g.weights(dtype, c), g.weights(dtype, c), g.weights(dtype, c),
                                      g.constant(g.draw_literal(dtype, c, Growth::Content::Positive))});
}

// Convolution, norm, activation and a sum, in the orders of residual networks.
std::string residual_block(Growth& g) {
  std::string x = image(g, 2);
  if (x.empty()) return "";
  std::string h = convolve(g, x, draw_channels(g), 1, g.random.pick({1, 3}));
  if (g.random.chance(0.5)) h = batch_norm(g, h);
  h = activation(g, h);
  if (h.empty()) return "";
  // This convolution keeps the dims, so that both can be added.
  std::string w = g.weights(g.dtype(h), {g.dims(h)[1], g.dims(h)[1], 3, 3});
  if (g.dims(h)[1] * g.literal(h).num_elements() > 200 * g.max_elements()) return "";
  std::string back = g.add("Conv", {h, w}, {attribute_ints("pads", {1, 1, 1, 1})});
  return activation(g,
                    g.add("Add", {back, g.random.chance(0.7) ? h : g.broadcastable(g.dtype(h), g.dims(h))}));
}

// Expand, depthwise, squeeze and excite, project.
std::string inverted_block(Growth& g) {
  std::string x = image(g, 2);
  if (x.empty()) return "";
  std::string h = activation(g, convolve(g, x, draw_channels(g), 1, 1));
  if (h.empty()) return "";
  h = activation(g, convolve(g, h, g.dims(h)[1], g.dims(h)[1], g.random.pick({3, 5})));
  if (h.empty()) return "";
  if (g.random.chance(0.5)) {
    int64_t channels = g.dims(h)[1];
    std::string pooled = g.random.chance(0.5) ? g.add("GlobalAveragePool", {h})
                                              : g.add("ReduceMean", {h, g.constant_ints({2, 3})});
    std::string s = activation(g, convolve(g, pooled, 4, 1, 1));
    s = convolve(g, s, channels, 1, 1);
    if (s.empty() || g.dims(s)[2] != 1 || g.dims(s)[3] != 1) return "";
    h = g.add("Mul", {h, g.add(g.random.pick({"Sigmoid", "HardSigmoid"}), {s})});
  }
  return convolve(g, h, g.dims(x)[1], 1, 1);
}

// A convolution whose result meets an operand of any broadcast shape.
std::string conv_with_operand(Growth& g) {
  std::string h = g.random.chance(0.5) ? depthwise(g) : g.random.chance(0.5) ? conv(g) : grouped_conv(g);
  if (h.empty()) return "";
  std::string y = g.broadcastable(g.dtype(h), g.dims(h));
  if (g.random.chance(0.3)) return g.add("Where", {g.broadcastable(DType::Bool, g.dims(h)), h, y});
  h = g.add(g.random.pick({"Add", "Mul", "Sub", "Max"}), {h, y});
  return activation(g, h);
}

// Several convolutions of one image side by side, as in inception blocks.
std::string branches(Growth& g) {
  std::string x = image(g, 2);
  if (x.empty()) return "";
  Names parts;
  for (int64_t i = g.random.between(2, 4); i > 0; --i) {
    int64_t window = g.random.pick({1, 3}), channels = g.random.pick({1, 3, 8, 16, 17});
    if (channels * g.dims(x)[1] * g.literal(x).num_elements() > 2000 * g.max_elements()) return "";
    std::string w = g.weights(g.dtype(x), {channels, g.dims(x)[1], window, window});
    parts.push_back(activation(g, g.add("Conv", {x, w}, {attribute_ints("pads", Dims(4, window / 2))})));
  }
  if (g.random.chance(0.4)) parts.push_back(x);
  std::string joined = g.add("Concat", parts, {attribute("axis", 1)});
  if (joined.empty() || g.random.chance(0.4)) return joined;
  return convolve(g, joined, draw_channels(g), 1, 1);
}

// Half of the channels is convolved, then channels are shuffled.
std::string shuffle(Growth& g) {
  std::string x = image(g, 2);
  if (x.empty() || g.dims(x)[1] % 2 != 0) return "";
  Dims d = g.dims(x);
  int64_t half = d[1] / 2;
  Names halves = g.add_many("Split", {x}, 2, {attribute("axis", 1), attribute("num_outputs", 2)});
  if (halves[0].empty()) return "";
  std::string w = g.weights(g.dtype(x), {half, 1, 3, 3});
  std::string h =
      g.add("Conv", {halves[1], w}, {attribute_ints("pads", {1, 1, 1, 1}), attribute("group", half)});
  h = activation(g, g.add("Conv", {h, g.weights(g.dtype(x), {half, half, 1, 1})}));
  std::string joined = g.add("Concat", {halves[0], h}, {attribute("axis", 1)});
  joined = g.add("Reshape", {joined, g.reshape_target({d[0], 2, half, d[2], d[3]})});
  joined = g.add("Transpose", {joined}, {attribute_ints("perm", {0, 2, 1, 3, 4})});
  return g.add("Reshape", {joined, g.reshape_target(d)});
}

} // namespace

std::span<const Motif> convolution_motifs() {
  static constexpr Motif motifs[] = {
      {"conv", 5, conv},
      {"grouped_conv", 2, grouped_conv},
      {"depthwise", 3, depthwise},
      {"transposed_conv", 2, transposed_conv},
      {"long_window", 2, long_window},
      {"residual_block", 2, residual_block},
      {"inverted_block", 2, inverted_block},
      {"conv_with_operand", 4, conv_with_operand},
      {"branches", 2, branches},
      {"shuffle", 1, shuffle},
  };
  return motifs;
}

} // namespace firn::test
