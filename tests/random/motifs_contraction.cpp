// Motifs of matrix products and attention.
#include "tests/random/motifs.h"

#include <algorithm>
#include <cmath>

namespace firn::test {
namespace {

std::string matmul(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any_float(v) && !v.dims().empty(); });
  if (x.empty()) return "";
  const Dims& dims = g.dims(x);
  int64_t k = dims.back();
  // The other operand: weights, one of a batch, a vector, or what the graph has.
  if (g.random.chance(0.3)) {
    std::string y = g.find([&](const Literal& v) {
      if (v.dtype() != g.dtype(x) || v.dims().size() < 2 || v.dims()[v.dims().size() - 2] != k) return false;
      return v.dims().size() == 2 || dims.size() < 3 ||
             (v.dims().size() == dims.size() && std::equal(dims.begin(), dims.end() - 2, v.dims().begin()));
    });
    if (!y.empty()) return g.add("MatMul", {x, y});
  }
  Dims other{k, g.draw_dim()};
  if (g.random.chance(0.1)) other = {k};
  if (dims.size() > 2 && g.random.chance(0.3)) {
    other.assign(dims.begin(), dims.end() - 2);
    for (int64_t& dim : other)
      if (g.random.chance(0.3)) dim = 1;
    other.push_back(k), other.push_back(g.draw_dim());
  }
  return g.add("MatMul", {x, g.weights(g.dtype(x), other)});
}

std::string gemm(Growth& g) {
  std::string x = g.float_of_rank(2);
  if (x.empty()) return "";
  bool turned = g.random.chance(0.3), turn_weights = g.random.chance(0.5);
  int64_t m = g.dims(x)[turned ? 1 : 0], k = g.dims(x)[turned ? 0 : 1], n = g.draw_dim();
  std::string w = g.weights(g.dtype(x), turn_weights ? Dims{n, k} : Dims{k, n});
  Names operands{x, w};
  if (g.random.chance(0.7)) {
    Dims bias = g.random.pick<Dims>(std::vector<Dims>{{n}, {1, n}, {m, 1}, {m, n}, {1}, {}});
    operands.push_back(g.random.chance(0.5) ? g.broadcastable(g.dtype(x), {m, n})
                                            : g.weights(g.dtype(x), bias));
  }
  return g.add("Gemm", operands,
               {attribute("transA", turned), attribute("transB", turn_weights),
                attribute_real("alpha", g.random.pick({1.0f, 1.0f, 0.5f})),
                attribute_real("beta", g.random.pick({1.0f, 1.0f, 0.25f}))});
}

std::string einsum(Growth& g) {
  std::string x = g.float_of_rank(3);
  if (x.empty()) return "";
  Dims d = g.dims(x);
  struct Form {
    const char* equation;
    Dims other;
  };
  Form form = g.random.pick<Form>(std::vector<Form>{{"abc,cd->abd", {d[2], g.draw_dim()}},
                                                    {"abc,abd->acd", {d[0], d[1], g.draw_dim()}},
                                                    {"abc,adc->abd", {d[0], g.draw_dim(), d[2]}},
                                                    {"abc,bc->ab", {d[1], d[2]}},
                                                    {"abc,b->cab", {d[1]}},
                                                    {"abc,dca->bd", {g.draw_dim(), d[2], d[0]}}});
  return g.add("Einsum", {x, g.weights(g.dtype(x), form.other)}, {attribute_text("equation", form.equation)});
}

// Linear layers in a row, with bias, activation and a residual sum.
std::string mlp(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any_float(v) && v.dims().size() > 1; });
  if (x.empty()) return "";
  int64_t width = g.dims(x).back(), hidden = g.draw_dim();
  DType dtype = g.dtype(x);
  std::string h = g.add("MatMul", {x, g.weights(dtype, {width, hidden})});
  h = g.add("Add", {h, g.weights(dtype, {hidden})});
  h = g.add(g.random.pick({"Relu", "Gelu", "Sigmoid", "Tanh", "HardSwish"}), {h});
  h = g.add("MatMul", {h, g.weights(dtype, {hidden, width})});
  return g.add("Add", {h, x});
}

// Query, key and value from one tensor; a mask of some form; heads or none.
std::string attention(Growth& g) {
  std::string x = g.float_of_rank(3);
  if (x.empty() || g.literal(x).num_elements() > g.max_elements() / 2) return "";
  Dims d = g.dims(x);
  DType dtype = g.dtype(x);
  int64_t heads = g.random.pick({1, 2, 3}), width = g.random.pick({1, 3, 4, 5, 8, 11, 16});
  auto head = [&](bool keys) {
    std::string h = g.add("MatMul", {x, g.weights(dtype, {d[2], heads * width})});
    if (g.random.chance(0.4)) h = g.add("Add", {h, g.weights(dtype, {heads * width})});
    h = g.add("Reshape", {h, g.reshape_target({d[0], d[1], heads, width})});
    Dims order = keys && g.random.chance(0.7) ? Dims{0, 2, 3, 1} : Dims{0, 2, 1, 3};
    std::string moved = g.add("Transpose", {h}, {attribute_ints("perm", order)});
    return keys && order[2] == 1 ? g.add("Transpose", {moved}, {attribute_ints("perm", {0, 1, 3, 2})})
                                 : moved;
  };
  std::string scores = g.add("MatMul", {head(false), head(true)});
  std::string scale =
      g.constant_scalar(dtype, g.random.pick({0.5, 0.25, 1 / std::sqrt(static_cast<double>(width))}));
  scores = g.add("Mul", {scores, scale});
  if (scores.empty()) return "";
  switch (g.random.between(0, 3)) {
  case 0: scores = g.add("Add", {scores, g.broadcastable(dtype, g.dims(scores))}); break;
  case 1: {
    auto mask = std::make_shared<Literal>(DType::Bool, Dims{1, 1, d[1], d[1]});
    for (int64_t i = 0; i < mask->num_elements(); ++i) mask->set_int(i, i / d[1] >= i % d[1]);
    scores = g.add("Where", {g.random.chance(0.5) ? g.constant(mask) : g.input(mask), scores,
                             g.constant_scalar(dtype, -50)});
    break;
  }
  default: break;
  }
  std::string out = g.add("MatMul", {g.add("Softmax", {scores}, {attribute("axis", -1)}), head(false)});
  out = g.add("Transpose", {out}, {attribute_ints("perm", {0, 2, 1, 3})});
  out = g.add("Reshape", {out, g.reshape_target({d[0], d[1], heads * width})});
  if (g.random.chance(0.3)) return out;
  return g.add("Add", {g.add("MatMul", {out, g.weights(dtype, {heads * width, d[2]})}), x});
}

std::string attention_node(Growth& g) {
  int64_t batch = g.random.pick({1, 1, 2}), heads = g.random.pick({2, 4}), kv = g.random.pick({1, 2}),
          q = g.draw_dim(), k = g.draw_dim();
  int64_t width = g.random.pick({1, 3, 8, 11}), value_width = g.random.chance(0.6) ? width : 5;
  DType dtype = g.random.pick({DType::F32, DType::F32, DType::F16, DType::F64});
  if (heads * q * k > 4000) return "";
  Names operands{g.input(g.draw_literal(dtype, {batch, heads, q, width})),
                 g.input(g.draw_literal(dtype, {batch, kv, k, width})),
                 g.input(g.draw_literal(dtype, {batch, kv, k, value_width}))};
  bool causal = g.random.chance(0.3);
  if (!causal && g.random.chance(0.5)) {
    Dims bias =
        g.random.pick<Dims>(std::vector<Dims>{{q, k}, {1, 1, q, k}, {batch, 1, 1, k}, {batch, heads, q, k}});
    bool fixed = std::all_of(bias.begin(), bias.end(), [&](int64_t extent) { return g.is_fixed(extent); });
    operands.push_back(fixed ? g.fresh(dtype, bias) : g.input(g.draw_literal(dtype, bias)));
  }
  std::vector<Message> attributes{attribute("is_causal", causal)};
  if (g.random.chance(0.3)) attributes.push_back(attribute_real("softcap", 4));
  return g.add("Attention", operands, attributes);
}

// Positions turned into the phases of pairs, half by half or pair by pair.
std::string rotary(Growth& g) {
  int64_t batch = g.random.pick({1, 2}), heads = g.random.pick({1, 3}), time = g.draw_dim();
  int64_t width = 2 * g.random.between(1, 9), turned = g.random.chance(0.7) ? width : 2;
  DType dtype = g.random.pick({DType::F32, DType::F32, DType::F16});
  std::string x = g.input(g.draw_literal(dtype, {batch, heads, time, width}));
  Names operands{x, g.fresh(dtype, {20, turned / 2}), g.fresh(dtype, {20, turned / 2})};
  auto ids = std::make_shared<Literal>(DType::I64, Dims{batch, time});
  for (int64_t i = 0; i < ids->num_elements(); ++i) ids->set_int(i, g.random.between(0, 19));
  operands.push_back(g.input(ids));
  return g.add("RotaryEmbedding", operands,
               {attribute("interleaved", g.random.between(0, 1)),
                attribute("rotary_embedding_dim", turned == width ? 0 : turned)});
}

std::string determinant(Growth& g) {
  int64_t n = g.random.between(1, 4);
  return g.add("Det", {g.input(g.draw_literal(DType::F32, {g.random.between(1, 5), n, n}))});
}

} // namespace

std::span<const Motif> contraction_motifs() {
  static constexpr Motif motifs[] = {
      {"matmul", 6, matmul},       {"gemm", 4, gemm},
      {"einsum", 1, einsum},       {"mlp", 3, mlp},
      {"attention", 3, attention}, {"attention_node", 2, attention_node},
      {"rotary", 1, rotary},       {"determinant", 1, determinant},
  };
  return motifs;
}

} // namespace firn::test
