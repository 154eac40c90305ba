// Motifs that tempt the compiler to write over a value that it still needs.
#include "tests/random/motifs.h"

namespace firn::test {
namespace {

// A row, a slice, a gather or a transpose of a temporary that dies where it is used, on a kernel's result of
// the same size.
std::string part_of_dying_value(Growth& g) {
  std::string x =
      g.find([](const Literal& v) { return is_any_float(v) && v.dims().size() > 1 && v.num_elements() > 3; });
  if (x.empty()) return "";
  DType dtype = g.dtype(x);
  Dims dims = g.dims(x);
  std::string dying = g.add(g.random.pick({"Sigmoid", "Relu", "Tanh", "Neg"}), {x});
  int64_t axis = g.random.between(0, g.rank(x) - 1), extent = dims[static_cast<size_t>(axis)];
  std::string part = dying;
  switch (g.random.between(0, 4)) {
  case 0: {
    int64_t row = g.random.between(0, extent - 1);
    part =
        g.add("Slice", {dying, g.constant_ints({row}), g.constant_ints({row + 1}), g.constant_ints({axis})});
    break;
  }
  case 1: {
    Dims order;
    for (int64_t i = 0; i < extent; ++i) order.push_back(g.random.between(0, extent - 1));
    part = g.add("Gather", {dying, g.constant_ints(order)}, {attribute("axis", axis)});
    break;
  }
  case 2:
    part = g.add("Slice", {dying, g.constant_ints({-1}), g.constant_ints({-extent - 1}),
                           g.constant_ints({axis}), g.constant_ints({-1})});
    break;
  case 3: {
    if (dims[dims.size() - 1] != dims[dims.size() - 2]) break;
    Dims order;
    for (int64_t i = 0; i < g.rank(x); ++i) order.push_back(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    part = g.add("Transpose", {dying}, {attribute_ints("perm", order)});
    break;
  }
  default: break;
  }
  if (part.empty()) return "";
  std::string other;
  switch (g.random.between(0, 3)) {
  case 0: other = g.add("MatMul", {x, g.weights(dtype, {dims.back(), dims.back()})}); break;
  case 1: other = g.add("Softmax", {x}, {attribute("axis", -1)}); break;
  case 2:
    if (dims.size() != 4) return "";
    other = g.add("Conv", {x, g.weights(dtype, {dims[1], dims[1], 1, 1})});
    break;
  default:
    other = g.add("CumSum", {x, g.constant(Literal::scalar(DType::I64, static_cast<double>(axis)))});
    break;
  }
  return g.add(g.random.pick({"Add", "Mul", "Sub"}),
               g.random.chance(0.5) ? Names{other, part} : Names{part, other});
}

// One value, several users of different shapes, all of them joined again.
std::string many_users(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any_float(v) && !v.dims().empty(); });
  if (x.empty()) return "";
  std::string a = g.add("Relu", {x});
  std::string mean = g.add("ReduceMean", {a, g.constant_ints({-1})});
  std::string b = g.add("Sub", {a, mean}), c = g.add("Mul", {a, b});
  std::string sum = g.add("Add", {c, g.add("Softmax", {a}, {attribute("axis", -1)})});
  return g.random.chance(0.5) ? g.add("Sub", {sum, a}) : sum;
}

// v = v + v, and other uses of one value as both operands.
std::string doubled(Growth& g) {
  std::string x = g.find(is_any_float);
  if (x.empty()) return "";
  DType dtype = g.dtype(x);
  for (int64_t i = g.random.between(1, 4); i > 0; --i) {
    x = g.add("Add", {x, x});
    if (g.random.chance(0.3)) x = g.add("Tanh", {x});
  }
  if (x.empty()) return "";
  return g.add("Mul", {x, g.constant_scalar(dtype, 0.125)});
}

// A window over time that drops its oldest rows; with a state it moves in place.
std::string sliding_window(Growth& g) {
  int64_t rows = g.random.between(2, 9), fresh = g.random.between(1, rows - 1), width = g.draw_dim();
  DType dtype = g.draw_float();
  std::string past = g.input(g.draw_literal(dtype, {1, rows, width})),
              now = g.input(g.draw_literal(dtype, {1, fresh, width}));
  std::string kept =
      g.add("Slice", {past, g.constant_ints({fresh}), g.constant_ints({rows}), g.constant_ints({1})});
  if (g.random.chance(0.3)) now = g.add("Tanh", {now});
  std::string next = g.add("Concat", {kept, now}, {attribute("axis", 1)});
  if (next.empty()) return "";
  if (g.random.chance(0.7)) g.make_state(past, next);
  return g.add(g.random.pick({"ReduceMean", "ReduceMax", "ReduceSum"}),
               {next, g.constant_ints({g.random.between(1, 2)})});
}

// A cache written at one position.
std::string cache(Growth& g) {
  int64_t rows = g.random.between(2, 9), width = g.draw_dim();
  DType dtype = g.draw_float();
  std::string past = g.input(g.draw_literal(dtype, {rows, width})),
              row = g.input(g.draw_literal(dtype, {1, width}));
  std::string next = g.add(
      "ScatterND",
      {past, g.input(Literal::of(DType::I64, {1, 1}, std::vector<int64_t>{g.random.between(0, rows - 1)})),
       row});
  if (next.empty()) return "";
  if (g.random.chance(0.7)) g.make_state(past, next);
  std::string scores = g.add("MatMul", {row, g.add("Transpose", {next}, {attribute_ints("perm", {1, 0})})});
  return g.add("MatMul", {g.add("Softmax", {scores}, {attribute("axis", -1)}), next});
}

// A state that is computed from itself and from something else.
std::string counter_state(Growth& g) {
  std::string x = g.find(is_any_float);
  if (x.empty()) return "";
  std::string past = g.input(g.draw_literal(g.dtype(x), g.dims(x)));
  std::string next = g.add("Add", {g.add("Mul", {past, g.constant_scalar(g.dtype(x), 0.5)}), x});
  if (next.empty()) return "";
  if (g.random.chance(0.7)) g.make_state(past, next);
  return g.random.chance(0.5) ? next : g.add("Sub", {next, past});
}

} // namespace

std::span<const Motif> in_place_motifs() {
  static constexpr Motif motifs[] = {
      {"part_of_dying_value", 6, part_of_dying_value},
      {"many_users", 3, many_users},
      {"doubled", 2, doubled},
      {"sliding_window", 1, sliding_window},
      {"cache", 1, cache},
      {"counter_state", 1, counter_state},
  };
  return motifs;
}

} // namespace firn::test
