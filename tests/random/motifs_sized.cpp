// Motifs whose extents are decided by numbers that a run computes from data.
#include "tests/random/deciding.h"
#include "tests/random/motifs.h"

#include <algorithm>
#include <utility>

namespace firn::test {
namespace {

bool has_axes(const Literal& v) {
  return is_any(v) && !v.dims().empty() && v.num_elements() < 600;
}

// The node with the deciding operand; `needs_bound`: where its numbers alone are no bound by themselves.
std::string sized(Growth& g, const std::string& op, const Names& inputs, Deciding deciding, bool needs_bound,
                  const std::vector<Message>& attributes = {}, int outputs = 1) {
  if (deciding.operand.empty()) return "";
  if (!needs_bound) deciding.bounds.clear();
  return g.add_bounded(op, inputs, outputs, attributes, std::move(deciding.bounds),
                       std::move(deciding.ends))[0];
}

// `count` extents whose product is that number.
Dims factors(Growth& g, int64_t product, int64_t count) {
  Dims dims(static_cast<size_t>(count), 1);
  for (int64_t factor = 2; product > 1; ++factor)
    for (; product % factor == 0; product /= factor)
      dims[static_cast<size_t>(g.random.between(0, count - 1))] *= factor;
  if (product == 0) dims[0] = 0;
  return dims;
}

std::string reshape(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  int64_t count = g.random.between(1, 3);
  Numbers numbers{{}, Dims(static_cast<size_t>(count), 0)};
  bool leaves_open = g.random.chance(0.3), may_be_empty = false;
  for (size_t run = 0; run < g.num_runs(); ++run) {
    Dims shape = factors(g, g.literal(x, run).num_elements(), count);
    may_be_empty |= g.literal(x, run).num_elements() == 0;
    for (size_t i = 0; i < shape.size(); ++i) numbers.max[i] = std::max(numbers.max[i], shape[i]);
    if (leaves_open && g.literal(x, run).num_elements() > 0)
      shape[static_cast<size_t>(g.random.between(0, count - 1))] = -1;
    numbers.at.push_back(shape);
  }
  // The number of elements is a bound, unless that leaves room for far more of them.
  int64_t max = g.literal(x).num_elements(), room = 1;
  for (int64_t i = 0; i < count; ++i) room *= max;
  bool needs_bound = room > 20000;
  Deciding shape = needs_bound ? deciding_input(g, numbers) : draw_deciding(g, numbers);
  return sized(g, "Reshape", {x, shape.operand}, shape, needs_bound,
               {attribute("allowzero", may_be_empty ? 1 : 0)});
}

std::string expand(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  int64_t more = g.random.between(0, 1);
  Dims max;
  for (int64_t i = 0; i < more; ++i) max.push_back(g.random.between(1, 4));
  for (int64_t dim : g.dims(x)) max.push_back(dim == 1 ? g.random.between(1, 9) : dim);
  Numbers numbers = draw_numbers(g, max);
  for (size_t run = 0; run < g.num_runs(); ++run)
    for (size_t i = 0; i < g.dims(x).size(); ++i) {
      int64_t own = g.literal(x, run).dims()[i], &wanted = numbers.at[run][i + static_cast<size_t>(more)];
      if (own != 1) wanted = g.random.chance(0.4) ? 1 : own;
      int64_t& bound = numbers.max[i + static_cast<size_t>(more)];
      bound = std::max(bound, wanted);
    }
  Deciding shape = draw_deciding(g, numbers);
  // If no dim is added and x has no dim of 1, the shape decides no extent and needs no bound.
  bool decides = more > 0 || std::count(g.dims(x).begin(), g.dims(x).end(), 1) > 0;
  return sized(g, "Expand", {x, shape.operand}, shape, decides);
}

std::string constant_of_shape(Growth& g) {
  Dims max;
  for (int64_t i = g.random.between(1, 3); i > 0; --i) max.push_back(g.random.between(1, 9));
  Deciding shape = draw_deciding(g, draw_numbers(g, max));
  std::vector<Message> attributes;
  if (g.random.chance(0.5)) attributes.push_back(attribute_tensor("value", ints("value", {7})));
  return sized(g, "ConstantOfShape", {shape.operand}, shape, true, attributes);
}

std::string scalar(Growth& g, const std::string& x) {
  return g.add("Squeeze", {x});
}

// 0, 1, 2 ... up to a number, or from and to numbers in steps.
std::string range(Growth& g) {
  int64_t max = g.random.between(1, 20);
  Numbers count = draw_numbers(g, Dims{max});
  if (g.random.chance(0.5)) {
    Deciding limit = draw_deciding(g, count);
    for (TestBound& bound : limit.bounds) bound.value = "";
    return sized(
        g, "Range",
        {g.constant_scalar(DType::I64, 0), scalar(g, limit.operand), g.constant_scalar(DType::I64, 1)}, limit,
        true);
  }
  int64_t step = g.random.pick({1, 2, 3, -1, -4});
  Numbers first{{}, {9}}, last{{}, {9}};
  for (const Dims& at : count.at) {
    first.at.push_back({g.random.between(-9, 9)});
    last.at.push_back({first.at.back()[0] + step * at[0]});
  }
  Deciding from = deciding_input(g, first), to = deciding_input(g, last);
  to.bounds = {{"", {max}}};
  DType dtype = g.random.pick({DType::I64, DType::I64, DType::I32, DType::F32});
  auto number = [&](const std::string& x) {
    return dtype == DType::I64 ? scalar(g, x)
                               : g.add("Cast", {scalar(g, x)}, {attribute("to", wire_type(dtype))});
  };
  to.ends.insert(to.ends.end(), from.ends.begin(), from.ends.end());
  return sized(
      g, "Range",
      {number(from.operand), number(to.operand), g.constant_scalar(dtype, static_cast<double>(step))}, to,
      true);
}

// Slices between places some of which are constants, on several axes.
std::string slice(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  Dims axes, max, steps;
  for (int64_t axis = 0; axis < g.rank(x); ++axis)
    if (axes.empty() ? axis + 1 == g.rank(x) || g.random.chance(0.5) : g.random.chance(0.3)) {
      axes.push_back(axis), max.push_back(g.dims(x)[static_cast<size_t>(axis)]);
      steps.push_back(g.random.pick({1, 1, 1, 2, -1}));
    }
  Deciding start = draw_deciding(g, draw_numbers(g, max)), end = draw_deciding(g, draw_numbers(g, max));
  start.ends.insert(start.ends.end(), end.ends.begin(), end.ends.end());
  if (end.operand.empty()) return "";
  return sized(g, "Slice", {x, start.operand, end.operand, g.constant_ints(axes), g.constant_ints(steps)},
               start, false);
}

std::string slice_row(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1);
  Numbers numbers = draw_numbers(g, Dims{g.dims(x)[static_cast<size_t>(axis)] - 1});
  for (size_t run = 0; run < g.num_runs(); ++run) {
    int64_t extent = g.literal(x, run).dims()[static_cast<size_t>(axis)];
    if (extent == 0) return "";
    numbers.at[run][0] = std::min(numbers.at[run][0], extent - 1);
  }
  Deciding place = draw_deciding(g, numbers);
  std::string next = g.add("Add", {place.operand, g.constant_ints({1})});
  return sized(g, "Slice", {x, place.operand, next, g.constant_ints({axis})}, place, false);
}

std::string pad(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  const char* mode = g.random.pick({"constant", "constant", "edge", "reflect", "wrap"});
  Dims axes, max;
  for (int64_t axis = 0; axis < g.rank(x); ++axis)
    if (axes.empty() ? axis + 1 == g.rank(x) || g.random.chance(0.5) : g.random.chance(0.2))
      axes.push_back(axis);
  for (int side = 0; side < 2; ++side)
    for (int64_t axis : axes)
      max.push_back(std::min(g.random.between(0, 4), g.dims(x)[static_cast<size_t>(axis)] - 1));
  if (std::count(max.begin(), max.end(), 0) == static_cast<int64_t>(max.size())) return "";
  Deciding pads = draw_deciding(g, draw_numbers(g, max));
  return sized(g, "Pad", {x, pads.operand, Growth::kAbsent, g.constant_ints(axes)}, pads, true,
               {attribute_text("mode", mode)});
}

std::string tile(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  Dims max;
  for (int64_t i = 0; i < g.rank(x); ++i) max.push_back(g.random.pick({1, 1, 1, 2, 3, 4}));
  Deciding repeats = draw_deciding(g, draw_numbers(g, max));
  return sized(g, "Tile", {x, repeats.operand}, repeats, true);
}

std::string top_k(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty() || g.dtype(x) == DType::Bool) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1);
  int64_t max = g.dims(x)[static_cast<size_t>(axis)];
  for (size_t run = 0; run < g.num_runs(); ++run)
    max = std::min(max, g.literal(x, run).dims()[static_cast<size_t>(axis)]);
  Deciding k = draw_deciding(g, draw_numbers(g, Dims{max}));
  return sized(g, "TopK", {x, k.operand}, k, false,
               {attribute("axis", axis), attribute("largest", g.random.between(0, 1))}, 2);
}

std::string one_hot(Growth& g) {
  int64_t max = g.random.between(1, 9);
  Dims dims = g.draw_dims(g.random.pick({0, 1, 2}), 30);
  std::string indices = g.input_in_each(dims, [&](const Dims& own) {
    auto literal = std::make_shared<Literal>(DType::I64, own);
    for (int64_t i = 0; i < literal->num_elements(); ++i) literal->set_int(i, g.random.between(-max, max));
    return literal;
  });
  Deciding depth = draw_deciding(g, draw_numbers(g, Dims{max}));
  DType dtype = g.random.chance(0.5) ? g.draw_float() : g.draw_integer();
  return sized(g, "OneHot", {indices, depth.operand, g.fresh(dtype, {2})}, depth, true,
               {attribute("axis", g.random.between(-1, static_cast<int64_t>(dims.size())))});
}

std::string split(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1), parts = g.random.between(2, 3);
  Numbers sizes{{}, Dims(static_cast<size_t>(parts), g.dims(x)[static_cast<size_t>(axis)])};
  for (size_t run = 0; run < g.num_runs(); ++run) {
    Dims at;
    int64_t left = g.literal(x, run).dims()[static_cast<size_t>(axis)];
    for (int64_t i = 1; i < parts; ++i) at.push_back(g.random.between(0, left)), left -= at.back();
    at.push_back(left);
    sizes.at.push_back(at);
    for (int64_t& max : sizes.max) max = std::max(max, g.literal(x, run).dims()[static_cast<size_t>(axis)]);
  }
  Deciding operand = draw_deciding(g, sizes);
  return sized(g, "Split", {x, operand.operand}, operand, false, {attribute("axis", axis)},
               static_cast<int>(parts));
}

} // namespace

std::span<const Motif> sized_motifs() {
  static constexpr Motif motifs[] = {
      {"reshape", 1, reshape}, {"expand", 1, expand}, {"constant_of_shape", 1, constant_of_shape},
      {"range", 1, range},     {"slice", 1, slice},   {"slice_row", 1, slice_row},
      {"pad", 1, pad},         {"tile", 1, tile},     {"top_k", 1, top_k},
      {"one_hot", 1, one_hot}, {"split", 1, split},
  };
  return motifs;
}

} // namespace firn::test
