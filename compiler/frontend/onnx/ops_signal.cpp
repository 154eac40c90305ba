// Importers of signal operators: windows, discrete Fourier transforms as products with constant matrices, mel
// weights.
#include "compiler/frontend/onnx/matrix_product.h"
#include "compiler/frontend/onnx/operator_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace firn::onnx {

namespace {

// Largest number of elements of a constant that an importer here makes.
constexpr int64_t kMaxMatrix = int64_t{1} << 25;

std::optional<int64_t> constant_scalar(NodeContext& node, int input) {
  auto values = node.required_constant_ints(input);
  if (!values || !node.check(values->size() == 1, node.input_label(input) + " wants one element"))
    return std::nullopt;
  return values->front();
}
std::optional<double> constant_number(NodeContext& node, int input) {
  if (!node.check_scalar(input)) return std::nullopt;
  auto values = node.required_constant_doubles(input);
  return values ? std::optional(values->front()) : std::nullopt;
}

// --- Windows: a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n).

void import_cosine_window(NodeContext& node, double a0, double a1, double a2) {
  auto size = constant_scalar(node, 0);
  DType dtype = node.dtype_attribute("output_datatype").value_or(DType::F32);
  if (!size || node.failed()) return;
  if (!node.check(*size >= 0 && *size <= kMaxMatrix, node.input_label(0) + " is " + std::to_string(*size)))
    return;
  double period = static_cast<double>(node.flag_attribute("periodic", true) ? *size : *size - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < *size; ++i) {
    double angle = 2 * std::numbers::pi * static_cast<double>(i) / period;
    values.push_back(period == 0 ? 1 : a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  node.set_output(0, node.constant(Literal::of(dtype, {*size}, values)));
}

void import_hann_window(NodeContext& node) {
  import_cosine_window(node, 0.5, 0.5, 0);
}
void import_hamming_window(NodeContext& node) {
  import_cosine_window(node, 25.0 / 46, 21.0 / 46, 0);
}
void import_blackman_window(NodeContext& node) {
  import_cosine_window(node, 0.42, 0.5, 0.08);
}

// --- Fourier transforms.

struct Transform {
  int64_t length = 0; // of the transform
  int64_t inputs = 0; // elements of the signal that are used; the rest is zero
  int64_t outputs = 0;
  int64_t in_parts = 1, out_parts = 2; // 1: real, 2: real and imaginary
  bool inverse = false;
  bool mirrored = false; // the input is one half of a spectrum whose other half is its conjugate
};

// The matrix [inputs, in_parts, outputs, out_parts] of a transform, scaled by 1/length if inverse.
LiteralRef transform_matrix(DType dtype, const Transform& t) {
  std::vector<int64_t> dims{t.inputs, t.in_parts, t.outputs, t.out_parts};
  std::vector<double> values;
  values.reserve(static_cast<size_t>(dims[0] * dims[1] * dims[2] * dims[3]));
  for (int64_t n = 0; n < t.inputs; ++n) {
    double weight = t.inverse ? 1 / static_cast<double>(t.length) : 1;
    if (t.mirrored && n != 0 && 2 * n != t.length) weight *= 2;
    for (int64_t in = 0; in < t.in_parts; ++in)
      for (int64_t k = 0; k < t.outputs; ++k) {
        // Reducing the angle's index first keeps it exact.
        double angle =
            2 * std::numbers::pi * static_cast<double>(n * k % t.length) / static_cast<double>(t.length);
        double c = weight * std::cos(angle), s = weight * std::sin(angle) * (t.inverse ? 1 : -1);
        values.push_back(in == 0 ? c : -s);
        if (t.out_parts == 2) values.push_back(in == 0 ? s : c);
      }
  }
  return Literal::of(dtype, dims, values);
}

bool check_size(NodeContext& node, const Transform& t) {
  bool sane = t.length > 0 && t.length < (int64_t{1} << 24) && t.inputs >= 0 && t.outputs >= 0;
  if (!node.check(sane, "the transform's length is " + std::to_string(t.length))) return false;
  int64_t elements = t.inputs * t.in_parts * t.outputs * t.out_parts;
  if (elements <= kMaxMatrix) return true;
  node.fail_unsupported("transforms of length " + std::to_string(t.length) + " are too long");
  return false;
}

// The axis of the transform: attribute before opset 20, then input 2.
std::optional<int> transform_axis(NodeContext& node) {
  int64_t given = node.opset() < 20 ? node.int_attribute("axis", 1) : -2;
  if (node.opset() >= 20 && node.has_input(2)) {
    auto constant = constant_scalar(node, 2);
    if (!constant) return std::nullopt;
    given = *constant;
  }
  auto axis = node.axis(given, node.input(0).rank());
  if (axis && !node.check(*axis != node.input(0).rank() - 1,
                          "axis is the last one, which holds real and imaginary parts"))
    return std::nullopt;
  return axis;
}

void import_dft(NodeContext& node) {
  Value x = node.input(0);
  if (!node.check_rank_at_least(0, 2)) return;
  auto axis = transform_axis(node);
  if (!axis) return;
  auto parts = node.static_dim(0, x.rank() - 1), extent = node.static_dim(0, *axis);
  if (!parts || !extent ||
      !node.check(*parts == 1 || *parts == 2,
                  "the last extent is " + std::to_string(*parts) + ", wants 1 or 2"))
    return;
  bool onesided = node.flag_attribute("onesided", false);
  Transform t;
  t.inverse = node.flag_attribute("inverse", false);
  t.mirrored = t.inverse && onesided;
  t.length = t.mirrored ? 2 * (*extent - 1) : *extent;
  if (node.has_input(1)) {
    auto length = constant_scalar(node, 1);
    if (!length) return;
    t.length = *length;
  }
  if (!node.check(!onesided || t.inverse || *parts == 1, "a one-sided transform wants a real input")) return;
  t.in_parts = *parts;
  t.out_parts = t.mirrored ? 1 : 2;
  t.inputs = std::min(*extent, t.mirrored ? t.length / 2 + 1 : t.length);
  t.outputs = onesided && !t.inverse ? t.length / 2 + 1 : t.length;
  if (node.failed() || !check_size(node, t)) return;
  Value signal = t.inputs == *extent ? x : node.slice_dim(x, *axis, 0, t.inputs);
  Value y =
      dot(node, signal, node.constant(transform_matrix(x.dtype(), t)), {}, {}, {*axis, x.rank() - 1}, {0, 1});
  // The transformed axis comes out last but one.
  Ints permutation;
  for (int i = 0; i < x.rank() - 2; ++i) permutation.push_back(i);
  permutation.insert(permutation.begin() + *axis, x.rank() - 2);
  permutation.push_back(x.rank() - 1);
  node.set_output(0, node.transpose(y, permutation));
}

// Frames of the signal times the window, transformed: a strided convolution with the windowed matrix as its
// filter.
void import_stft(NodeContext& node) {
  Value signal = node.input(0);
  if (!node.check(signal.rank() == 2 || signal.rank() == 3,
                  node.input_label(0) + " has rank " + std::to_string(signal.rank()) + ", wants 3"))
    return;
  if (signal.rank() == 2) signal = node.unsqueeze(signal, 2);
  auto parts = signal
                   ? node.static_dims(node.slice_dim(node.slice_dim(signal, 0, 0, 1), 1, 0, 1), "the signal")
                   : std::nullopt;
  auto step = constant_scalar(node, 1);
  if (!parts || !step) return;
  Transform t;
  t.in_parts = parts->back();
  if (node.has_input(3)) {
    auto length = constant_scalar(node, 3);
    if (!length) return;
    t.length = *length;
  } else if (node.has_input(2)) {
    auto window = node.static_dims(2);
    if (!window || !node.check_rank(2, 1)) return;
    t.length = window->front();
  } else {
    node.fail("neither window nor frame_length is given");
    return;
  }
  bool onesided = node.flag_attribute("onesided", true);
  t.inputs = t.length;
  t.outputs = onesided ? t.length / 2 + 1 : t.length;
  if (!check_size(node, t) || (node.has_input(2) && !node.check_dims(2, {t.length}))) return;
  if (!node.check(*step > 0 && *step < (int64_t{1} << 31),
                  node.input_label(1) + " is " + std::to_string(*step) + ", wants a positive number") ||
      !node.check(t.in_parts == 1 || (t.in_parts == 2 && !onesided),
                  "a one-sided transform wants a real signal"))
    return;
  // [inputs, parts, outputs, 2] to filters [outputs * 2, parts, inputs]
  Value matrix = node.constant(transform_matrix(signal.dtype(), t));
  Value filter = node.reshape_to(node.transpose(matrix, {2, 3, 1, 0}), {t.outputs * 2, t.in_parts, t.length});
  if (node.has_input(2)) filter = node.binary(Opcode::Multiply, filter, node.input(2));
  Window window;
  window.dims.resize(1);
  window.dims[0].size = t.length;
  window.dims[0].stride = *step;
  Value y = node.op(Opcode::Convolution, {node.transpose(signal, {0, 2, 1}), filter},
                    {{"window", window}, {"groups", int64_t{1}}});
  if (!y) return;
  const std::vector<Dim> dims = y.type().dims;
  node.set_output(0,
                  node.transpose(node.reshape(y, {dims[0], Dim(t.outputs), Dim(2), dims[2]}), {0, 3, 1, 2}));
}

// Triangular filters over the bins of a spectrum, their corners evenly spaced in mels.
void import_mel_weight_matrix(NodeContext& node) {
  auto mels = constant_scalar(node, 0), length = constant_scalar(node, 1), rate = constant_scalar(node, 2);
  auto low = constant_number(node, 3), high = constant_number(node, 4);
  if (!mels || !length || !rate || !low || !high) return;
  DType dtype = node.dtype_attribute("output_datatype").value_or(DType::F32);
  bool sane = *mels > 0 && *length > 0 && *rate > 0 && *mels < (1 << 16) && *length < (1 << 20) &&
              *low >= 0 && *high >= *low && *high <= static_cast<double>(*rate);
  if (node.failed() ||
      !node.check(sane, "num_mel_bins, dft_length, sample_rate and the edges do not fit each other"))
    return;
  int64_t bins = *length / 2 + 1;
  if (!node.check(bins * *mels <= kMaxMatrix, "the matrix would be too large")) return;
  auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double step = (to_mel(*high) - to_mel(*low)) / static_cast<double>(*mels + 2);
  std::vector<int64_t> corners;
  for (int64_t i = 0; i < *mels + 2; ++i) {
    double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + to_mel(*low)) / 2595) - 1);
    double bin = std::floor(static_cast<double>(*length + 1) * hertz / static_cast<double>(*rate));
    corners.push_back(std::clamp<int64_t>(static_cast<int64_t>(bin), 0, bins - 1));
  }
  std::vector<double> weights(static_cast<size_t>(bins * *mels), 0);
  for (int64_t i = 0; i < *mels; ++i) {
    auto at = [&](int64_t bin) -> double& { return weights[static_cast<size_t>(bin * *mels + i)]; };
    int64_t left = corners[static_cast<size_t>(i)], center = corners[static_cast<size_t>(i) + 1],
            right = corners[static_cast<size_t>(i) + 2];
    if (center == left) at(center) = 1;
    for (int64_t bin = left; center != left && bin <= center; ++bin)
      at(bin) = static_cast<double>(bin - left) / static_cast<double>(center - left);
    for (int64_t bin = center; bin < right; ++bin)
      at(bin) = static_cast<double>(right - bin) / static_cast<double>(right - center);
  }
  node.set_output(0, node.constant(Literal::of(dtype, {bins, *mels}, weights)));
}

const OperatorRow kRows[] = {
    {"", "BlackmanWindow", 17, kLatest, 1, 1, 1, 1, "index", import_blackman_window,
     "Blackman window of constant size"},
    {"", "DFT", 17, kLatest, 1, 3, 1, 1, "float index i64", import_dft,
     "discrete Fourier transform and its inverse", NarrowFloats::Widened},
    {"", "HammingWindow", 17, kLatest, 1, 1, 1, 1, "index", import_hamming_window,
     "Hamming window of constant size"},
    {"", "HannWindow", 17, kLatest, 1, 1, 1, 1, "index", import_hann_window, "Hann window of constant size"},
    {"", "MelWeightMatrix", 17, kLatest, 5, 5, 1, 1, "index index index float float",
     import_mel_weight_matrix, "weights from a spectrum to mel bands"},
    {"", "STFT", 17, kLatest, 2, 4, 1, 1, "T=float index T index", import_stft,
     "Fourier transforms of overlapping frames", NarrowFloats::Widened},
};

} // namespace

std::span<const OperatorRow> signal_operators() {
  return kRows;
}

} // namespace firn::onnx
