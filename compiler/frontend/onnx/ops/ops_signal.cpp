// Importers of signal operators: windows, discrete Fourier transforms, mel weights.
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/fourier.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

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

bool check_size(NodeContext& node, const Transform& t) {
  bool sane = t.length > 0 && t.length < (int64_t{1} << 24) && t.inputs >= 0 && t.outputs >= 0;
  return node.check(sane, "the transform's length is " + std::to_string(t.length));
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

// The transform along an axis of x; constant extents use the cheapest way.
Value transformed(NodeContext& node, Value x, int axis, const VaryingTransform& v) {
  if (!x) return {};
  const IntExpr extent = x.type().dims[static_cast<size_t>(axis)].extent;
  if (!v.length.is_constant() || !v.inputs.is_constant() || !extent.is_constant()) {
    if (extent.upper_bound() == INT64_MAX) return (void)node.static_dim(x, axis, "the signal"), Value{};
    return varying_fourier_along(node, x, axis, v);
  }
  Transform t{v.length.value(), v.inputs.value(), v.outputs.value(), v.in_parts,
              v.out_parts,      v.inverse,        v.mirrored};
  if (!check_size(node, t)) return {};
  return fourier_along(node, v.inputs == extent ? x : node.slice_dim(x, axis, 0, t.inputs), axis, t);
}

// The length in input 1, or by default x's extent. Half a spectrum of n elements stands for 2 (n - 1).
std::optional<IntExpr> transform_length(NodeContext& node, const IntExpr& extent, bool mirrored) {
  if (!node.has_input(1)) return mirrored ? (extent - 1) * 2 : extent;
  auto known = node.known_ints(node.input(1));
  if (known && known->size() == 1 && !(*known)[0].is_constant() && is_safe_dim((*known)[0]))
    return (*known)[0];
  auto length = constant_scalar(node, 1);
  if (!length || !node.check(*length > 0 && *length < int64_t{1} << 24,
                             "the transform's length is " + std::to_string(*length)))
    return std::nullopt;
  return *length;
}

void import_dft(NodeContext& node) {
  Value x = node.input(0);
  if (!node.check_rank_at_least(0, 2)) return;
  auto axis = transform_axis(node);
  if (!axis) return;
  auto parts = node.static_dim(0, x.rank() - 1);
  if (!parts || !node.check(*parts == 1 || *parts == 2,
                            "the last extent is " + std::to_string(*parts) + ", wants 1 or 2"))
    return;
  const IntExpr extent = x.type().dims[static_cast<size_t>(*axis)].extent;
  bool onesided = node.flag_attribute("onesided", false);
  VaryingTransform t;
  t.inverse = node.flag_attribute("inverse", false);
  t.mirrored = t.inverse && onesided;
  auto length = transform_length(node, extent, t.mirrored);
  if (!length ||
      !node.check(!onesided || t.inverse || *parts == 1, "a one-sided transform wants a real input"))
    return;
  t.length = *length;
  t.in_parts = *parts;
  t.out_parts = t.mirrored ? 1 : 2;
  IntExpr half = floor_div(t.length, 2) + 1;
  t.inputs = min(extent, t.mirrored ? half : t.length);
  t.outputs = onesided && !t.inverse ? half : t.length;
  node.set_output(0, transformed(node, x, *axis, t));
}

// Transforms of real numbers along the last dims, and back: com.microsoft.Rfft and Irfft.
void import_real_fourier(NodeContext& node, bool inverse) {
  int64_t count = node.required_int("signal_ndim"), normalized = node.int_attribute("normalized", 0);
  bool onesided = node.flag_attribute("onesided", true);
  Value x = node.input(0);
  int rank = x.rank() - inverse; // rank of the real tensor
  if (node.failed() ||
      !node.check(count >= 1 && count <= 3 && count <= rank, "attribute signal_ndim is " +
                                                                 std::to_string(count) +
                                                                 ", wants 1 to 3 and no more than dims") ||
      (inverse && !node.check(x.type().dims.back() == Dim(2), "its last extent is not 2")))
    return;
  if (normalized != 0 || !onesided)
    return node.fail_unsupported(
        "attributes normalized and onesided: only transforms of one side without a norm");
  if (!inverse) x = node.unsqueeze(x, rank);
  for (int i = 0; x && i < count; ++i) {
    // The last dim holds half of the spectrum: it is the first to be transformed, and the last to be
    // inverted.
    int axis = inverse ? rank - static_cast<int>(count) + i : rank - 1 - i;
    bool is_half = axis == rank - 1;
    const IntExpr extent = x.type().dims[static_cast<size_t>(axis)].extent;
    VaryingTransform t;
    t.inverse = inverse;
    t.mirrored = inverse && is_half;
    t.length = t.mirrored ? (extent - 1) * 2 : extent;
    t.inputs = extent;
    t.outputs = is_half && !inverse ? floor_div(t.length, 2) + 1 : t.length;
    t.in_parts = is_half && !inverse ? 1 : 2;
    t.out_parts = t.mirrored ? 1 : 2;
    x = transformed(node, x, axis, t);
  }
  node.set_output(0, inverse && x ? node.squeeze(x, rank) : x);
}

void import_rfft(NodeContext& node) {
  import_real_fourier(node, /*inverse=*/false);
}
void import_irfft(NodeContext& node) {
  import_real_fourier(node, /*inverse=*/true);
}

// Frames overlap in pieces of this length.
int64_t frame_piece(int64_t length, int64_t step) {
  return std::gcd(length, step);
}

// The number of frames of a signal [batch, n, parts]; nothing unless they are made of few pieces at known
// positions.
std::optional<int64_t> count_frames(Value signal, int64_t length, int64_t step) {
  constexpr int64_t kMaxPieces = 32;
  if (!signal || !signal.type().is_static() || signal.dim(1) < length) return std::nullopt;
  if (length / frame_piece(length, step) > kMaxPieces) return std::nullopt;
  return signal.dim(0) * ((signal.dim(1) - length) / step + 1);
}

// Frames are rows of the signal's pieces side by side.
Value split_stft(NodeContext& node, Value signal, const Transform& t, int64_t step) {
  int64_t piece = frame_piece(t.length, step), batch = signal.dim(0);
  int64_t frames = (signal.dim(1) - t.length) / step + 1, rows = ((frames - 1) * step + t.length) / piece;
  Value lines = node.slice_dim(node.transpose(signal, {0, 2, 1}), 2, 0, rows * piece);
  lines = node.reshape_to(lines, {batch, t.in_parts, rows, piece});
  Values pieces;
  int64_t stride = step / piece, last = (frames - 1) * stride;
  for (int64_t i = 0; i < t.length / piece; ++i)
    pieces.push_back(
        node.slice(lines, {0, 0, i, 0}, {batch, t.in_parts, i + last + 1, piece}, {1, 1, stride, 1}));
  Value x = node.concatenate(pieces, 3);
  if (node.has_input(2)) x = node.binary(Opcode::Multiply, x, node.input(2));
  x = node.reshape_to(node.transpose(x, {0, 2, 1, 3}), {batch * frames, t.in_parts, t.length});
  Value y = node.reshape_to(fourier(node, x, t), {batch, frames, 2, t.outputs});
  return node.transpose(y, {0, 1, 3, 2});
}

// Frames of the signal times the window, transformed; or, as one step, a strided convolution with the
// windowed matrix as its filter.
void import_stft(NodeContext& node) {
  Value signal = node.input(0);
  if (!node.check(signal.rank() == 2 || signal.rank() == 3,
                  node.input_label(0) + " has rank " + std::to_string(signal.rank()) + ", wants 3"))
    return;
  if (signal.rank() == 2) signal = node.unsqueeze(signal, 2);
  auto parts = node.static_dim(signal, 2, "the signal");
  auto step = constant_scalar(node, 1);
  if (!parts || !step) return;
  Transform t;
  t.in_parts = *parts;
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
  if (auto frames = count_frames(signal, t.length, *step);
      frames && is_split(t, static_cast<double>(*frames)))
    return node.set_output(0, split_stft(node, signal, t, *step));
  // The convolution wants filters [outputs * 2, parts, inputs].
  Value matrix = transform_matrix(node, signal.dtype(), t);
  Value filter = node.reshape_to(node.transpose(matrix, {3, 2, 0, 1}), {t.outputs * 2, t.in_parts, t.length});
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
    {"com.microsoft", "Irfft", 1, kLatest, 1, 1, 1, 1, "float", import_irfft, "the inverse of Rfft, scaled",
     NarrowFloats::Widened},
    {"com.microsoft", "Rfft", 1, kLatest, 1, 1, 1, 1, "float", import_rfft,
     "one side of the Fourier transform of real numbers along the last dims", NarrowFloats::Widened},
    {"", "STFT", 17, kLatest, 2, 4, 1, 1, "T=float index T index", import_stft,
     "Fourier transforms of overlapping frames", NarrowFloats::Widened},
};

} // namespace

std::span<const OperatorRow> signal_operators() {
  return kRows;
}

} // namespace firn::onnx
