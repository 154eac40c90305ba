// Motifs that read or write at computed positions.
#include "tests/random/motifs.h"

#include <algorithm>

namespace firn::test {
namespace {

// Positions in [-extent, extent), or all different in [0, extent).
LiteralRef positions(Growth& g, const Dims& dims, int64_t extent, bool different = false) {
  auto literal = std::make_shared<Literal>(g.random.pick({DType::I64, DType::I64, DType::I32}), dims);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < extent; ++i) order.push_back(i);
  for (int64_t i = 0; i < literal->num_elements(); ++i) {
    if (different) {
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(g.random.between(i, extent - 1))]);
      literal->set_int(i, order[static_cast<size_t>(i)]);
    } else {
      literal->set_int(i, g.random.between(g.random.chance(0.2) ? -extent : 0, extent - 1));
    }
  }
  return literal;
}

std::string indices(Growth& g, LiteralRef literal) {
  return g.random.chance(0.5) ? g.constant(std::move(literal)) : g.input(std::move(literal));
}

bool has_axes(const Literal& v) {
  return is_any(v) && !v.dims().empty();
}

std::string gather(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1);
  Dims dims = g.draw_dims(g.random.pick({0, 1, 1, 2}), 8);
  return g.add("Gather", {x, indices(g, positions(g, dims, g.dims(x)[static_cast<size_t>(axis)]))},
               {attribute("axis", axis)});
}

std::string gather_elements(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1);
  Dims dims = g.dims(x);
  int64_t extent = dims[static_cast<size_t>(axis)];
  dims[static_cast<size_t>(axis)] = g.random.between(1, 6);
  return g.add("GatherElements", {x, indices(g, positions(g, dims, extent))}, {attribute("axis", axis)});
}

// Index tuples of `depth` positions; rows of them, all different if asked.
LiteralRef tuples(Growth& g, const Dims& shape, int64_t depth, int64_t count, bool different) {
  int64_t total = 1;
  for (int64_t i = 0; i < depth; ++i) total *= shape[static_cast<size_t>(i)];
  if (different) count = std::min(count, total);
  LiteralRef flat = positions(g, {count}, total, different);
  auto literal = std::make_shared<Literal>(DType::I64, Dims{count, depth});
  for (int64_t row = 0; row < count; ++row) {
    int64_t position = (flat->get_int(row) + total) % total;
    for (int64_t i = depth; i-- > 0; position /= shape[static_cast<size_t>(i)])
      literal->set_int(row * depth + i, position % shape[static_cast<size_t>(i)]);
  }
  return literal;
}

std::string gather_nd(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  int64_t depth = g.random.between(1, g.rank(x));
  return g.add("GatherND", {x, indices(g, tuples(g, g.dims(x), depth, g.random.between(1, 7), false))});
}

std::string scatter_nd(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty() || g.dtype(x) == DType::Bool) return "";
  int64_t depth = g.random.between(1, g.rank(x));
  const char* reduction = g.random.pick({"none", "none", "add", "mul", "max", "min"});
  LiteralRef index = tuples(g, g.dims(x), depth, g.random.between(1, 7), std::string(reduction) == "none");
  Dims dims{index->dims()[0]};
  dims.insert(dims.end(), g.dims(x).begin() + depth, g.dims(x).end());
  std::string updates = g.fresh(g.dtype(x), dims);
  return g.add("ScatterND", {x, indices(g, index), updates}, {attribute_text("reduction", reduction)});
}

std::string scatter_elements(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty() || g.dtype(x) == DType::Bool) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1);
  // One update per line along the axis, so that without a reduction no position is written twice.
  Dims dims = g.dims(x);
  int64_t extent = dims[static_cast<size_t>(axis)];
  dims[static_cast<size_t>(axis)] = 1;
  return g.add("ScatterElements", {x, indices(g, positions(g, dims, extent)), g.fresh(g.dtype(x), dims)},
               {attribute("axis", axis),
                attribute_text("reduction", g.random.pick({"none", "none", "add", "mul", "max", "min"}))});
}

// Shape arithmetic that exporters leave: sizes are read, computed with and used as values.
std::string shape_values(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  std::string sizes = g.add("Shape", {x});
  if (g.random.chance(0.3)) sizes = g.add("Mul", {sizes, g.constant_scalar(DType::I64, 2)});
  if (g.random.chance(0.3))
    return g.add("ConstantOfShape", {sizes}, {attribute_tensor("value", floats("", {1}, {0.5f}))});
  if (g.random.chance(0.5)) return g.add("Cast", {sizes}, {attribute("to", F32)});
  std::string last = g.add("Gather", {sizes, g.constant(Literal::scalar(DType::I64, -1))});
  return g.add("Range", {g.constant_scalar(DType::I64, 0), last, g.constant_scalar(DType::I64, 1)});
}

std::string one_hot(Growth& g) {
  int64_t depth = g.random.between(2, 9);
  Dims dims = g.draw_dims(g.random.between(1, 2), 20);
  DType dtype = g.draw_float();
  return g.add("OneHot",
               {indices(g, positions(g, dims, depth)),
                g.constant(Literal::scalar(DType::I64, static_cast<double>(depth))),
                g.constant(Literal::of(dtype, {2}, std::vector<double>{0.5, 2}))},
               {attribute("axis", -1)});
}

std::string reverse_sequence(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any(v) && v.dims().size() > 1; });
  if (x.empty()) return "";
  int64_t time = g.random.between(0, 1);
  auto lengths = std::make_shared<Literal>(DType::I64, Dims{g.dims(x)[static_cast<size_t>(1 - time)]});
  for (int64_t i = 0; i < lengths->num_elements(); ++i)
    lengths->set_int(i, g.random.between(1, g.dims(x)[static_cast<size_t>(time)]));
  return g.add("ReverseSequence", {x, indices(g, lengths)},
               {attribute("time_axis", time), attribute("batch_axis", 1 - time)});
}

// A table looked up by ids, as in language models, which may find the nearest of all its rows too.
std::string embedding(Growth& g) {
  int64_t rows = g.random.between(3, 20), width = g.draw_dim();
  std::string table = g.weights(g.draw_float(), {rows, width});
  auto ids = std::make_shared<Literal>(DType::I64, Dims{g.random.pick({1, 1, 2}), g.draw_dim()});
  for (int64_t i = 0; i < ids->num_elements(); ++i) ids->set_int(i, g.random.between(0, rows - 1));
  std::string found = g.add("Gather", {table, g.input(ids)});
  if (g.random.chance(0.5)) return found;
  return g.add("MatMul",
               {g.add("Tanh", {found}), g.add("Transpose", {table}, {attribute_ints("perm", {1, 0})})});
}

} // namespace

std::span<const Motif> indexing_motifs() {
  static constexpr Motif motifs[] = {
      {"gather", 3, gather},
      {"gather_elements", 2, gather_elements},
      {"gather_nd", 2, gather_nd},
      {"scatter_nd", 3, scatter_nd},
      {"scatter_elements", 3, scatter_elements},
      {"one_hot", 1, one_hot},
      {"shape_values", 1, shape_values},
      {"reverse_sequence", 1, reverse_sequence},
      {"embedding", 1, embedding},
  };
  return motifs;
}

} // namespace firn::test
