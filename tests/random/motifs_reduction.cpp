// Motifs of reductions, of softmax and its kin, and of sorting.
#include "tests/random/motifs.h"

namespace firn::test {
namespace {

bool has_axes(const Literal& v) {
  return is_any(v) && !v.dims().empty() && v.dtype() != DType::Bool;
}
bool float_with_axes(const Literal& v) {
  return is_any_float(v) && !v.dims().empty();
}

Dims some_axes(Growth& g, int64_t rank) {
  Dims axes;
  for (int64_t i = 0; i < rank; ++i)
    if (g.random.chance(0.5)) axes.push_back(g.random.chance(0.3) ? i - rank : i);
  if (axes.empty()) axes.push_back(g.random.between(0, rank - 1));
  return axes;
}

std::string reduce_as(Growth& g, const char* op, const std::string& x) {
  if (x.empty()) return "";
  Message keep = attribute("keepdims", g.random.chance(0.6));
  if (g.random.chance(0.1)) return g.add(op, {x}, {keep});
  return g.add(op, {x, g.constant_ints(some_axes(g, g.rank(x)))}, {keep});
}

std::string reduce(Growth& g) {
  return reduce_as(g,
                   g.random.pick({"ReduceSum", "ReduceMean", "ReduceMean", "ReduceMax", "ReduceMin",
                                  "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"}),
                   g.find(float_with_axes));
}

std::string reduce_integers(Growth& g) {
  std::string x = g.find([](const Literal& v) {
    return has_axes(v) && (v.dtype() == DType::I32 || v.dtype() == DType::I64 || v.dtype() == DType::I8 ||
                           v.dtype() == DType::U8);
  });
  if (x.empty()) return "";
  bool narrow = bit_width(g.dtype(x)) == 8;
  return reduce_as(g,
                   narrow ? g.random.pick({"ReduceMax", "ReduceMin"})
                          : g.random.pick({"ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"}),
                   x);
}

std::string reduce_positive(Growth& g) {
  std::string x = g.find(float_with_axes);
  if (x.empty()) return "";
  if (g.random.chance(0.5)) return reduce_as(g, "ReduceLogSum", g.away_from_zero(x, 0.5));
  return reduce_as(g, "ReduceProd", g.add("Tanh", {x}));
}

std::string softmax(Growth& g) {
  std::string x = g.find(float_with_axes);
  if (x.empty()) return "";
  Message axis = attribute("axis", g.random.chance(0.5) ? -1 : g.random.between(0, g.rank(x) - 1));
  return g.add(g.random.pick({"Softmax", "Softmax", "LogSoftmax", "LogSoftmax", "Hardmax"}), {x}, {axis});
}

// Softmax of what elementwise nodes made, and elementwise nodes on what it gives.
std::string surrounded_softmax(Growth& g) {
  std::string x = g.find(float_with_axes);
  if (x.empty()) return "";
  std::string in = g.add(g.random.pick({"Add", "Mul", "Sub"}), {x, g.broadcastable(g.dtype(x), g.dims(x))});
  std::string soft =
      g.add(g.random.pick({"Softmax", "LogSoftmax"}), {in},
            {attribute("axis", g.random.chance(0.6) ? -1 : g.random.between(0, g.rank(x) - 1))});
  if (soft.empty()) return "";
  return g.add(g.random.pick({"Add", "Mul", "Sub"}),
               {soft, g.random.chance(0.3) ? in : g.broadcastable(g.dtype(soft), g.dims(soft))});
}

std::string arg_reduce(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  return g.add(g.random.pick({"ArgMax", "ArgMin"}), {x},
               {attribute("axis", g.random.between(0, g.rank(x) - 1)),
                attribute("keepdims", g.random.between(0, 1)),
                attribute("select_last_index", g.random.chance(0.3))});
}

std::string cumulative(Growth& g) {
  std::string x = g.find([](const Literal& v) {
    return has_axes(v) && (is_float(v.dtype()) || v.dtype() == DType::I32 || v.dtype() == DType::I64);
  });
  if (x.empty()) return "";
  return g.add(
      "CumSum",
      {x, g.constant(Literal::scalar(DType::I64, static_cast<double>(g.random.between(0, g.rank(x) - 1))))},
      {attribute("exclusive", g.random.between(0, 1)), attribute("reverse", g.random.between(0, 1))});
}

std::string top_k(Growth& g) {
  std::string x = g.find(has_axes);
  if (x.empty()) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1);
  int64_t k = g.random.between(1, g.dims(x)[static_cast<size_t>(axis)]);
  return g.add_many(
      "TopK", {x, g.constant_ints({k})}, 2,
      {attribute("axis", axis), attribute("largest", g.random.between(0, 1)), attribute("sorted", 1)})[0];
}

std::string lp_norm(Growth& g) {
  std::string x = g.find(float_with_axes);
  if (x.empty()) return "";
  if (g.rank(x) == 4 && g.random.chance(0.3))
    return g.add("MeanVarianceNormalization", {x}, {attribute_ints("axes", some_axes(g, 4))});
  return g.add(
      "LpNormalization", {x},
      {attribute("axis", g.random.between(0, g.rank(x) - 1)), attribute("p", g.random.between(1, 2))});
}

} // namespace

std::span<const Motif> reduction_motifs() {
  static constexpr Motif motifs[] = {
      {"reduce", 5, reduce},
      {"reduce_integers", 2, reduce_integers},
      {"reduce_positive", 1, reduce_positive},
      {"softmax", 3, softmax},
      {"surrounded_softmax", 3, surrounded_softmax},
      {"arg_reduce", 2, arg_reduce},
      {"cumulative", 1, cumulative},
      {"top_k", 1, top_k},
      {"lp_norm", 1, lp_norm},
  };
  return motifs;
}

} // namespace firn::test
