// The ways to transform, for rising lengths: a matrix; n2 transforms of length n1, multiplication by twiddle
// factors, and n1 transforms of length n2, if n = n1 n2; a convolution of a length with small factors.
#include "compiler/frontend/onnx/ops/fourier.h"

#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

namespace firn::onnx {
namespace {

using Complex = std::complex<double>;
using Signal = std::vector<Complex>;

// Largest number of elements of a matrix.
constexpr int64_t kMaxMatrix = int64_t{1} << 25;

// exp(+-2 pi i number / length): reducing the number first keeps the angle exact.
Complex root(int64_t number, int64_t length, bool inverse) {
  double angle = 2 * std::numbers::pi * static_cast<double>(number % length) / static_cast<double>(length);
  return std::polar(1.0, inverse ? angle : -angle);
}

// --- The cost of each way, in multiplications and additions of one transform in a batch.

struct Plan {
  enum class Way { Matrix, Split, Convolve } way = Way::Matrix;
  int64_t first = 0; // n1 for Split, the length of the convolution for Convolve
  double cost = 0;
};

constexpr double kMove = 6;     // cost of an element that is moved
constexpr double kConstant = 6; // cost of a matrix element, shared by the batch

double matrix_cost(const Transform& t, double batch) {
  double elements = static_cast<double>(t.in_parts * t.inputs) * static_cast<double>(t.out_parts * t.outputs);
  return elements * (1 + kConstant / batch);
}

// The two steps of a transform of n1 n2: over the signal with n1 rows and n2 columns, down its columns,
// then along what the rows have become. Zeros are put behind a signal that is shorter.
Transform first_step(const Transform& t, int64_t n1) {
  return {n1, n1, n1, t.in_parts, 2, t.inverse};
}
Transform second_step(const Transform& t, int64_t n1) {
  int64_t n2 = t.length / n1, outputs = std::min(n2, (t.outputs + n1 - 1) / n1);
  return {n2, n2, outputs, 2, t.out_parts, t.inverse};
}

Plan plan_of(const Transform& t, double batch, int depth = 0);

double split_cost(const Transform& t, int64_t n1, double batch, int depth) {
  auto n2 = static_cast<double>(t.length / n1), rows = static_cast<double>(n1);
  auto length = static_cast<double>(t.length);
  double moves = kMove * length * static_cast<double>(t.in_parts + 2 + t.out_parts) + 3 * kMove * length;
  return moves + n2 * plan_of(first_step(t, n1), batch * n2, depth + 1).cost +
         rows * plan_of(second_step(t, n1), batch * rows, depth + 1).cost;
}

// A length that is a power of two, with room for the convolution of the signal.
int64_t convolution_length(const Transform& t) {
  int64_t length = 1;
  while (length < (t.mirrored ? t.length : t.inputs) + t.outputs - 1) length *= 2;
  return length;
}

Transform convolution_step(int64_t length, bool inverse) {
  return {length, length, length, 2, 2, inverse};
}

Plan plan_of(const Transform& t, double batch, int depth) {
  Plan best{Plan::Way::Matrix, 0, matrix_cost(t, batch)};
  constexpr int64_t kShort = 96; // a matrix is best below this
  if (t.length < kShort || depth > 3) return best;
  // Factors near the square root give the smallest matrices.
  auto middle = static_cast<int64_t>(std::sqrt(static_cast<double>(t.length)));
  int tried = 0;
  for (int64_t n1 = middle; n1 > 1 && tried < 3; --n1) {
    if (t.length % n1 != 0) continue;
    ++tried;
    for (int64_t rows : {n1, t.length / n1}) {
      double cost = split_cost(t, rows, batch, depth);
      if (cost < best.cost) best = {Plan::Way::Split, rows, cost};
    }
  }
  if (depth == 0) {
    int64_t length = convolution_length(t);
    auto wide = static_cast<double>(length);
    double cost = plan_of(convolution_step(length, false), batch, 1).cost * 2 + 12 * kMove * wide;
    if (cost < best.cost) best = {Plan::Way::Convolve, length, cost};
  }
  return best;
}

// --- Values with two parts.

struct Parts {
  Value real, imaginary; // [.., 1, n]
};

Parts parts_of(NodeContext& node, Value x) {
  if (!x) return {};
  int dim = x.rank() - 2;
  return {node.slice_dim(x, dim, 0, 1), node.slice_dim(x, dim, 1, 2)};
}

// x [.., parts, n] times constants [.., n] that broadcast against x without its parts: [.., 2, n]. A real x
// has one part.
Value times_constants(NodeContext& node, Value x, int64_t parts, const Ints& dims, const Signal& factors) {
  std::vector<double> re, im;
  for (const Complex& factor : factors) {
    re.push_back(factor.real());
    im.push_back(factor.imag());
  }
  if (!x) return {};
  Value c = node.constant(Literal::of(x.dtype(), dims, re)),
        s = node.constant(Literal::of(x.dtype(), dims, im));
  int dim = x.rank() - 2;
  if (parts == 1) return node.concatenate({multiply(node, x, c), multiply(node, x, s)}, dim);
  Parts p = parts_of(node, x);
  Value real = subtract(node, multiply(node, p.real, c), multiply(node, p.imaginary, s));
  Value imaginary = add(node, multiply(node, p.real, s), multiply(node, p.imaginary, c));
  return node.concatenate({real, imaginary}, dim);
}

Value padded(NodeContext& node, Value x, int64_t extent, int64_t wanted) {
  if (!x || extent == wanted) return x;
  Ints low(static_cast<size_t>(x.rank()), 0), high = low;
  high.back() = wanted - extent;
  return node.pad(x, node.scalar(x.dtype(), 0), low, high);
}

// Half a spectrum, followed by its conjugate in reverse order.
Value whole_spectrum(NodeContext& node, Value x, const Transform& t) {
  int64_t half = t.length / 2 + 1, rest = t.length - half;
  x = padded(node, x, t.inputs, half);
  if (!x || rest == 0) return x;
  Value tail = node.op(Opcode::Reverse, {node.slice_dim(x, 2, 1, rest + 1)}, {{"dims", Ints{2}}});
  if (t.in_parts == 2)
    tail = multiply(node, tail, node.constant(Literal::of(x.dtype(), {2, 1}, std::vector<double>{1, -1})));
  return node.concatenate({x, tail}, 2);
}

Value transformed(NodeContext& node, Value x, const Transform& t, double batch, int depth);

Value by_matrix(NodeContext& node, Value x, const Transform& t) {
  return dot(node, x, transform_matrix(node, x.dtype(), t), {}, {}, {1, 2}, {0, 1});
}

// Dims of a batch that is `times` as large.
std::optional<Dim> batch_times(NodeContext& node, Value x, int64_t times) {
  return node.product({x.type().dims[0], Dim(times)});
}

Value by_factors(NodeContext& node, Value x, const Transform& t, int64_t n1, double batch, int depth) {
  x = padded(node, x, t.inputs, t.length);
  if (!x) return {};
  int64_t n2 = t.length / n1;
  Dim each = x.type().dims[0];
  auto columns = batch_times(node, x, n2), rows = batch_times(node, x, n1);
  if (!columns || !rows) return {};
  // Columns as lines: [batch, parts, n1, n2] to [batch n2, parts, n1].
  Value lines = node.transpose(node.reshape(x, {each, Dim(t.in_parts), Dim(n1), Dim(n2)}), {0, 3, 1, 2});
  Transform first = first_step(t, n1), second = second_step(t, n1);
  lines = node.reshape(lines, {*columns, Dim(t.in_parts), Dim(n1)});
  Value y = transformed(node, lines, first, batch * static_cast<double>(n2), depth + 1);
  y = node.reshape(y, {each, Dim(n2), Dim(2), Dim(n1)});
  Signal twiddles;
  for (int64_t j = 0; j < n2; ++j)
    for (int64_t k = 0; k < n1; ++k) twiddles.push_back(root(j * k, t.length, t.inverse));
  y = times_constants(node, y, 2, {n2, 1, n1}, twiddles);
  y = node.reshape(node.transpose(y, {0, 3, 2, 1}), {*rows, Dim(2), Dim(n2)});
  y = transformed(node, y, second, batch * static_cast<double>(n1), depth + 1);
  // Output k1 + n1 k2: [batch, n1, parts, k2] to [batch, parts, k2 n1].
  y = node.transpose(node.reshape(y, {each, Dim(n1), Dim(t.out_parts), Dim(second.outputs)}), {0, 2, 3, 1});
  y = node.reshape(y, {each, Dim(t.out_parts), Dim(second.outputs * n1)});
  return second.outputs * n1 == t.outputs ? y : node.slice_dim(y, 2, 0, t.outputs);
}

// The transform of a constant whose length is a power of two, by halving; not scaled.
Signal transform_of(const Signal& x) {
  if (x.size() == 1) return x;
  Signal even, odd, y(x.size());
  for (size_t i = 0; i < x.size(); i += 2) {
    even.push_back(x[i]);
    odd.push_back(x[i + 1]);
  }
  even = transform_of(even);
  odd = transform_of(odd);
  auto length = static_cast<int64_t>(x.size());
  for (size_t k = 0; k < even.size(); ++k) {
    Complex turned = odd[k] * root(static_cast<int64_t>(k), length, false);
    y[k] = even[k] + turned;
    y[k + even.size()] = even[k] - turned;
  }
  return y;
}

// Bluestein: j k = (j^2 + k^2 - (k - j)^2) / 2 makes the transform chirp * (x chirp conv 1 / chirp), a
// convolution of length m.
Value by_convolution(NodeContext& node, Value x, const Transform& t, int64_t m, double batch) {
  auto chirp = [&](int64_t j) { return root(j * j % (2 * t.length), 2 * t.length, t.inverse); };
  Signal before, behind, inverse(static_cast<size_t>(m));
  for (int64_t j = 0; j < t.inputs; ++j) before.push_back(chirp(j));
  double scale = t.inverse ? 1 / static_cast<double>(t.length) : 1;
  for (int64_t k = 0; k < t.outputs; ++k) behind.push_back(scale * chirp(k));
  for (int64_t k = 0; k < t.outputs; ++k) inverse[static_cast<size_t>(k)] = std::conj(chirp(k));
  for (int64_t j = 1; j < t.inputs; ++j) inverse[static_cast<size_t>(m - j)] = std::conj(chirp(j));
  Value y = times_constants(node, x, t.in_parts, {1, t.inputs}, before);
  y = padded(node, y, t.inputs, m);
  y = transformed(node, y, convolution_step(m, false), batch, 1);
  y = times_constants(node, y, 2, {1, m}, transform_of(inverse));
  y = transformed(node, y, convolution_step(m, true), batch, 1);
  if (!y) return {};
  y = times_constants(node, node.slice_dim(y, 2, 0, t.outputs), 2, {1, t.outputs}, behind);
  return t.out_parts == 2 || !y ? y : parts_of(node, y).real;
}

Value transformed(NodeContext& node, Value x, const Transform& t, double batch, int depth) {
  if (!x) return {};
  Plan plan = plan_of(t, batch, depth);
  if (t.mirrored && plan.way != Plan::Way::Matrix) {
    Transform whole = t;
    whole.mirrored = false;
    whole.inputs = t.length;
    return transformed(node, whole_spectrum(node, x, t), whole, batch, depth);
  }
  if (plan.way == Plan::Way::Split) return by_factors(node, x, t, plan.first, batch, depth);
  if (plan.way == Plan::Way::Convolve) return by_convolution(node, x, t, plan.first, batch);
  return by_matrix(node, x, t);
}

} // namespace

Value transform_matrix(NodeContext& node, DType dtype, const Transform& t) {
  if (t.in_parts * t.inputs * t.out_parts * t.outputs > kMaxMatrix)
    return node.fail_unsupported("transforms of length " + std::to_string(t.length) + " are too long"),
           Value{};
  std::vector<int64_t> dims{t.in_parts, t.inputs, t.out_parts, t.outputs};
  std::vector<double> values;
  values.reserve(static_cast<size_t>(dims[0] * dims[1] * dims[2] * dims[3]));
  double scale = t.inverse ? 1 / static_cast<double>(t.length) : 1;
  for (int64_t in = 0; in < t.in_parts; ++in)
    for (int64_t j = 0; j < t.inputs; ++j)
      for (int64_t out = 0; out < t.out_parts; ++out)
        for (int64_t k = 0; k < t.outputs; ++k) {
          double weight = t.mirrored && j != 0 && 2 * j != t.length ? 2 * scale : scale;
          Complex w = weight * root(j * k, t.length, t.inverse);
          values.push_back(in == out ? w.real() : in == 0 ? w.imag() : -w.imag());
        }
  return node.constant(Literal::of(dtype, dims, values));
}

double batch_of(const std::vector<Dim>& dims) {
  double count = 1;
  for (const Dim& dim : dims)
    if (dim.is_static()) count *= std::max(1.0, static_cast<double>(dim.value()));
  return count;
}

bool is_split(const Transform& transform, double batch) {
  return plan_of(transform, batch).way != Plan::Way::Matrix;
}

Value fourier(NodeContext& node, Value x, const Transform& transform) {
  return x ? transformed(node, x, transform, batch_of({x.type().dims[0]}), 0) : x;
}

// Transposes x to [batch, parts, n], with the transformed axis last, and back after the transform.
static Value split_along(NodeContext& node, Value x, int axis, const Transform& t) {
  Ints to_last, back;
  std::vector<Dim> outer;
  for (int i = 0; i < x.rank() - 1; ++i)
    if (i != axis) {
      to_last.push_back(i);
      outer.push_back(x.type().dims[static_cast<size_t>(i)]);
    }
  to_last.insert(to_last.end(), {x.rank() - 1, axis});
  auto batch = node.product(outer);
  if (!batch) return {};
  Value lines = node.reshape(node.transpose(x, to_last), {*batch, Dim(t.in_parts), Dim(t.inputs)});
  Value y = fourier(node, lines, t);
  for (int i = 0; i < x.rank() - 2; ++i) back.push_back(i);
  back.insert(back.begin() + axis, x.rank() - 1);
  back.push_back(x.rank() - 2);
  outer.insert(outer.end(), {Dim(t.out_parts), Dim(t.outputs)});
  return node.transpose(node.reshape(y, outer), back);
}

Value fourier_along(NodeContext& node, Value x, int axis, const Transform& t) {
  if (!x) return {};
  std::vector<Dim> others(x.type().dims.begin(), x.type().dims.end() - 1);
  others.erase(others.begin() + axis);
  if (is_split(t, batch_of(others))) return split_along(node, x, axis, t);
  // The dot wants the matrix as [inputs, parts, outputs, parts].
  return dot_along(node, x, axis, node.transpose(transform_matrix(node, x.dtype(), t), {1, 0, 3, 2}));
}

Value dot_along(NodeContext& node, Value x, int axis, Value matrix) {
  Value y = dot(node, x, matrix, {}, {}, {axis, x.rank() - 1}, {0, 1});
  // The dot leaves the transformed axis last but one.
  Ints permutation;
  for (int i = 0; i < x.rank() - 2; ++i) permutation.push_back(i);
  permutation.insert(permutation.begin() + axis, x.rank() - 2);
  permutation.push_back(x.rank() - 1);
  return node.transpose(y, permutation);
}

} // namespace firn::onnx
