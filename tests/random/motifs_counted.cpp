// Motifs whose results have dims that a run counts.
#include "tests/random/motifs.h"

#include <numeric>

namespace firn::test {
namespace {

bool has_axes(const Literal& v) {
  return is_any(v) && !v.dims().empty() && v.num_elements() < 600;
}

// Which elements are not zero, as positions or as what stands there.
std::string non_zero(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  std::string mask = g.dtype(x) == DType::Bool || g.random.chance(0.3)
                         ? x
                         : g.add("Greater", {x, g.constant_scalar(g.dtype(x), 0)});
  std::string places = g.add("NonZero", {mask});
  if (g.random.chance(0.3)) return places;
  places = g.add("Transpose", {places});
  return g.random.chance(0.3) ? places : g.add("GatherND", {x, places});
}

std::string compress(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  bool flat = g.random.chance(0.2);
  int64_t axis = g.random.between(0, g.rank(x) - 1);
  Dims dims{flat ? g.literal(x).num_elements() : g.dims(x)[static_cast<size_t>(axis)]};
  std::string mask = g.input(g.draw_literal(DType::Bool, dims));
  return flat ? g.add("Compress", {x, mask}) : g.add("Compress", {x, mask}, {attribute("axis", axis)});
}

std::string unique(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty() || g.dtype(x) == DType::Bool) return "";
  x = g.add("Round", {g.add("Cast", {x}, {attribute("to", F32)})});
  if (x.empty()) return "";
  std::vector<Message> attributes{attribute("sorted", g.random.between(0, 1))};
  if (g.random.chance(0.4)) attributes.push_back(attribute("axis", g.random.between(0, g.rank(x) - 1)));
  return g.add_many("Unique", {x}, static_cast<int>(g.random.between(1, 4)), attributes)[0];
}

std::string non_max_suppression(Growth& g) {
  int64_t boxes = g.random.between(1, 20), batch = g.random.between(1, 2), classes = g.random.between(1, 3);
  std::string corners = g.input(g.draw_literal(DType::F32, {batch, boxes, 4})),
              scores = g.input(g.draw_literal(DType::F32, {batch, classes, boxes}));
  return g.add("NonMaxSuppression",
               {corners, scores,
                g.constant(Literal::scalar(DType::I64, static_cast<double>(g.random.between(0, 5)))),
                g.constant_scalar(DType::F32, g.random.uniform(0.1, 0.9)),
                g.constant_scalar(DType::F32, g.random.uniform(-1, 1))},
               {attribute("center_point_box", g.random.between(0, 1))});
}

// A slice between places that a run computes.
std::string computed_slice(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1);
  int64_t extent = g.dims(x)[static_cast<size_t>(axis)];
  auto place = [&](const Dims&) {
    return Literal::of(DType::I64, {1}, std::vector<int64_t>{g.random.between(-extent - 1, extent + 1)});
  };
  std::string start = g.input_in_each({1}, place), end = g.input_in_each({1}, place);
  return g.add("Slice",
               {x, start, end, g.constant_ints({axis}), g.constant_ints({g.random.pick({1, 1, 2, -1})})});
}

std::string range(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  std::string size = g.add("Shape", {x}, {attribute("start", 0), attribute("end", 1)});
  std::string end = g.add("Squeeze", {size});
  std::string steps =
      g.add("Range", {g.constant_scalar(DType::I64, 0), end, g.constant_scalar(DType::I64, 1)});
  return g.random.chance(0.5) ? steps : g.add("Gather", {x, steps});
}

// A mask in which `wanted` elements are true.
LiteralRef mask_of(Growth& g, const Dims& dims, int64_t wanted) {
  auto literal = std::make_shared<Literal>(DType::Bool, dims);
  for (int64_t left = dims[0]; left > 0; --left)
    if (g.random.between(1, left) <= wanted) literal->set_int(left - 1, 1), --wanted;
  return literal;
}

// A mask with a multiple of `step` true elements in each run. A run with one more or one less may end early.
std::string mask_in_steps(Growth& g, int64_t extent, int64_t step, std::vector<TestEnd>& ends) {
  std::string mask = g.input_in_each({extent}, [&](const Dims& dims) {
    return mask_of(g, dims, g.random.between(0, dims[0]) / step * step);
  });
  for (int64_t i = g.random.between(1, 2); i > 0; --i) {
    auto other = std::make_shared<Literal>(g.literal(mask));
    int64_t place = g.random.between(0, extent - 1);
    other->set_int(place, 1 - other->get_int(place));
    ends.push_back({mask, other});
  }
  return mask;
}

// Reshapes to rows, columns or both of a fixed number of elements, and as many of them as there are.
std::string reshape_open(Growth& g) {
  std::string x = g.find([](const Literal& v) { return has_axes(v) && v.num_elements() > 0; });
  if (x.empty()) return "";
  std::vector<TestEnd> ends;
  int64_t step = g.random.pick({2, 3, 4, 6});
  if (g.random.chance(0.6)) {
    int64_t axis = g.random.between(0, g.rank(x) - 1);
    x = g.add("Compress", {x, mask_in_steps(g, g.dims(x)[static_cast<size_t>(axis)], step, ends)},
              {attribute("axis", axis)});
    if (x.empty()) return "";
  }
  for (size_t run = 0; run < g.num_runs(); ++run) step = std::gcd(step, g.literal(x, run).num_elements());
  Dims shape = g.random.pick({Dims{-1, step}, Dims{step, -1}, Dims{-1, 1, step}});
  if (step == 4 && g.random.chance(0.5)) shape = {2, -1, 2};
  return g.add_bounded("Reshape", {x, g.constant_ints(shape)}, 1, {}, {}, std::move(ends))[0];
}

// Two operands with counted dims: both count the same number in each run, or one counts 1 and is broadcast.
std::string counts_meet(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1), extent = g.dims(x)[static_cast<size_t>(axis)];
  std::vector<int64_t> counts;
  size_t run = 0;
  std::string first = g.input_in_each({extent}, [&](const Dims& dims) {
    counts.push_back(g.random.chance(0.3) ? std::min<int64_t>(1, dims[0]) : g.random.between(0, dims[0]));
    return mask_of(g, dims, counts.back());
  });
  std::string second = g.input_in_each({extent}, [&](const Dims& dims) {
    int64_t other = counts[run++];
    if (other == 1) other = g.random.between(0, dims[0]);
    return mask_of(g, dims, g.random.chance(0.4) ? std::min<int64_t>(1, dims[0]) : other);
  });
  std::vector<Message> along{attribute("axis", axis)};
  std::string lhs = g.add("Compress", {x, first}, along), rhs = g.add("Compress", {x, second}, along);
  if (g.dtype(x) == DType::Bool) return g.add(g.random.pick({"And", "Xor"}), {lhs, rhs});
  return g.add(g.random.pick({"Add", "Sub", "Mul", "Equal"}), {lhs, rhs});
}

} // namespace

std::span<const Motif> counted_motifs() {
  static constexpr Motif motifs[] = {
      {"non_zero", 1, non_zero},
      {"compress", 1, compress},
      {"unique", 1, unique},
      {"non_max_suppression", 1, non_max_suppression},
      {"computed_slice", 1, computed_slice},
      {"range", 1, range},
      {"reshape_open", 1, reshape_open},
      {"counts_meet", 1, counts_meet},
  };
  return motifs;
}

} // namespace firn::test
