// Motifs of operators on signals, regions and losses, and of generators.
#include "tests/random/motifs.h"

namespace firn::test {
namespace {

std::string is_special(Growth& g) {
  std::string x = g.find(is_any_float);
  return x.empty() ? "" : g.add(g.random.pick({"IsInf", "IsNaN"}), {x});
}

std::string bits(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any(v) && v.dtype() == DType::I32; });
  if (!x.empty()) // the bits set make numbers that are far from subnormal ones
    return g.add("BitCast", {g.add("BitwiseOr", {x, g.constant_scalar(DType::I32, 0x3f800000)})},
                 {attribute("to", wire_type(DType::F32))});
  x = g.fresh(DType::F32, g.draw_dims(2));
  return g.add("BitCast", {x}, {attribute("to", wire_type(DType::I32))});
}

std::string generated(Growth& g) {
  switch (g.random.between(0, 3)) {
  case 0: {
    std::string x = g.find([](const Literal& v) { return is_any_float(v) && v.dims().size() == 2; });
    return x.empty() ? "" : g.add("EyeLike", {x}, {attribute("k", g.random.between(-2, 2))});
  }
  case 1:
    return g.add(g.random.pick({"HannWindow", "HammingWindow", "BlackmanWindow"}),
                 {g.constant_scalar(DType::I64, static_cast<double>(g.random.between(1, 40)))},
                 {attribute("periodic", g.random.between(0, 1))});
  case 2:
    return g.add("AffineGrid",
                 {g.fresh(DType::F32, {g.random.between(1, 2), 2, 3}),
                  g.constant_ints({g.random.between(1, 2), 1, g.draw_dim(), g.random.between(1, 9)})},
                 {attribute("align_corners", g.random.between(0, 1))});
  default: {
    std::string x = g.find(is_any);
    return x.empty() ? "" : g.add("Size", {x});
  }
  }
}

std::string running_product(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any_float(v) && !v.dims().empty(); });
  if (x.empty()) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1);
  if (g.dims(x)[static_cast<size_t>(axis)] > 20) return "";
  return g.add(
      "CumProd", {x, g.constant_scalar(DType::I64, static_cast<double>(axis))},
      {attribute("exclusive", g.random.between(0, 1)), attribute("reverse", g.random.between(0, 1))});
}

std::string fourier(Growth& g) {
  int64_t length = g.random.between(1, 40), parts = g.random.between(1, 2);
  std::string signal = g.fresh(DType::F32, {g.random.between(1, 3), length, parts});
  bool inverse = parts == 2 && g.random.chance(0.4);
  return g.add("DFT", {signal, Growth::kAbsent, g.constant_scalar(DType::I64, 1)},
               {attribute("inverse", inverse), attribute("onesided", parts == 1 && g.random.chance(0.5))});
}

std::string loss(Growth& g) {
  int64_t batch = g.random.pick({1, 3, 10, 21}), classes = g.random.between(2, 9);
  Dims dims{batch, classes}, targets{batch};
  if (g.random.chance(0.4)) dims.push_back(5), targets.push_back(5);
  auto labels = [&](const Dims& wanted) {
    auto literal = std::make_shared<Literal>(DType::I64, wanted);
    for (int64_t i = 0; i < literal->num_elements(); ++i)
      literal->set_int(i, g.random.between(0, classes - 1));
    return literal;
  };
  std::string scores = g.fresh(DType::F32, dims), target = g.input_in_each(targets, labels);
  bool both = g.random.chance(0.5);
  if (!both) scores = g.add("LogSoftmax", {scores}, {attribute("axis", 1)});
  Names operands{scores, target};
  if (g.random.chance(0.5))
    operands.push_back(g.constant(g.draw_literal(DType::F32, {classes}, Growth::Content::Positive)));
  std::vector<Message> attributes{attribute_text("reduction", g.random.pick({"none", "sum", "mean"}))};
  if (g.random.chance(0.3)) attributes.push_back(attribute("ignore_index", 0));
  return g.add(both ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss", operands, attributes);
}

std::string unpooled(Growth& g) {
  std::string x = g.float_of_rank(4);
  if (x.empty() || g.dims(x)[2] % 2 != 0 || g.dims(x)[3] % 2 != 0) return ""; // else positions name no place
  Names pooled = g.add_many("MaxPool", {x}, 2,
                            {attribute_ints("kernel_shape", {2, 2}), attribute_ints("strides", {2, 2})});
  return g.add("MaxUnpool", {pooled[0], pooled[1]},
               {attribute_ints("kernel_shape", {2, 2}), attribute_ints("strides", {2, 2})});
}

std::string pooled_regions(Growth& g) {
  int64_t channels = g.random.between(1, 5), height = g.random.between(3, 12),
          width = g.random.between(3, 12);
  std::string x = g.fresh(DType::F32, {2, channels, height, width});
  int64_t count = g.random.pick({1, 2, 5, 10});
  auto regions = [&](const Dims& dims) {
    auto literal = std::make_shared<Literal>(DType::F32, dims);
    for (int64_t r = 0; r < dims[0]; ++r) {
      int64_t left = g.random.between(0, width - 1), top = g.random.between(0, height - 1);
      const int64_t row[] = {g.random.between(0, 1), left, top, g.random.between(left, width - 1),
                             g.random.between(top, height - 1)};
      for (int64_t i = 0; i < 5; ++i) literal->set_double(r * 5 + i, static_cast<double>(row[i]));
    }
    return literal;
  };
  return g.add("MaxRoiPool", {x, g.input_in_each({count, 5}, regions)},
               {attribute_ints("pooled_shape", {g.random.between(1, 4), g.random.between(1, 4)})});
}

// Rows of a cache written from a place that each entry of the batch has.
std::string cache_rows(Growth& g) {
  int64_t batch = g.random.between(1, 3), rows = g.random.between(2, 9), fresh = g.random.between(1, rows);
  DType dtype = g.draw_float();
  bool circular = g.random.chance(0.4);
  std::string past = g.input(g.draw_literal(dtype, {batch, rows, 4})),
              update = g.fresh(dtype, {batch, fresh, 4});
  auto places = [&](const Dims& dims) {
    auto literal = std::make_shared<Literal>(DType::I64, dims);
    for (int64_t i = 0; i < dims[0]; ++i)
      literal->set_int(i, g.random.between(0, circular ? rows - 1 : rows - fresh));
    return literal;
  };
  std::string next = g.add("TensorScatter", {past, update, g.input_in_each({batch}, places)},
                           {attribute_text("mode", circular ? "circular" : "linear")});
  if (!next.empty() && g.random.chance(0.5)) g.make_state(past, next);
  return next;
}

std::string causal_conv(Growth& g) {
  DType dtype = DType::F32;
  int64_t batch = g.random.between(1, 2), channels = g.draw_dim(), length = g.draw_dim(),
          taps = g.random.between(2, 5);
  std::string x = g.fresh(dtype, {batch, channels, length});
  return g.add_many("CausalConvWithState",
                    {x, g.weights(dtype, {channels, 1, taps}), g.weights(dtype, {channels}),
                     g.fresh(dtype, {batch, channels, taps - 1})},
                    2, {attribute_text("activation", g.random.pick({"none", "silu"}))})[0];
}

std::string linear_attention(Growth& g) {
  int64_t batch = g.random.between(1, 2), heads = g.random.between(1, 3), width = g.random.pick({2, 4, 5, 8});
  int64_t length = g.draw_dim();
  Dims dims{batch, length, heads * width};
  if (length > 40) return "";
  return g.add_many("LinearAttention",
                    {g.fresh(DType::F32, dims), g.fresh(DType::F32, dims, Growth::Content::Weights),
                     g.fresh(DType::F32, dims)},
                    2,
                    {attribute("q_num_heads", heads), attribute("kv_num_heads", heads),
                     attribute_text("update_rule", "linear")})[0];
}

// Operators that ONNX Runtime joins.
std::string joined(Growth& g) {
  std::string x =
      g.find([](const Literal& v) { return v.dtype() == DType::F32 && is_any(v) && v.dims().size() == 3; });
  if (x.empty()) x = g.fresh(DType::F32, g.draw_dims(3));
  int64_t width = g.dims(x).back();
  std::string row = g.constant(g.draw_literal(DType::F32, {width}));
  switch (g.random.between(0, 5)) {
  case 0: return g.add("com.microsoft.BiasGelu", {x, row});
  case 1: return g.add("com.microsoft.FastGelu", {x, g.random.chance(0.5) ? row : Growth::kAbsent});
  case 2: return g.add("com.microsoft.QuickGelu", {x}, {attribute_real("alpha", 1.5f)});
  case 3:
    return g.add("com.microsoft.SkipLayerNormalization",
                 {x, g.fresh(DType::F32, g.dims(x)), row, g.random.chance(0.5) ? row : Growth::kAbsent});
  case 4:
    return g.add("com.microsoft.SkipSimplifiedLayerNormalization", {x, g.fresh(DType::F32, g.dims(x)), row});
  default: {
    bool flipped = g.random.chance(0.5);
    int64_t columns = g.draw_dim();
    return g.add("com.microsoft.FusedMatMul",
                 {x, g.weights(DType::F32, flipped ? Dims{columns, width} : Dims{width, columns})},
                 {attribute("transB", flipped), attribute_real("alpha", 0.5f)});
  }
  }
}

} // namespace

std::span<const Motif> signal_motifs() {
  static constexpr Motif motifs[] = {
      {"is_special", 1, is_special},
      {"bits", 1, bits},
      {"generated", 2, generated},
      {"running_product", 1, running_product},
      {"fourier", 1, fourier},
      {"loss", 1, loss},
      {"unpooled", 1, unpooled},
      {"pooled_regions", 1, pooled_regions},
      {"cache_rows", 2, cache_rows},
      {"causal_conv", 1, causal_conv},
      {"linear_attention", 1, linear_attention},
      {"joined", 2, joined},
  };
  return motifs;
}

} // namespace firn::test
