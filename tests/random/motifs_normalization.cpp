// Motifs of norms, as one node and spelled out.
#include "tests/random/motifs.h"

namespace firn::test {
namespace {

bool float_with_axes(const Literal& v) {
  return is_any_float(v) && !v.dims().empty();
}

std::string layer_norm(Growth& g) {
  std::string x = g.find(float_with_axes);
  if (x.empty()) return "";
  int64_t axis = g.random.chance(0.7) ? g.rank(x) - 1 : g.random.between(0, g.rank(x) - 1);
  Dims dims(g.dims(x).begin() + axis, g.dims(x).end());
  if (g.random.chance(0.4))
    return g.add("RMSNormalization", {x, g.weights(g.dtype(x), dims)}, {attribute("axis", axis)});
  Names operands{x, g.weights(g.dtype(x), dims)};
  if (g.random.chance(0.7)) operands.push_back(g.weights(g.dtype(x), dims));
  return g.add("LayerNormalization", operands, {attribute("axis", axis), attribute_real("epsilon", 1e-3f)});
}

// A norm behind a product, whose kernel may normalise rows while they are in cache.
std::string product_and_norm(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any_float(v) && v.dims().size() > 1; });
  if (x.empty()) return "";
  int64_t n = g.random.chance(0.5) ? g.dims(x).back() : g.draw_dim();
  DType dtype = g.dtype(x);
  std::string h = g.add("MatMul", {x, g.weights(dtype, {g.dims(x).back(), n})});
  if (h.empty()) return "";
  if (g.random.chance(0.6)) h = g.add("Add", {h, g.broadcastable(dtype, g.dims(h))});
  if (h.empty() || g.dims(h).back() != n) return "";
  return g.add("LayerNormalization", {h, g.weights(dtype, {n}), g.weights(dtype, {n})},
               {attribute("axis", -1)});
}

std::string channel_norm(Growth& g) {
  std::string x = g.float_of_rank(g.random.pick({3, 4, 4, 5}));
  if (x.empty()) return "";
  DType dtype = g.dtype(x);
  int64_t channels = g.dims(x)[1];
  switch (g.random.between(0, 2)) {
  case 0:
    return g.add("InstanceNormalization", {x, g.weights(dtype, {channels}), g.weights(dtype, {channels})});
  case 1: {
    int64_t groups = channels % 2 == 0   ? 2
                     : channels % 3 == 0 ? 3
                                         : g.random.pick<int64_t>(Dims{1, channels});
    return g.add("GroupNormalization", {x, g.weights(dtype, {channels}), g.weights(dtype, {channels})},
                 {attribute("num_groups", groups)});
  }
  default:
    return g.add("BatchNormalization",
                 {x, g.weights(dtype, {channels}), g.weights(dtype, {channels}), g.weights(dtype, {channels}),
                  g.fresh(dtype, {channels}, Growth::Content::Positive)});
  }
}

// Mean and variance written out, as older exporters do.
std::string spelled_norm(Growth& g) {
  std::string x = g.find(float_with_axes);
  if (x.empty()) return "";
  DType dtype = g.dtype(x);
  std::string axes = g.constant_ints({g.random.chance(0.7) ? -1 : g.random.between(0, g.rank(x) - 1)});
  std::string centered = g.add("Sub", {x, g.add("ReduceMean", {x, axes})});
  std::string square = g.random.chance(0.5) ? g.add("Mul", {centered, centered})
                                            : g.add("Pow", {centered, g.constant_scalar(dtype, 2)});
  std::string deviation =
      g.add("Sqrt", {g.add("Add", {g.add("ReduceMean", {square, axes}), g.constant_scalar(dtype, 0.01)})});
  std::string normal = g.add("Div", {centered, deviation});
  if (normal.empty()) return "";
  return g.random.chance(0.5) ? normal : g.add("Mul", {normal, g.weights(dtype, {g.dims(x).back()})});
}

} // namespace

std::span<const Motif> normalization_motifs() {
  static constexpr Motif motifs[] = {
      {"layer_norm", 4, layer_norm},
      {"product_and_norm", 2, product_and_norm},
      {"channel_norm", 3, channel_norm},
      {"spelled_norm", 2, spelled_norm},
  };
  return motifs;
}

} // namespace firn::test
