// The table of forms. A new one is a row: how it is written, and with which types.
#include "tests/passes/quantised_forms.h"

namespace firn::test {
namespace {

const std::vector<Activations> kBytes = {{DType::U8, 128}, {DType::U8, 0}, {DType::I8, 0}};
const std::vector<Activations> kWords = {{DType::U16, 32768}, {DType::I16, 0}};
const std::vector<Activations> kQuantised = {
    {DType::U8, 128}, {DType::U8, 0}, {DType::I8, 0}, {DType::U16, 32768}, {DType::I16, 0}};
const std::vector<Activations> kFloat = {{DType::F32, 0}};
const std::vector<DType> kAnyWeights = {DType::I8, DType::U8, DType::I4, DType::U4};
const std::vector<DType> kByteWeights = {DType::I8, DType::U8};
const std::vector<DType> kFewBits = {DType::I4, DType::U4};
const std::vector<DType> kSigned = {DType::I8};
const std::vector<DType> kUnsigned = {DType::U8};
const std::vector<Per> kWhole = {Per::Tensor, Per::Channel};
const std::vector<Per> kTensor = {Per::Tensor}, kChannel = {Per::Channel}, kBlocks = {Per::Block};
const std::vector<ZeroPoints> kAny = {ZeroPoints::None, ZeroPoints::Middle, ZeroPoints::Any},
                              kNone = {ZeroPoints::None}, kGiven = {ZeroPoints::Middle, ZeroPoints::Any},
                              kFew = {ZeroPoints::None, ZeroPoints::Middle};

using Build = std::function<std::string(QuantisedModel&)>;

AttributeList window(int64_t pad, int64_t stride = 1, int64_t dilation = 1, int64_t groups = 1,
                     size_t rank = 2) {
  using Ints = std::vector<int64_t>;
  return {attribute_ints("pads", Ints(2 * rank, pad)), attribute_ints("strides", Ints(rank, stride)),
          attribute_ints("dilations", Ints(rank, dilation)), attribute("group", groups)};
}

Build conv(Dims filters, AttributeList attributes, Dims image = {1, 64, 12, 12}) {
  return [=](QuantisedModel& m) {
    std::string x = m.qdq(m.input(image));
    return m.qdq(m.op("Conv", {x, m.weights(filters, 0), m.bias(filters[0])}, attributes));
  };
}

Build conv_of_floats(Dims filters, AttributeList attributes) {
  return [=](QuantisedModel& m) {
    std::string x = m.qdq(m.input({1, 64, 12, 12})), w = m.float_weights(filters, 0);
    return m.qdq(m.op("Relu", {m.op("Conv", {x, w, m.floats({filters[0]})}, attributes)}));
  };
}

Build padded_conv() {
  return [](QuantisedModel& m) {
    std::string x = m.op("Pad", {m.qdq(m.input({1, 64, 12, 12})), m.indices({0, 0, 1, 1, 0, 0, 1, 1})});
    return m.qdq(m.op("Conv", {x, m.weights({64, 64, 3, 3}, 0)}));
  };
}

Build conv_transpose(Dims filters, AttributeList attributes) {
  return [=](QuantisedModel& m) {
    std::string x = m.qdq(m.input({1, filters[0], 12, 12}));
    return m.qdq(m.op("ConvTranspose", {x, m.weights(filters, 1, 0), m.bias(filters[1])}, attributes));
  };
}

Build matmul(int64_t rows, Dims weights = {128, 192}) {
  return [=](QuantisedModel& m) {
    std::string x = m.qdq(m.input({rows, weights[0]}));
    return m.op("MatMul", {x, m.weights(weights, 1, 0)});
  };
}

Build matmul_of_floats() {
  return [](QuantisedModel& m) {
    std::string x = m.qdq(m.input({24, 128}));
    return m.qdq(m.op("MatMul", {x, m.float_weights({128, 192}, 1)}));
  };
}

Build matmul_transposed() {
  return [](QuantisedModel& m) {
    std::string x = m.qdq(m.input({9, 128}));
    std::string w = m.op("Transpose", {m.weights({192, 128}, 0)}, {attribute_ints("perm", {1, 0})});
    return m.qdq(m.op("MatMul", {x, w}));
  };
}

Build gemm() {
  return [](QuantisedModel& m) {
    std::string x = m.qdq(m.input({9, 128}));
    return m.qdq(m.op("Gemm", {x, m.weights({192, 128}, 0), m.bias(192)}, {attribute("transB", 1)}));
  };
}

Build einsum() {
  return [](QuantisedModel& m) {
    std::string x = m.qdq(m.input({2, 12, 128}));
    return m.qdq(
        m.op("Einsum", {x, m.weights({128, 192}, 1, 0)}, {attribute_text("equation", "bsk,kn->bsn")}));
  };
}

Build shared_weights() {
  return [](QuantisedModel& m) {
    std::string w = m.weights({128, 128}, 1, 0), x = m.input({24, 128});
    for (int layer = 0; layer < 3; ++layer) x = m.op("MatMul", {m.qdq(x), w});
    return x;
  };
}

std::string activations_product(QuantisedModel& m) {
  return m.qdq(m.op("MatMul", {m.qdq(m.input({2, 24, 64})), m.qdq(m.input({2, 64, 20}))}));
}

std::string attention(QuantisedModel& m) {
  std::string q = m.qdq(m.input({2, 24, 64})), k = m.qdq(m.input({2, 20, 64})),
              v = m.qdq(m.input({2, 20, 64}));
  std::string scores = m.op("MatMul", {q, m.op("Transpose", {k}, {attribute_ints("perm", {0, 2, 1})})});
  std::string softmax = m.op("Softmax", {m.op("Mul", {m.qdq(scores), m.scalar(.125f)})});
  return m.qdq(m.op("MatMul", {m.qdq(softmax), v}));
}

// Operators on the integers themselves. Their results become floats.
Build qlinear_conv(Dims filters, AttributeList attributes, bool per_channel) {
  return [=](QuantisedModel& m) {
    const auto [dtype, zero] = m.activations();
    Dims parameters = per_channel ? Dims{filters[0]} : Dims{};
    std::string x = m.quantise(m.input({1, filters[1], 12, 12})), scale = m.scalar(.03f),
                z = m.zero_point(dtype, zero);
    std::string w = m.integers(filters), w_scale = m.scales(parameters), w_zero = m.zero_points(parameters);
    return m.dequantise(m.op("QLinearConv", {x, scale, z, w, w_scale, w_zero, scale, z}, attributes));
  };
}

std::string conv_integer(QuantisedModel& m) {
  const auto [dtype, zero] = m.activations();
  std::string x = m.quantise(m.input({1, 64, 12, 12}));
  std::string w = m.integers({64, 64, 3, 3}), z = m.zero_point(dtype, zero), w_zero = m.zero_points({});
  return m.op("Cast", {m.op("ConvInteger", {x, w, z, w_zero}, window(1))}, {attribute("to", F32)});
}

Build matmul_integer(bool per_channel) {
  return [=](QuantisedModel& m) {
    const auto [dtype, zero] = m.activations();
    std::string x = m.quantise(m.input({17, 128})), z = m.zero_point(dtype, zero);
    std::string w = m.integers({128, 192}), w_zero = m.zero_points(per_channel ? Dims{192} : Dims{});
    return m.op("Cast", {m.op("MatMulInteger", {x, w, z, w_zero})}, {attribute("to", F32)});
  };
}

std::string qlinear_matmul(QuantisedModel& m) {
  const auto [dtype, zero] = m.activations();
  std::string x = m.quantise(m.input({17, 128})), scale = m.scalar(.03f), z = m.zero_point(dtype, zero);
  std::string w = m.integers({128, 192}), w_scale = m.scales({192}), w_zero = m.zero_points({192});
  return m.dequantise(m.op("QLinearMatMul", {x, scale, z, w, w_scale, w_zero, scale, z}));
}

// A layer in the form of dynamic quantisers: the scale of its input is computed.
std::string dynamic_matmul(QuantisedModel& m) {
  Names q = m.ops("DynamicQuantizeLinear", {m.input({17, 128})}, 3);
  std::string w = m.integers({128, 192}), w_zero = m.zero_points({}), scale = m.scales({192});
  std::string sums = m.op("MatMulInteger", {q[0], w, q[2], w_zero});
  return m.op("Mul", {m.op("Cast", {sums}, {attribute("to", F32)}), m.op("Mul", {q[1], scale})});
}

// Rows of a dequantised table.
Build embedding(int64_t axis) {
  return [=](QuantisedModel& m) {
    return m.op("Gather", {m.weights({500, 96}, axis, 1), m.index_input({1, 8})});
  };
}

// A recurrent layer of both directions.
Build recurrent(const char* cell, int64_t gates, int64_t steps) {
  return [=](QuantisedModel& m) {
    const int64_t in = 96, hidden = 64;
    std::string x = m.qdq(m.input({steps, 1, in})), w = m.weights({2, gates * hidden, in}, 1),
                r = m.weights({2, gates * hidden, hidden}, 1);
    return m.ops(cell, {x, w, r, m.floats({2, 2 * gates * hidden})}, 2,
                 {attribute("hidden_size", hidden), attribute_text("direction", "bidirectional")})[0];
  };
}

Build matmul_nbits(int64_t bits, int64_t rows) {
  return [=](QuantisedModel& m) {
    const int64_t steps = 128, columns = 192, blocks = steps / kBlock;
    std::string w = m.packed({columns, blocks, kBlock * bits / 8}), scale = m.scales({columns * blocks}),
                zeros = m.packed_zero_points({columns, blocks * bits / 8});
    return m.op("MatMulNBits", {m.input({rows, steps}), w, scale, zeros},
                {attribute("K", steps), attribute("N", columns), attribute("bits", bits),
                 attribute("block_size", kBlock)},
                "com.microsoft");
  };
}

} // namespace

std::vector<Form> quantised_forms() {
  return {
      {"Conv 3x3", conv({64, 64, 3, 3}, window(1)), kQuantised, kAnyWeights, kWhole, kAny},
      {"Conv 1x1", conv({64, 64, 1, 1}, window(0)), kQuantised, kAnyWeights, kChannel, kAny},
      {"Conv strided", conv({64, 64, 3, 3}, window(1, 2)), kQuantised, kAnyWeights, kChannel, kAny},
      {"Conv dilated", conv({64, 64, 3, 3}, window(0, 1, 2)), kQuantised, kAnyWeights, kChannel, kAny},
      {"Conv grouped", conv({64, 32, 3, 3}, window(1, 1, 1, 2)), kBytes, kAnyWeights, kChannel, kAny},
      {"Conv of 256 weights", conv({16, 16, 1, 1}, window(0), {1, 16, 12, 12}), kQuantised, kAnyWeights,
       kChannel, kAny},
      {"Conv depthwise", conv({64, 1, 3, 3}, window(1, 1, 1, 64)), kBytes, kByteWeights, kChannel, kAny},
      {"Conv 1-D", conv({64, 64, 3}, window(1, 1, 1, 1, 1), {1, 64, 40}), kQuantised, kByteWeights, kChannel,
       kAny},
      {"Conv 3-D", conv({64, 32, 3, 3, 3}, window(1, 1, 1, 1, 3), {1, 32, 5, 6, 6}), kQuantised, kByteWeights,
       kChannel, kAny},
      {"Conv weights of floats", conv_of_floats({64, 64, 3, 3}, window(1)), kBytes, kByteWeights, kWhole,
       kAny},
      {"Conv weights of floats, words", conv_of_floats({64, 64, 3, 3}, window(1)), kWords, kSigned, kWhole,
       kNone},
      {"Conv depthwise weights of floats", conv_of_floats({64, 1, 3, 3}, window(1, 1, 1, 64)), kBytes,
       kSigned, kChannel, kNone},
      {"Conv behind Pad", padded_conv(), kQuantised, kAnyWeights, kChannel, kAny},
      {"ConvTranspose 2x2", conv_transpose({64, 32, 2, 2}, window(0, 2)), kQuantised, kAnyWeights, kChannel,
       kAny},
      {"ConvTranspose 4x4", conv_transpose({64, 32, 4, 4}, window(1, 2)), kQuantised, kAnyWeights, kWhole,
       kAny},
      {"MatMul of 1 row", matmul(1), kQuantised, kAnyWeights, kWhole, kAny},
      {"MatMul of 3 rows", matmul(3), kQuantised, kAnyWeights, kChannel, kAny},
      {"MatMul of 17 rows", matmul(17), kQuantised, kAnyWeights, kChannel, kAny},
      {"MatMul of 64 rows", matmul(64), kQuantised, kAnyWeights, kWhole, kAny},
      {"MatMul of 256 weights", matmul(5, {16, 16}), kQuantised, kAnyWeights, kChannel, kAny},
      {"MatMul in blocks of 1 row", matmul(1), kBytes, kAnyWeights, kBlocks, kAny},
      {"MatMul in blocks of 17 rows", matmul(17), kBytes, kAnyWeights, kBlocks, kAny},
      {"MatMul transposed", matmul_transposed(), kQuantised, kAnyWeights, kWhole, kAny},
      {"MatMul weights of floats", matmul_of_floats(), kBytes, kByteWeights, kWhole, kAny},
      {"Gemm", gemm(), kQuantised, kAnyWeights, kChannel, kAny},
      {"Einsum", einsum(), kQuantised, kAnyWeights, kChannel, kAny},
      {"shared weights", shared_weights(), kQuantised, kAnyWeights, kChannel, kAny},
      {"MatMul of activations", activations_product, kBytes, kSigned, kTensor, kNone},
      {"attention", attention, kBytes, kSigned, kTensor, kNone},
      {"QLinearConv per tensor", qlinear_conv({64, 64, 3, 3}, window(1), false), kBytes, kByteWeights,
       kTensor, kGiven},
      {"QLinearConv per channel", qlinear_conv({64, 64, 3, 3}, window(1), true), kBytes, kByteWeights,
       kChannel, kGiven},
      {"ConvInteger", conv_integer, {{DType::U8, 128}, {DType::U8, 0}}, kByteWeights, kTensor, kGiven},
      {"MatMulInteger per tensor", matmul_integer(false), kBytes, kByteWeights, kTensor, kGiven},
      {"MatMulInteger per channel", matmul_integer(true), kBytes, kByteWeights, kChannel, kGiven},
      {"QLinearMatMul", qlinear_matmul, kBytes, kByteWeights, kChannel, kGiven},
      {"DynamicQuantizeLinear", dynamic_matmul, kFloat, kByteWeights, kChannel, kGiven},
      {"weights-only MatMul of 1 row", matmul(1), kFloat, kAnyWeights, kWhole, kAny,
       Multiplies::NarrowWeights},
      {"weights-only MatMul of 17 rows", matmul(17), kFloat, kAnyWeights, kWhole, kAny,
       Multiplies::NarrowWeights},
      {"weights-only MatMul in blocks of 1 row", matmul(1), kFloat, kAnyWeights, kBlocks, kAny,
       Multiplies::NarrowWeights},
      {"weights-only MatMul in blocks of 17 rows", matmul(17), kFloat, kAnyWeights, kBlocks, kAny,
       Multiplies::NarrowWeights},
      {"weights-only MatMul transposed", matmul_transposed(), kFloat, kAnyWeights, kWhole, kAny,
       Multiplies::NarrowWeights},
      {"weights-only Gemm", gemm(), kFloat, kAnyWeights, kWhole, kAny, Multiplies::NarrowWeights},
      {"weights-only Conv 1x1", conv({64, 64, 1, 1}, window(0)), kFloat, kByteWeights, kWhole, kFew,
       Multiplies::NarrowWeights},
      {"weights-only Conv strided", conv({64, 64, 3, 3}, window(1, 2)), kFloat, kByteWeights, kChannel, kFew,
       Multiplies::NarrowWeights},
      {"MatMulNBits of 4 bits, 1 row", matmul_nbits(4, 1), kFloat, kFewBits, kBlocks, kAny,
       Multiplies::NarrowWeights},
      {"MatMulNBits of 4 bits, 17 rows", matmul_nbits(4, 17), kFloat, kFewBits, kBlocks, kAny,
       Multiplies::NarrowWeights},
      {"MatMulNBits of 8 bits, 1 row", matmul_nbits(8, 1), kFloat, kUnsigned, kBlocks, kAny,
       Multiplies::NarrowWeights},
      {"MatMulNBits of 8 bits, 17 rows", matmul_nbits(8, 17), kFloat, kUnsigned, kBlocks, kAny,
       Multiplies::NarrowWeights},
      {"embedding by rows", embedding(0), kFloat, kByteWeights, kWhole, kAny, Multiplies::Nothing},
      {"embedding by columns", embedding(1), kFloat, kByteWeights, kChannel, kAny, Multiplies::Nothing},
      {"embedding in blocks", embedding(0), kFloat, kByteWeights, kBlocks, kAny, Multiplies::Nothing},
      {"LSTM of 1 step", recurrent("LSTM", 4, 1), kQuantised, kByteWeights, kWhole, kFew,
       Multiplies::NarrowWeights},
      {"LSTM of 7 steps", recurrent("LSTM", 4, 7), kQuantised, kByteWeights, kWhole, kFew,
       Multiplies::NarrowWeights},
      {"GRU of 7 steps", recurrent("GRU", 3, 7), kFloat, kByteWeights, kWhole, kFew,
       Multiplies::NarrowWeights},
  };
}

std::string Case::text() const {
  auto name = [](DType dtype) { return std::string(dtype_name(dtype)); };
  const char* zeros[] = {"without zero points", "with zero points in the middle", "with any zero points"};
  const char* scales[] = {"tensor", "channel", "block"};
  std::string from = name(activations.dtype);
  if (activations.dtype != DType::F32) from += " of zero point " + std::to_string(activations.zero_point);
  return form + ": " + from + " by " + name(weights.dtype) + " " +
         zeros[static_cast<size_t>(weights.zero_points)] + ", a scale per " +
         scales[static_cast<size_t>(weights.scale_per)] + ", on " + cpu;
}

const char* exception_of(const Case& c) {
  const bool is_arm = c.cpu.find("x86") == c.cpu.npos;
  const bool is_byte = c.weights.bits() == 8;
  if (is_arm && c.is_wide()) return "words are multiplied as floats: nothing is gained by pairs";
  if (c.cpu == "x86-64-v3" && c.is("in blocks of 17") && !c.is("weights-only") && is_byte)
    return "rows of bytes gain nothing where many share the weights";
  if (c.is("depthwise") && (c.has_zero_points() || c.weights.dtype == DType::U8))
    return "sums of windows take as long as products, whose numbers take more than a signed byte";
  // The weights of the cases below are held as floats, though they need not be.
  const bool has_zero_points_by_channel = c.weights.zero_points == ZeroPoints::Any &&
                                          c.weights.scale_per == Per::Channel && is_byte && !c.is_wide();
  if (has_zero_points_by_channel && c.is("ConvTranspose"))
    return "zeros of channels are padded by other numbers each";
  if (has_zero_points_by_channel && c.is("MatMul of 256"))
    return "zero points of few weights are folded as shapes are";
  if (c.is("weights-only Conv") && c.weights.dtype == DType::U8 && !c.has_zero_points())
    return "bytes beyond 127 beside floats";
  if ((c.is("LSTM") || c.is("GRU")) && c.weights.dtype == DType::U8 && !c.has_zero_points())
    return "bytes beyond 127 in recurrent layers";
  return nullptr;
}

double growth_of(const Case& c) {
  if (c.weights.bits() == 8) return 1;
  const bool fits = c.weights.dtype == DType::I4 ? c.weights.zero_points != ZeroPoints::Any
                                                 : c.weights.zero_points == ZeroPoints::Middle;
  if (!fits && c.weights.scale_per != Per::Block) return 2; // numbers outside [-8, 7] are held as bytes
  if (c.is("ConvTranspose")) return 2;                      // kernels of all phases take no four bits
  // Winograd's algorithm for integers transforms bytes.
  if (c.cpu == "x86-64-v3" && (c.is("Conv 3x3") || c.is("Conv behind Pad"))) return 2;
  return 1;
}

} // namespace firn::test
