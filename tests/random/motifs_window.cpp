// Motifs of pooling, resampling and other windows.
#include "tests/random/motifs.h"

namespace firn::test {
namespace {

std::string pool(Growth& g) {
  std::string x = g.float_of_rank(g.random.pick({3, 4, 4, 4, 5}));
  if (x.empty()) return "";
  const Dims& dims = g.dims(x);
  Dims window, strides, pads(2 * (dims.size() - 2));
  for (size_t i = 2; i < dims.size(); ++i) {
    window.push_back(g.random.pick({1, 2, 3, 3, 5}));
    strides.push_back(g.random.pick({1, 1, 2, 3}));
    pads[i - 2] = g.random.between(0, window.back() / 2);
    pads[dims.size() - 4 + i] = g.random.between(0, window.back() / 2);
    if (dims[i] + pads[i - 2] + pads[dims.size() - 4 + i] < window.back()) return "";
  }
  std::vector<Message> attributes{attribute_ints("kernel_shape", window), attribute_ints("strides", strides),
                                  attribute_ints("pads", pads)};
  bool ceil_mode = g.random.chance(0.2);
  if (ceil_mode) attributes.push_back(attribute("ceil_mode", 1));
  const char* op = g.random.pick({"MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"});
  if (std::string(op) == "AveragePool")
    attributes.push_back(attribute("count_include_pad", g.random.between(0, 1)));
  if (std::string(op) == "MaxPool" && g.random.chance(0.2)) return g.add_many(op, {x}, 2, attributes)[0];
  return g.add(op, {x}, attributes);
}

std::string global_pool(Growth& g) {
  std::string x = g.float_of_rank(g.random.pick({3, 4, 4, 5}));
  return g.add(g.random.pick({"GlobalAveragePool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}),
               {x});
}

std::string resize(Growth& g) {
  std::string x = g.float_of_rank(g.random.pick({3, 4, 4, 4}));
  if (x.empty() || g.literal(x).num_elements() > 2000) return "";
  Dims sizes = g.dims(x);
  for (size_t i = 2; i < sizes.size(); ++i)
    if (g.random.chance(0.8))
      sizes[i] = g.random.chance(0.5) ? 2 * sizes[i] : g.random.between(1, 2 * sizes[i] + 1);
  const char* mode = g.random.pick({"nearest", "linear", "linear", "cubic"});
  std::vector<Message> attributes{
      attribute_text("mode", mode),
      attribute_text("coordinate_transformation_mode",
                     g.random.pick({"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}))};
  if (std::string(mode) == "nearest")
    attributes.push_back(attribute_text(
        "nearest_mode", g.random.pick({"floor", "round_prefer_floor", "ceil", "round_prefer_ceil"})));
  return g.add("Resize", {x, Growth::kAbsent, Growth::kAbsent, g.constant_ints(sizes)}, attributes);
}

std::string local_response(Growth& g) {
  std::string x = g.float_of_rank(4);
  return g.add("LRN", {x},
               {attribute("size", g.random.pick({1, 3, 5})), attribute_real("alpha", 0.01f),
                attribute_real("bias", 1.5f)});
}

std::string grid_sample(Growth& g) {
  std::string x = g.float_of_rank(4);
  if (x.empty() || g.dtype(x) != DType::F32) return "";
  // Positions on quarters of pixels' distances: no tie is near.
  auto grid = std::make_shared<Literal>(
      DType::F32, Dims{g.dims(x)[0], g.random.between(1, 7), g.random.between(1, 7), 2});
  for (int64_t i = 0; i < grid->num_elements(); ++i) grid->set_double(i, g.random.uniform(-1.2, 1.2));
  return g.add("GridSample", {x, g.random.chance(0.5) ? g.input(grid) : g.constant(grid)},
               {attribute_text("mode", g.random.pick({"linear", "linear", "cubic"})),
                attribute_text("padding_mode", g.random.pick({"zeros", "border", "reflection"})),
                attribute("align_corners", g.random.between(0, 1))});
}

std::string deformable(Growth& g) {
  int64_t h = g.random.between(3, 9), w = g.random.between(3, 9), channels = g.random.pick({1, 2, 4, 6});
  int64_t window = g.random.pick({1, 2, 3}), batch = g.random.pick({1, 2}), out = g.random.pick({1, 2, 5});
  int64_t oh = h - window + 1, ow = w - window + 1;
  auto offsets = std::make_shared<Literal>(DType::F32, Dims{batch, 2 * window * window, oh, ow});
  for (int64_t i = 0; i < offsets->num_elements(); ++i) offsets->set_double(i, g.random.uniform(-1.5, 1.5));
  Names operands{g.input(g.draw_literal(DType::F32, {batch, channels, h, w})),
                 g.weights(DType::F32, {out, channels, window, window}), g.input(offsets)};
  return g.add("DeformConv", operands, {attribute_ints("kernel_shape", {window, window})});
}

std::string regions_of_interest(Growth& g) {
  int64_t count = g.random.between(1, 4), h = g.random.between(4, 11), w = g.random.between(4, 11);
  auto boxes = std::make_shared<Literal>(DType::F32, Dims{count, 4});
  auto batches = std::make_shared<Literal>(DType::I64, Dims{count});
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < 2; ++k) {
      double low = g.random.uniform(0, 2);
      boxes->set_double(4 * i + k, low), boxes->set_double(4 * i + 2 + k, low + g.random.uniform(0.5, 4));
    }
  return g.add("RoiAlign",
               {g.input(g.draw_literal(DType::F32, {1, g.random.pick({1, 3, 5}), h, w})), g.input(boxes),
                g.input(batches)},
               {attribute("output_height", g.random.between(1, 4)),
                attribute("output_width", g.random.between(1, 4)), attribute("sampling_ratio", 2),
                attribute_text("mode", g.random.pick({"avg", "max"}))});
}

std::string col2im(Growth& g) {
  int64_t h = g.random.between(3, 7), w = g.random.between(3, 7), channels = g.random.pick({1, 3, 5});
  Dims block{g.random.between(1, 3), g.random.between(1, 3)};
  Dims dims{g.random.pick({1, 2}), channels * block[0] * block[1], (h - block[0] + 1) * (w - block[1] + 1)};
  return g.add("Col2Im",
               {g.input(g.draw_literal(DType::F32, dims)), g.constant_ints({h, w}), g.constant_ints(block)});
}

// Pools and sums over positions between elementwise nodes and concatenations, as in inception blocks.
std::string pool_and_concat(Growth& g) {
  std::string x = g.float_of_rank(4);
  if (x.empty()) return "";
  std::vector<Message> same{attribute_ints("kernel_shape", {3, 3}), attribute_ints("pads", {1, 1, 1, 1})};
  std::string max = g.add("MaxPool", {x}, same), mean = g.add("AveragePool", {g.add("Relu", {x})}, same);
  std::string both = g.add("Concat", {max, x, mean}, {attribute("axis", g.random.between(1, 3))});
  if (both.empty()) return "";
  return g.add("Mul", {both, g.broadcastable(g.dtype(both), g.dims(both))});
}

} // namespace

std::span<const Motif> window_motifs() {
  static constexpr Motif motifs[] = {
      {"pool", 4, pool},
      {"global_pool", 2, global_pool},
      {"resize", 3, resize},
      {"local_response", 1, local_response},
      {"grid_sample", 1, grid_sample},
      {"col2im", 1, col2im},
      {"pool_and_concat", 1, pool_and_concat},
      {"deformable", 1, deformable},
      {"regions_of_interest", 1, regions_of_interest},
  };
  return motifs;
}

} // namespace firn::test
