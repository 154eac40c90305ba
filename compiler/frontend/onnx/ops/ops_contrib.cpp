// Importers of operators of com.microsoft that ONNX Runtime's optimizer fuses: activations, norms and
// products.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/convolution_operators.h"
#include "compiler/frontend/onnx/ops/greedy_search.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"
#include "compiler/graph/composites.h"

#include <numeric>

namespace firn::onnx {

namespace {

Value gelu(NodeContext& node, Value x, bool by_tanh) {
  if (!x) return {};
  GraphBuilder builder = node.builder();
  return make_gelu(builder, x, by_tanh);
}

// The vector in an input, one element per column of x; null if the input is absent.
Value row_of_input(NodeContext& node, int input, Value x) {
  return input_with_extents(node, input, {x.type().dims.back()});
}

// x plus the vector in an input, if that is present.
Value biased(NodeContext& node, Value x, int input) {
  if (!x || !node.has_input(input)) return x;
  if (!node.check(x.rank() > 0, "the input is a scalar")) return {};
  return add(node, x, row_of_input(node, input, x));
}

void import_gelu(NodeContext& node) {
  node.set_output(0, gelu(node, node.input(0), false));
}
void import_bias_gelu(NodeContext& node) {
  node.set_output(0, gelu(node, biased(node, node.input(0), 1), false));
}
// The first half of the columns times gelu of the second.
void import_bias_split_gelu(NodeContext& node) {
  if (!node.check_rank_at_least(0, 1)) return;
  Value x = biased(node, node.input(0), 1);
  auto columns = node.static_dim(0, node.input(0).rank() - 1);
  if (!x || !columns || !node.check(*columns % 2 == 0, node.input_label(0) + " has an odd number of columns"))
    return;
  int dim = x.rank() - 1;
  Value gate = gelu(node, node.slice_dim(x, dim, *columns / 2, *columns), false);
  node.set_output(0, multiply(node, node.slice_dim(x, dim, 0, *columns / 2), gate));
}
void import_fast_gelu(NodeContext& node) {
  node.set_output(0, gelu(node, biased(node, node.input(0), 1), true));
}
void import_quick_gelu(NodeContext& node) {
  Value x = node.input(0), gate = times(node, x, node.float_attribute("alpha", 1.702f));
  node.set_output(0, multiply(node, x, node.unary(Opcode::Logistic, gate)));
}

// --- Products with an activation behind.

struct Activation {
  std::string name;
  double alpha, beta;
};

// Applies the activation of that name; its parameters default to those of ONNX's operator of that name.
Value activated(NodeContext& node, Value x, const Activation& a) {
  if (!x || a.name.empty()) return x;
  auto number = [&](double value) { return node.scalar(x.dtype(), value); };
  if (a.name == "Relu") return larger(node, x, number(0));
  if (a.name == "Tanh") return node.unary(Opcode::Tanh, x);
  if (a.name == "Sigmoid") return node.unary(Opcode::Logistic, x);
  if (a.name == "LeakyRelu") return node.select(node.compare("lt", x, number(0)), times(node, x, a.alpha), x);
  if (a.name == "Clip") return smaller(node, larger(node, x, number(a.alpha)), number(a.beta));
  if (a.name == "HardSigmoid")
    return smaller(node, larger(node, plus(node, times(node, x, a.alpha), a.beta), number(0)), number(1));
  return node.fail_unsupported("attribute activation is '" + a.name +
                               "', wants one of Relu, Tanh, Sigmoid, "
                               "LeakyRelu, Clip, HardSigmoid"),
         Value{};
}

void set_activated(NodeContext& node, const Activation& activation, Value addend = {}) {
  if (node.failed() || node.outputs().empty()) return;
  Value y = node.outputs()[0];
  if (addend && y) addend = with_extents(node, addend, y.type().dims);
  if (addend && !node.check(addend.type() == y.type(),
                            "the addend is " + addend.type().to_string() + ", wants " + y.type().to_string()))
    return;
  node.set_output(0, activated(node, addend ? add(node, y, addend) : y, activation));
}

void import_fused_conv(NodeContext& node) {
  Activation activation{node.string_attribute("activation", ""), 0, 0};
  auto parameters = node.floats_attribute("activation_params");
  size_t wanted = activation.name == "LeakyRelu"                                  ? 1
                  : activation.name == "Clip" || activation.name == "HardSigmoid" ? 2
                                                                                  : 0;
  if (!node.check(parameters.size() == wanted || wanted == 0,
                  "attribute activation_params has " + std::to_string(parameters.size()) +
                      " elements, wants " + std::to_string(wanted)))
    return;
  if (wanted > 0) activation.alpha = parameters[0];
  if (wanted > 1) activation.beta = parameters[1];
  import_conv(node);
  set_activated(node, activation, node.input(3));
}

void import_fused_gemm(NodeContext& node) {
  Activation activation{node.string_attribute("activation", ""), 0, 0};
  bool hard = activation.name == "HardSigmoid";
  activation.alpha = node.float_attribute("activation_alpha", hard ? 0.2f : 0.01f);
  activation.beta = node.float_attribute("activation_beta", 0.5);
  import_gemm(node);
  set_activated(node, activation);
}

// x with its last two dims swapped, if it has two.
Value matrix(NodeContext& node, Value x, bool transposed) {
  if (!x || !transposed || x.rank() < 2) return x;
  Ints order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return node.transpose(x, order);
}

void import_fused_matmul(NodeContext& node) {
  if (node.flag_attribute("transBatchA", false) || node.flag_attribute("transBatchB", false))
    return node.fail_unsupported("attribute transBatchA or transBatchB is set");
  double alpha = node.float_attribute("alpha", 1);
  Value y = matrix_product(node, matrix(node, node.input(0), node.flag_attribute("transA", false)),
                           matrix(node, node.input(1), node.flag_attribute("transB", false)));
  node.set_output(0, alpha == 1 ? y : times(node, y, alpha));
}

// --- Norms, over the last dim.

// The layer norm of x by inputs `gamma` and `beta` as output 0, statistics as outputs 1 and 2 if
// `statistics`.
void set_layer_norm(NodeContext& node, Value x, int gamma, int beta, bool statistics) {
  double epsilon = node.float_attribute("epsilon", 1e-12f);
  if (!x || node.failed() || !node.check(x.rank() > 0, "the sum is a scalar")) return;
  Value scale = row_of_input(node, gamma, x), bias = row_of_input(node, beta, x);
  if (node.failed()) return;
  statistics = statistics && (node.has_output(1) || node.has_output(2));
  GraphBuilder builder = node.builder();
  Instruction* norm = make_layer_norm(builder, x, scale, bias, x.rank() - 1, epsilon, DType::F32, statistics);
  node.set_output(0, norm->result());
  for (int i = 1; statistics && i < 3; ++i)
    if (node.has_output(i)) node.set_output(i, norm->result(i));
}

// The root mean square norm of x by the scale in input 1 or 2, and 1/deviation as output `inverse`.
void set_rms_norm(NodeContext& node, Value x, int scale, int dim, double epsilon, int inverse) {
  if (!x || node.failed()) return;
  Value row = row_of_input(node, scale, x);
  if (!row) return;
  GraphBuilder builder = node.builder();
  node.set_output(0, make_rms_norm(builder, x, row, dim, epsilon, DType::F32));
  if (!node.has_output(inverse)) return;
  Value squares = node.reduce(Opcode::Add, multiply(node, x, x), {dim}, true);
  Value mean = divide(node, squares, node.count(x, {dim}, x.dtype()));
  node.set_output(inverse, node.unary(Opcode::Rsqrt, plus(node, mean, epsilon)));
}

// input + skip, which may lack the batch, + a bias.
Value skipped(NodeContext& node, int bias) {
  Value x = node.input(0), skip = input_with_extents(node, 1, x.type().dims, /*stretches=*/true);
  return biased(node, add(node, x, skip), bias);
}

void import_skip_layer_normalization(NodeContext& node) {
  Value sum = skipped(node, 4);
  set_layer_norm(node, sum, 2, 3, true);
  if (node.has_output(3)) node.set_output(3, sum);
}

void import_skip_simplified_layer_normalization(NodeContext& node) {
  Value sum = skipped(node, 3);
  if (!sum || !node.check(sum.rank() > 0, "the sum is a scalar")) return;
  if (node.has_output(1))
    return node.fail_unsupported("output 'mean' is wanted, which this norm does not take");
  set_rms_norm(node, sum, 2, sum.rank() - 1, node.float_attribute("epsilon", 1e-12f), 2);
  if (node.has_output(3)) node.set_output(3, sum);
}

void import_simplified_layer_normalization(NodeContext& node) {
  Value x = node.input(0);
  auto axis = node.axis(node.int_attribute("axis", -1), x.rank());
  if (!axis) return;
  if (!node.check(*axis == x.rank() - 1,
                  "attribute axis is " + std::to_string(*axis) + ", wants the last one"))
    return;
  set_rms_norm(node, x, 1, *axis, node.float_attribute("epsilon", 1e-5f), 1);
}

// Rows of input `table` at the indices.
Value rows_at(NodeContext& node, int table, Value indices) {
  if (!node.check_rank(table, 2)) return {};
  return node.op(Opcode::Gather, {node.input(table), indices}, {{"axis", int64_t{0}}});
}

// Words, positions and segments looked up and added, and their layer norm. Output 1 counts each row's mask.
void import_embed_layer_normalization(NodeContext& node) {
  Value ids = node.input(0);
  for (int input : {2, 3, 5, 6})
    if (!node.check_given(input)) return;
  if (!node.check_rank(0, 2)) return;
  Value positions = node.input(8);
  if (!positions) positions = node.iota(DType::I64, {Dim(1), ids.type().dims[1]}, 1);
  Value sum = add(node, rows_at(node, 2, ids), rows_at(node, 3, positions));
  if (node.has_input(1) != node.has_input(4))
    return node.fail("has one of segment_ids and segment_embedding, wants both");
  if (node.has_input(1)) sum = add(node, sum, rows_at(node, 4, node.input(1)));
  set_layer_norm(node, sum, 5, 6, false);
  if (node.has_output(1)) {
    Value none = node.splat(DType::I32, {ids.type().dims[0]}, 0);
    Value one = node.has_input(7)
                    ? node.compare("eq", node.input(7), node.scalar_int(node.input(7).dtype(), 1))
                    : Value{};
    node.set_output(1, one ? node.reduce(Opcode::Add, node.convert(one, DType::I32), {1}, false) : none);
  }
  if (node.has_output(2)) node.set_output(2, sum);
}

constexpr const char* kDomain = "com.microsoft";

const OperatorRow kRows[] = {
    {kDomain, "BiasGelu", 1, kLatest, 2, 2, 1, 1, "T=f32|f16|bf16 T", import_bias_gelu, "gelu(x + bias)",
     NarrowFloats::Widened},
    {kDomain, "BiasSplitGelu", 1, kLatest, 2, 2, 1, 1, "T=float T", import_bias_split_gelu,
     "half of x + bias times gelu of the other half", NarrowFloats::Widened},
    {kDomain, "EmbedLayerNormalization", 1, kLatest, 1, 9, 1, 3, "i32 i32 T=f32|f16|bf16 T T T T i32 i32",
     import_embed_layer_normalization, "layer norm of word, position and segment embeddings",
     NarrowFloats::Widened},
    {kDomain, "FastGelu", 1, kLatest, 1, 2, 1, 1, "T=f32|f16|bf16 T", import_fast_gelu,
     "gelu(x + bias) by tanh", NarrowFloats::Widened},
    {kDomain, "FusedConv", 1, kLatest, 2, 4, 1, 1, "T=f32|f16|bf16 T T T", import_fused_conv,
     "convolution with an addend and an activation", NarrowFloats::Widened},
    {kDomain, "FusedGemm", 1, kLatest, 2, 3, 1, 1, "T=f32|f16|bf16 T T", import_fused_gemm,
     "alpha * A * B + beta * C with an activation", NarrowFloats::Widened},
    {kDomain, "FusedMatMul", 1, kLatest, 2, 2, 1, 1, "T=f32|f16|bf16 T", import_fused_matmul,
     "alpha * A * B, either transposed", NarrowFloats::Widened},
    {kDomain, "Gelu", 1, kLatest, 1, 1, 1, 1, "f32|f16|bf16", import_gelu, "Gaussian error linear unit",
     NarrowFloats::Widened},
    {kDomain, "GreedySearch", 1, kLatest, 2, 7, 1, 1, "i32 i32 i32 f32 i32 i32 i32", import_greedy_search,
     "text, token by token, by a decoder that is a subgraph"},
    {kDomain, "QuickGelu", 1, kLatest, 1, 1, 1, 1, "f32|f16|bf16", import_quick_gelu,
     "x * sigmoid(alpha * x)", NarrowFloats::Widened},
    {kDomain, "SkipLayerNormalization", 1, kLatest, 3, 5, 1, 4, "T=f32|f16|bf16 T T T T",
     import_skip_layer_normalization, "layer norm of a sum", NarrowFloats::Widened},
    {kDomain, "SkipSimplifiedLayerNormalization", 1, kLatest, 3, 4, 1, 4, "T=f32|f16|bf16 T T T",
     import_skip_simplified_layer_normalization, "root mean square norm of a sum", NarrowFloats::Widened},
    {"", "SimplifiedLayerNormalization", 1, kLatest, 2, 2, 1, 2, "T=f32|f16|bf16 T",
     import_simplified_layer_normalization, "root mean square norm, as ONNX Runtime's optimizer writes it",
     NarrowFloats::Widened},
};

} // namespace

std::span<const OperatorRow> contrib_operators() {
  return kRows;
}

} // namespace firn::onnx
