// Motifs that move elements without computing.
#include "tests/random/motifs.h"

#include <algorithm>
#include <numeric>

namespace firn::test {
namespace {

std::string transpose(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any(v) && v.dims().size() > 1; });
  if (x.empty()) return "";
  Dims order(static_cast<size_t>(g.rank(x)));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<size_t>(g.random.between(0, static_cast<int64_t>(i) - 1))]);
  return g.add("Transpose", {x}, {attribute_ints("perm", order)});
}

std::string reshape(Growth& g) {
  std::string x = g.find(is_any);
  if (x.empty()) return "";
  int64_t left = g.literal(x).num_elements();
  Dims dims(static_cast<size_t>(g.random.between(1, 5)), 1);
  for (int64_t factor = 2; left > 1; ++factor)
    for (; left % factor == 0; left /= factor)
      dims[static_cast<size_t>(g.random.between(0, static_cast<int64_t>(dims.size()) - 1))] *= factor;
  if (g.random.chance(0.3))
    dims[static_cast<size_t>(g.random.between(0, static_cast<int64_t>(dims.size()) - 1))] = -1;
  return g.add("Reshape", {x, g.reshape_target(dims)});
}

std::string squeeze_or_unsqueeze(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any(v) && v.dims().size() < 5; });
  if (x.empty()) return "";
  Dims ones;
  for (int64_t i = 0; i < g.rank(x); ++i)
    if (g.dims(x)[static_cast<size_t>(i)] == 1) ones.push_back(i);
  if (!ones.empty() && g.random.chance(0.5))
    return g.add("Squeeze", {x, g.constant_ints({g.random.pick(ones)})});
  if (g.rank(x) > 1 && g.random.chance(0.2))
    return g.add("Flatten", {x}, {attribute("axis", g.random.between(0, g.rank(x)))});
  return g.add("Unsqueeze", {x, g.constant_ints({g.random.between(0, g.rank(x))})});
}

std::string slice(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any(v) && !v.dims().empty(); });
  if (x.empty()) return "";
  Dims starts, ends, axes, steps;
  for (int64_t axis = 0; axis < g.rank(x); ++axis) {
    int64_t dim = g.dims(x)[static_cast<size_t>(axis)];
    if (dim == 1 || g.random.chance(0.4)) continue;
    int64_t first = g.random.between(0, dim - 1), last = g.random.between(first, dim - 1);
    int64_t step = g.random.pick({1, 1, 1, 2, 3, -1, -2});
    axes.push_back(g.random.chance(0.2) ? axis - g.rank(x) : axis);
    steps.push_back(step);
    if (step > 0) {
      starts.push_back(g.random.chance(0.2) ? first - dim : first), ends.push_back(last + 1);
    } else {
      starts.push_back(last), ends.push_back(first == 0 ? -dim - 1 : first - 1);
    }
  }
  if (axes.empty()) return "";
  return g.add("Slice", {x, g.constant_ints(starts), g.constant_ints(ends), g.constant_ints(axes),
                         g.constant_ints(steps)});
}

std::string split(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any(v) && !v.dims().empty(); });
  if (x.empty()) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1), dim = g.dims(x)[static_cast<size_t>(axis)];
  if (dim < 2) return "";
  Dims parts;
  for (int64_t left = dim; left > 0;) {
    parts.push_back(parts.size() == 3 ? left : g.random.between(1, left));
    left -= parts.back();
  }
  Names names = g.add_many("Split", {x, g.constant_ints(parts)}, static_cast<int>(parts.size()),
                           {attribute("axis", axis)});
  return names.back();
}

std::string concat(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any(v) && !v.dims().empty(); });
  if (x.empty()) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1);
  auto fits = [&](const Literal& v) {
    if (v.dtype() != g.dtype(x) || v.dims().size() != g.dims(x).size()) return false;
    for (size_t i = 0; i < v.dims().size(); ++i)
      if (static_cast<int64_t>(i) != axis && v.dims()[i] != g.dims(x)[i]) return false;
    return v.num_elements() <= 4096;
  };
  Names parts{x};
  for (int64_t i = g.random.between(1, 3); i > 0; --i) {
    std::string part = g.find(fits);
    if (g.random.chance(0.3)) {
      Dims dims = g.dims(x);
      dims[static_cast<size_t>(axis)] = g.random.pick({1, 2, 3, 5});
      part = g.fresh(g.dtype(x), dims);
    }
    parts.push_back(part);
  }
  std::rotate(parts.begin(), parts.begin() + g.random.between(0, static_cast<int64_t>(parts.size()) - 1),
              parts.end());
  return g.add("Concat", parts, {attribute("axis", g.random.chance(0.3) ? axis - g.rank(x) : axis)});
}

// An empty slice of a tensor, joined to the tensor itself.
std::string empty_part(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any(v) && !v.dims().empty(); });
  if (x.empty()) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1);
  std::string none = g.add("Slice", {x, g.constant_ints({1}), g.constant_ints({1}), g.constant_ints({axis})});
  if (is_float(g.dtype(x)) && g.random.chance(0.5)) none = g.add("Relu", {none});
  return g.add("Concat", g.random.chance(0.5) ? Names{none, x} : Names{x, none, x},
               {attribute("axis", axis)});
}

std::string pad(Growth& g) {
  std::string x =
      g.find([](const Literal& v) { return is_any(v) && !v.dims().empty() && v.dtype() != DType::Bool; });
  if (x.empty()) return "";
  const char* mode = g.random.pick({"constant", "constant", "reflect", "edge", "wrap"});
  Dims low, high;
  for (int64_t dim : g.dims(x)) {
    int64_t max = std::string(mode) == "reflect" ? dim - 1 : std::string(mode) == "wrap" ? dim : 3;
    bool padded = g.random.chance(0.6);
    low.push_back(padded ? g.random.between(0, std::min<int64_t>(max, 3)) : 0);
    high.push_back(padded ? g.random.between(0, std::min<int64_t>(max, 3)) : 0);
    if (std::string(mode) == "constant" && dim > 3 && g.random.chance(0.15)) low.back() = -1;
  }
  low.insert(low.end(), high.begin(), high.end());
  Names operands{x, g.constant_ints(low)};
  if (std::string(mode) == "constant" && g.random.chance(0.6))
    operands.push_back(g.constant_scalar(g.dtype(x), g.random.pick({0.0, 1.0, 3.0})));
  return g.add("Pad", operands, {attribute_text("mode", mode)});
}

std::string tile_or_expand(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any(v) && v.num_elements() < 1000; });
  if (x.empty()) return "";
  if (g.random.chance(0.5)) {
    Dims repeats;
    for (int64_t i = 0; i < g.rank(x); ++i) repeats.push_back(g.random.pick({1, 1, 2, 3}));
    return repeats.empty() ? "" : g.add("Tile", {x, g.constant_ints(repeats)});
  }
  Dims shape = g.dims(x);
  for (int64_t& dim : shape)
    if (dim == 1 && g.random.chance(0.7)) dim = g.random.pick({2, 3, 5, 7, 17});
  if (g.random.chance(0.3)) shape.insert(shape.begin(), g.random.pick({1, 2, 3}));
  return g.add("Expand", {x, g.constant_ints(shape)});
}

std::string depth_and_space(Growth& g) {
  std::string x = g.float_of_rank(4);
  if (x.empty()) return "";
  Dims dims = g.dims(x);
  if (dims[1] % 4 == 0)
    return g.add("DepthToSpace", {x},
                 {attribute("blocksize", 2), attribute_text("mode", g.random.pick({"DCR", "CRD"}))});
  for (int64_t block : {2, 3})
    if (dims[2] % block == 0 && dims[3] % block == 0)
      return g.add("SpaceToDepth", {x}, {attribute("blocksize", block)});
  return "";
}

std::string triangle(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any(v) && v.dims().size() > 1; });
  if (x.empty()) return "";
  Names operands{x};
  if (g.random.chance(0.5))
    operands.push_back(g.constant(Literal::scalar(DType::I64, static_cast<double>(g.random.between(-3, 3)))));
  return g.add("Trilu", operands, {attribute("upper", g.random.between(0, 1))});
}

std::string center_crop_pad(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any_float(v) && v.dims().size() > 1; });
  if (x.empty()) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1);
  return g.add("CenterCropPad", {x, g.constant_ints({g.draw_dim()})}, {attribute_ints("axes", {axis})});
}

// A softmax between changes of layout.
std::string moved_softmax(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any_float(v) && v.dims().size() > 1; });
  if (x.empty()) return "";
  Dims order(static_cast<size_t>(g.rank(x)));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[static_cast<size_t>(g.random.between(0, g.rank(x) - 1))]);
  std::string moved = g.add("Transpose", {x}, {attribute_ints("perm", order)});
  if (moved.empty()) return "";
  std::string soft = g.add(g.random.pick({"Softmax", "LogSoftmax"}), {moved},
                           {attribute("axis", g.random.between(0, g.rank(x) - 1))});
  if (g.random.chance(0.5)) return g.add("Transpose", {soft}, {attribute_ints("perm", order)});
  return g.add("Slice", {soft, g.constant_ints({0}), g.constant_ints({(g.dims(moved)[0] + 1) / 2}),
                         g.constant_ints({0})});
}

} // namespace

std::span<const Motif> movement_motifs() {
  static constexpr Motif motifs[] = {
      {"transpose", 4, transpose},
      {"reshape", 3, reshape},
      {"squeeze_or_unsqueeze", 2, squeeze_or_unsqueeze},
      {"slice", 4, slice},
      {"split", 2, split},
      {"concat", 3, concat},
      {"pad", 2, pad},
      {"empty_part", 1, empty_part},
      {"tile_or_expand", 2, tile_or_expand},
      {"depth_and_space", 1, depth_and_space},
      {"triangle", 1, triangle},
      {"center_crop_pad", 1, center_crop_pad},
      {"moved_softmax", 2, moved_softmax},
  };
  return motifs;
}

} // namespace firn::test
