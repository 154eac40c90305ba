// Motifs of quantised networks. Scales are powers of two, so that rescaled integers are exact before they are
// rounded.
#include "tests/random/motifs.h"

namespace firn::test {
namespace {

DType draw_byte(Growth& g) {
  return g.random.pick({DType::U8, DType::I8});
}

std::string zero_point(Growth& g, DType dtype) {
  auto literal = std::make_shared<Literal>(dtype, Dims{});
  literal->set_int(0, g.random.chance(0.4) ? 0
                      : dtype == DType::U8 ? g.random.between(100, 140)
                                           : g.random.between(-9, 9));
  return g.constant(literal);
}

std::string scale(Growth& g, double value) {
  return g.constant(Literal::scalar(DType::F32, value));
}

std::string bytes(Growth& g, DType dtype, const Dims& dims) {
  auto literal = std::make_shared<Literal>(dtype, dims);
  for (int64_t i = 0; i < literal->num_elements(); ++i)
    literal->set_int(i, g.random.between(dtype == DType::U8 ? 0 : -128, dtype == DType::U8 ? 255 : 127));
  return g.random.chance(0.6) ? g.constant(literal) : g.input(literal);
}

std::string a_byte_value(Growth& g, int64_t rank) {
  std::string x = g.find([&](const Literal& v) {
    return is_any(v) && (v.dtype() == DType::U8 || v.dtype() == DType::I8) &&
           static_cast<int64_t>(v.dims().size()) == rank;
  });
  if (x.empty() || g.random.chance(0.3)) x = bytes(g, draw_byte(g), g.draw_dims(rank, 1000));
  if (x.empty() || g.random.chance(0.85)) return x;
  DType other = g.dtype(x) == DType::U8 ? DType::I8 : DType::U8; // values out of range wrap
  return g.add("Cast", {x}, {attribute("to", wire_type(other))});
}

std::string quantize(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any_float(v) && v.dtype() == DType::F32; });
  if (x.empty()) return "";
  DType to = draw_byte(g);
  std::string q = g.add("QuantizeLinear", {x, scale(g, g.random.pick({0.0625, 0.03125})), zero_point(g, to)});
  return g.random.chance(0.5) ? q : g.add("DequantizeLinear", {q, scale(g, 0.0625), zero_point(g, to)});
}

std::string dequantize(Growth& g) {
  std::string x = a_byte_value(g, g.random.between(1, 4));
  if (x.empty()) return "";
  if (g.rank(x) > 1 && g.random.chance(0.4)) {
    int64_t channels = g.dims(x)[1];
    auto scales = std::make_shared<Literal>(DType::F32, Dims{channels});
    for (int64_t i = 0; i < channels; ++i) scales->set_double(i, g.random.pick({0.0625, 0.03125, 0.015625}));
    return g.add("DequantizeLinear", {x, g.constant(scales)}, {attribute("axis", 1)});
  }
  return g.add("DequantizeLinear", {x, scale(g, 0.03125), zero_point(g, g.dtype(x))});
}

std::string integer_matmul(Growth& g) {
  std::string x = a_byte_value(g, g.random.between(2, 3));
  if (x.empty()) return "";
  DType other = g.dtype(x) == DType::I8 ? DType::I8 : draw_byte(g);
  std::string w = bytes(g, other, {g.dims(x).back(), g.draw_dim()});
  if (g.random.chance(0.5))
    return g.add("MatMulInteger", {x, w, zero_point(g, g.dtype(x)), zero_point(g, other)});
  return g.add("QLinearMatMul", {x, scale(g, 0.0625), zero_point(g, g.dtype(x)), w, scale(g, 0.03125),
                                 zero_point(g, other), scale(g, 1.0), zero_point(g, g.dtype(x))});
}

std::string integer_conv(Growth& g) {
  std::string x = a_byte_value(g, 4);
  if (x.empty()) return "";
  Dims dims = g.dims(x);
  bool depthwise = g.random.chance(0.3);
  int64_t channels = depthwise ? dims[1] : g.random.pick({1, 3, 8, 17});
  Dims filter{channels, depthwise ? 1 : dims[1], g.random.pick({1, 3}), g.random.pick({1, 3})};
  if (channels * filter[1] * filter[2] * filter[3] * dims[2] * dims[3] > 500'000) return "";
  DType other = g.dtype(x) == DType::I8 ? DType::I8 : draw_byte(g);
  std::string w = bytes(g, other, filter);
  std::vector<Message> attributes{
      attribute("group", depthwise ? dims[1] : 1), attribute_ints("pads", {1, 1, 1, 1}),
      attribute_ints("strides", {g.random.between(1, 2), g.random.between(1, 2)})};
  if (g.random.chance(0.5))
    return g.add("ConvInteger", {x, w, zero_point(g, g.dtype(x)), zero_point(g, other)}, attributes);
  return g.add("QLinearConv",
               {x, scale(g, 0.0625), zero_point(g, g.dtype(x)), w, scale(g, 0.03125), zero_point(g, other),
                scale(g, 2.0), zero_point(g, g.dtype(x))},
               attributes);
}

// A convolution of `x` to `channels` that reads and writes bytes.
std::string byte_conv(Growth& g, const std::string& x, int64_t channels, int64_t window) {
  int64_t pad = g.random.between(0, window / 2), stride = g.random.pick({1, 1, 2});
  return g.add("QLinearConv",
               {x, scale(g, 0.0625), zero_point(g, g.dtype(x)),
                bytes(g, DType::I8, {channels, g.dims(x)[1], window, window}), scale(g, 0.0078125),
                zero_point(g, DType::I8), scale(g, 2.0), zero_point(g, g.dtype(x))},
               {attribute_ints("pads", {pad, pad, pad, pad}), attribute_ints("strides", {stride, stride})});
}

// Convolutions of as many channels as fill rows of tile matrices, and the ops between them in networks.
std::string byte_network(Growth& g) {
  auto channels = [&] { return g.random.pick<int64_t>({16, 32, 48, 64, 64, 64, 128}); };
  std::string x = bytes(g, draw_byte(g),
                        {g.random.between(1, 2), channels(), g.random.between(3, 8), g.random.between(3, 8)});
  std::vector<std::string> made;
  for (int64_t steps = g.random.between(2, 6); steps > 0; --steps) {
    Dims dims = g.dims(x);
    std::string next;
    switch (g.random.between(0, 7)) {
    case 0: // keeps the image's size, so that later windows still fit
      next = g.add("MaxPool", {x},
                   {attribute_ints("kernel_shape", {3, 3}), attribute_ints("pads", {1, 1, 1, 1})});
      break;
    case 1:
      next = g.add("Slice",
                   {x, g.constant_ints({dims[1] / 2}), g.constant_ints({dims[1]}), g.constant_ints({1})});
      break;
    case 2: next = g.add("Concat", {x, x}, {attribute("axis", 1)}); break;
    case 3:
      for (const std::string& other : made)
        if (g.dtype(other) == g.dtype(x) && g.dims(other)[0] == dims[0] && g.dims(other)[2] == dims[2] &&
            g.dims(other)[3] == dims[3])
          next = g.add("Concat", {other, x}, {attribute("axis", 1)});
      break;
    default: next = byte_conv(g, x, channels(), dims[2] < 3 || dims[3] < 3 ? 1 : g.random.pick({1, 1, 3}));
    }
    if (next.empty()) continue;
    made.push_back(x);
    x = next;
  }
  if (g.random.chance(0.3)) return x;
  std::string d = g.add("DequantizeLinear", {x, scale(g, 0.0625), zero_point(g, g.dtype(x))});
  return d.empty() || g.random.chance(0.5) ? d : g.add("GlobalAveragePool", {d});
}

// Rounds to 8 or 16 bits and back. Numbers are so few steps from zero that f32 holds sums of their products.
std::string rounded(Growth& g, const std::string& x, DType to) {
  if (x.empty()) return "";
  bool is_wide = bit_width(to) == 16;
  std::string step = scale(g, is_wide ? g.random.pick({0.0078125, 0.015625}) : 0.03125);
  auto literal = std::make_shared<Literal>(to, Dims{});
  literal->set_int(0, to == DType::I16 ? g.random.pick({0, 0, -77}) : g.random.pick({0, 32768, 32768, 1234}));
  std::string zero = is_wide ? g.constant(literal) : zero_point(g, to);
  return g.add("DequantizeLinear", {g.add("QuantizeLinear", {x, step, zero}), step, zero});
}

std::string integers(Growth& g, DType dtype, const Dims& dims) {
  auto literal = std::make_shared<Literal>(dtype, dims);
  int64_t values = int64_t{1} << bit_width(dtype), min = is_signed(dtype) ? -values / 2 : 0;
  // Bytes may take so few values that four bits hold them, or just not.
  if (values == 256 && g.random.chance(0.2)) values = g.random.pick({12, 16, 17});
  for (int64_t i = 0; i < literal->num_elements(); ++i)
    literal->set_int(i, min + g.random.between(0, values - 1));
  return g.constant(literal);
}

} // namespace

std::string dequantized_weights(Growth& g, const Dims& dims, int64_t axis) {
  const DType dtype = g.random.pick({DType::I8, DType::I8, DType::U8, DType::I4, DType::U4, DType::U2});
  const double step = dtype == DType::I8 || dtype == DType::U8 ? 0.0009765625 : 0.015625;
  bool is_one = g.random.chance(0.4);
  Dims of_scales = is_one ? Dims{} : Dims{dims[static_cast<size_t>(axis)]};
  auto scales = std::make_shared<Literal>(DType::F32, of_scales);
  for (int64_t i = 0; i < scales->num_elements(); ++i) scales->set_double(i, g.random.pick({step, step / 2}));
  Names inputs{integers(g, dtype, dims), g.constant(scales)};
  if (dtype == DType::U8) {
    auto zeros = std::make_shared<Literal>(dtype, of_scales);
    for (int64_t i = 0; i < zeros->num_elements(); ++i)
      zeros->set_int(i, g.random.pick({117, 127, 128, 128, 150}));
    inputs.push_back(g.constant(zeros));
  } else if (g.random.chance(0.4)) {
    inputs.push_back(integers(g, dtype, of_scales));
  }
  return g.add("DequantizeLinear", inputs,
               is_one ? std::vector<Message>{} : std::vector<Message>{attribute("axis", axis)});
}

namespace {

std::string rounded_layer(Growth& g, const std::string& x) {
  const Dims dims = g.dims(x);
  if (dims.size() == 2)
    return g.add("MatMul", {x, dequantized_weights(g, {dims[1], g.random.pick({1, 5, 16, 33, 64})}, 1)});
  int64_t window = dims[2] < 3 || dims[3] < 3 ? 1 : g.random.pick({1, 1, 3}),
          pad = g.random.between(0, window / 2), stride = g.random.pick({1, 1, 2});
  bool is_depthwise = g.random.chance(0.2);
  int64_t channels = is_depthwise ? dims[1] : g.random.pick({1, 7, 16, 40, 64});
  if (!is_depthwise && g.random.chance(0.2)) {
    int64_t size = g.random.between(1, 4), step = g.random.between(1, 3);
    std::string w = dequantized_weights(g, {dims[1], channels, size, size}, 1);
    return g.add(
        "ConvTranspose", {x, w},
        {attribute_ints("strides", {step, step}), attribute_ints("pads", {0, size / 2, 0, size / 2})});
  }
  std::string w = dequantized_weights(g, {channels, is_depthwise ? 1 : dims[1], window, window}, 0);
  return g.add("Conv", {x, w},
               {attribute("group", is_depthwise ? dims[1] : 1), attribute_ints("pads", {pad, pad, pad, pad}),
                attribute_ints("strides", {stride, stride})});
}

// Layers whose values have 8 or 16 bits between them.
std::string rounded_network(Growth& g) {
  const DType to = g.random.pick({DType::U8, DType::I8, DType::U16, DType::I16});
  Dims dims{g.random.between(1, 9), g.random.pick({3, 16, 31, 64, 130})};
  if (g.random.chance(0.6))
    dims = {g.random.between(1, 2), dims[1], g.random.between(1, 7), g.random.between(3, 8)};
  std::string x = rounded(g, g.fresh(DType::F32, dims), to);
  for (int64_t steps = g.random.between(1, 4); steps > 0 && !x.empty(); --steps) {
    std::string next;
    switch (g.random.between(0, 7)) {
    case 0: next = g.add("Relu", {x}); break;
    case 1: next = g.add("Concat", {x, x}, {attribute("axis", 1)}); break;
    case 2: next = g.add("Add", {x, x}); break;
    default: next = rounded_layer(g, x);
    }
    next = rounded(g, next, g.random.chance(0.9) ? to : DType::I16);
    if (next.empty()) break;
    x = next;
  }
  return x;
}

// Quantise, dequantise, convolve or multiply, as quantisation-aware training exports it.
std::string quantized_layer(Growth& g) {
  std::string x = g.find([](const Literal& v) {
    return v.dtype() == DType::F32 && v.dims().size() == 2 && v.num_elements() > 0;
  });
  if (x.empty()) return "";
  DType to = draw_byte(g);
  std::string step = scale(g, 0.03125), zero = zero_point(g, to);
  std::string d = g.add("DequantizeLinear", {g.add("QuantizeLinear", {x, step, zero}), step, zero});
  std::string w =
      g.add("DequantizeLinear", {bytes(g, DType::I8, {g.dims(x)[1], g.draw_dim()}), scale(g, 0.0078125)});
  return g.add(g.random.pick({"Relu", "Sigmoid", "Identity"}), {g.add("MatMul", {d, w})});
}

// [steps, columns] or [columns, steps] of integers with a scale, and maybe a zero point, for all, for each
// column or for each block of a column.
std::string narrow_weights(Growth& g, int64_t steps, int64_t columns, bool columns_first) {
  DType dtype = g.random.pick({DType::I8, DType::U8, DType::I4, DType::U4, DType::U4, DType::U2});
  Dims dims = columns_first ? Dims{columns, steps} : Dims{steps, columns}, of_scales;
  std::vector<Message> attributes;
  int64_t step_dim = columns_first ? 1 : 0, block = g.random.pick({2, 4, 8, 8, 16, 32});
  if (steps % block == 0 && g.random.chance(0.5)) {
    of_scales = dims;
    of_scales[static_cast<size_t>(step_dim)] = steps / block;
    attributes = {attribute("axis", step_dim), attribute("block_size", block)};
  } else if (g.random.chance(0.6)) {
    of_scales = {columns};
    attributes = {attribute("axis", 1 - step_dim)};
  }
  auto scales = std::make_shared<Literal>(DType::F32, of_scales);
  for (int64_t i = 0; i < scales->num_elements(); ++i)
    scales->set_double(i, g.random.pick({0.0625, 0.03125, 0.0078125}));
  Names inputs{integers(g, dtype, dims), g.constant(scales)};
  if (g.random.chance(0.5)) inputs.push_back(integers(g, dtype, of_scales));
  return g.add("DequantizeLinear", inputs, attributes);
}

// A product with narrow weights in the form of com.microsoft's operator.
std::string narrow_product(Growth& g, const std::string& x, int64_t steps, int64_t columns) {
  int64_t bits = g.random.pick({2, 4, 4, 8}), block = g.random.pick({16, 32}),
          blocks = (steps + block - 1) / block;
  auto scales = std::make_shared<Literal>(DType::F32, Dims{columns * blocks});
  for (int64_t i = 0; i < scales->num_elements(); ++i)
    scales->set_double(i, g.random.pick({0.0625, 0.03125}));
  Names inputs{x, integers(g, DType::U8, {columns, blocks, block * bits / 8}), g.constant(scales)};
  if (g.random.chance(0.5)) inputs.push_back(integers(g, DType::U8, {columns * ((blocks * bits + 7) / 8)}));
  return g.add("com.microsoft.MatMulNBits", inputs,
               {attribute("K", steps), attribute("N", columns), attribute("bits", bits),
                attribute("block_size", block)});
}

// Floats, maybe rounded to bytes, times weights that are quantised.
std::string narrow_layer(Growth& g) {
  std::string x = g.find([](const Literal& v) {
    return v.dtype() == DType::F32 && v.dims().size() == 2 && v.num_elements() > 0;
  });
  if (x.empty() || g.random.chance(0.7))
    x = g.fresh(DType::F32,
                {g.random.pick({1, 2, 4, 5, 9, 23}), g.random.pick({5, 8, 16, 24, 32, 48, 64, 96})});
  if (g.random.chance(0.4)) x = rounded(g, x, draw_byte(g));
  if (x.empty()) return "";
  int64_t steps = g.dims(x)[1], columns = g.random.pick({1, 5, 16, 33, 70});
  std::string y;
  switch (g.random.between(0, 3)) {
  case 0: y = narrow_product(g, x, steps, columns); break;
  case 1:
    y = g.add("Gemm", {x, narrow_weights(g, steps, columns, true), g.fresh(DType::F32, {columns})},
              {attribute("transB", 1)});
    break;
  case 2: y = g.add("MatMul", {x, g.add("Transpose", {narrow_weights(g, steps, columns, true)})}); break;
  default: y = g.add("MatMul", {x, narrow_weights(g, steps, columns, false)});
  }
  return y.empty() ? y : g.add(g.random.pick({"Relu", "Sigmoid", "Identity"}), {y});
}

// Floats through filters that are quantised.
std::string narrow_conv(Growth& g) {
  const int64_t window = g.random.pick({1, 1, 3}), pad = window / 2, stride = g.random.between(1, 2);
  std::string x = g.fresh(DType::F32, {g.random.between(1, 2), g.random.pick({3, 16, 24, 33}),
                                       g.random.between(3, 8), g.random.between(3, 8)});
  std::string w = dequantized_weights(g, {g.random.pick({5, 16, 40}), g.dims(x)[1], window, window}, 0);
  std::string y =
      g.add("Conv", {x, w},
            {attribute_ints("pads", {pad, pad, pad, pad}), attribute_ints("strides", {stride, stride})});
  return y.empty() ? y : g.add(g.random.pick({"Relu", "Sigmoid", "Identity"}), {y});
}

// Rows or columns of a table of integers.
std::string narrow_table(Growth& g) {
  const Dims dims{g.random.pick({5, 16, 40}), g.random.pick({3, 16, 32, 64})};
  const int64_t axis = g.random.between(0, 1), extent = dims[static_cast<size_t>(axis)];
  std::string table = g.random.chance(0.5) ? narrow_weights(g, dims[1], dims[0], true)
                                           : dequantized_weights(g, dims, g.random.between(0, 1));
  if (table.empty()) return "";
  if (g.random.chance(0.3))
    table =
        g.add("Slice", {table, g.constant_ints({1}), g.constant_ints({extent}), g.constant_ints({1 - axis})});
  auto literal = std::make_shared<Literal>(DType::I64, g.draw_dims(g.random.between(0, 2), 20));
  for (int64_t i = 0; i < literal->num_elements(); ++i) literal->set_int(i, g.random.between(-2, 1));
  return g.add("Gather", {table, g.input(literal)}, {attribute("axis", axis)});
}

std::string moved(Growth& g, const std::string& x) {
  if (x.empty()) return "";
  int64_t last = g.rank(x) - 1, dim = g.dims(x).back();
  switch (g.random.between(0, 5)) {
  case 0: return g.add("Transpose", {x});
  case 1: return g.add("Reshape", {x, g.constant_ints({-1})});
  case 2:
    return g.add("Concat", {x, g.fresh(g.dtype(x), g.dims(x), Growth::Content::Positive), x},
                 {attribute("axis", last)});
  case 3:
    return g.add("Slice", {x, g.constant_ints({dim > 1 ? 1 : 0}), g.constant_ints({dim}),
                           g.constant_ints({last}), g.constant_ints({g.random.between(1, 2)})});
  case 4: return g.add("Gather", {x, g.constant_ints({0, dim - 1, dim / 2})}, {attribute("axis", last)});
  default: return g.add("Expand", {x, g.constant_ints(Dims(static_cast<size_t>(g.rank(x)) + 1, 1))});
  }
}

// Elements of 8 bits and fewer that are read or made, moved, and maybe converted to another type.
std::string narrow_values(Growth& g) {
  DType dtype = g.random.pick({DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ,
                               DType::F8E8M0, DType::F4E2M1, DType::I4, DType::U4, DType::I2, DType::U2});
  std::string x;
  if (g.random.chance(0.6)) {
    x = g.fresh(dtype, g.draw_dims(g.random.between(1, 3), 1000), Growth::Content::Positive);
  } else {
    x = g.find([](const Literal& v) { return is_any(v) && !v.dims().empty() && v.dtype() == DType::F32; });
    if (x.empty()) return "";
    x = dtype == DType::F8E8M0 ? g.add("Cast", {g.add("Abs", {x})}, {attribute("to", wire_type(dtype))})
                               : g.add("Cast", {x}, {attribute("to", wire_type(dtype))});
  }
  for (int64_t steps = g.random.between(0, 3); steps > 0; --steps) x = moved(g, x);
  if (x.empty() || g.random.chance(0.3)) return x;
  if (dtype != DType::F8E8M0 && g.random.chance(0.5)) return g.add("DequantizeLinear", {x, scale(g, 0.25)});
  return g.add("Cast", {x},
               {attribute("to", wire_type(g.random.pick({DType::F32, DType::F16, DType::I32})))});
}

} // namespace

std::span<const Motif> quantization_motifs() {
  static constexpr Motif motifs[] = {
      {"quantize", 2, quantize},
      {"dequantize", 2, dequantize},
      {"integer_matmul", 1, integer_matmul},
      {"integer_conv", 1, integer_conv},
      {"byte_network", 1, byte_network},
      {"rounded_network", 2, rounded_network},
      {"quantized_layer", 1, quantized_layer},
      {"narrow_layer", 2, narrow_layer},
      {"narrow_conv", 1, narrow_conv},
      {"narrow_table", 1, narrow_table},
      {"narrow_values", 3, narrow_values},
  };
  return motifs;
}

} // namespace firn::test
