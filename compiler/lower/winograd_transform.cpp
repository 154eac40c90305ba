// Winograd's matrices, and their emission as few additions and multiplications.
#include "compiler/lower/winograd_transform.h"

#include <cmath>
#include <optional>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Value;

// Coefficients, lowest first, of the product of (x - p) over all points but number `skip` (-1: none).
std::vector<double> product_of_roots(const std::vector<double>& points, int skip) {
  std::vector<double> product{1};
  for (size_t i = 0; i < points.size(); ++i) {
    if (static_cast<int>(i) == skip) continue;
    product.push_back(0);
    for (size_t k = product.size(); k-- > 0;)
      product[k] = (k > 0 ? product[k - 1] : 0) - points[i] * product[k];
  }
  return product;
}

std::vector<double> finite_points(int count) {
  const double half = std::sqrt(0.5), two = std::sqrt(2.0);
  if (count == 3) return {0, 1, -1};
  FIRN_CHECK(count == 5, "no points chosen for this Winograd transform");
  return {0, half, -half, two, -two};
}

// A linear combination as it grows: absent, a value with a pending sign, or a value.
class Combination {
public:
  explicit Combination(Builder& builder) : b_(builder) {}
  void add(double coefficient, Value value) {
    if (coefficient == 0) return;
    kernel::Type type = b_.type(value);
    if (!sum_) {
      pending_ = coefficient;
      sum_ = value;
      return;
    }
    if (std::abs(pending_) != 1 && std::abs(coefficient) == 1) { // start from the term without a product
      std::swap(pending_, coefficient);
      std::swap(sum_, value);
    }
    if (pending_ == -1 && coefficient == 1) {
      std::swap(pending_, coefficient);
      std::swap(sum_, value);
    }
    if (pending_ != 1) {
      sum_ = pending_ == -1 ? b_.unary(OpKind::FNeg, sum_)
                            : b_.binary(OpKind::FMul, sum_, b_.constant(type, pending_));
      pending_ = 1;
    }
    if (coefficient == 1)
      sum_ = b_.binary(OpKind::FAdd, sum_, value);
    else if (coefficient == -1)
      sum_ = b_.binary(OpKind::FSub, sum_, value);
    else
      sum_ = b_.fma(value, b_.constant(type, coefficient), sum_);
  }
  // Nothing for the empty sum.
  Value take() {
    if (sum_ && pending_ != 1) sum_ = b_.binary(OpKind::FMul, sum_, b_.constant(b_.type(sum_), pending_));
    pending_ = 1;
    return sum_;
  }

private:
  Builder& b_;
  Value sum_;
  double pending_ = 1;
};

bool near(double a, double b) {
  return std::abs(a - b) < 1e-12;
}

// Replaces columns c, d of equal magnitude by their sum and difference where every row uses just one of the
// two.
void pair_columns(Builder& b, TransformMatrix& matrix, std::vector<Value>& values) {
  std::vector<bool> taken(static_cast<size_t>(matrix.columns), false);
  for (int c = 0; c < matrix.columns; ++c)
    for (int d = c + 1; d < matrix.columns && !taken[static_cast<size_t>(c)]; ++d) {
      int equal = 0, opposite = 0;
      bool pairs = !taken[static_cast<size_t>(d)];
      for (int row = 0; row < matrix.rows && pairs; ++row) {
        double x = matrix.at(row, c), y = matrix.at(row, d);
        if (x == 0 && y == 0) continue;
        pairs = near(std::abs(x), std::abs(y));
        (near(x, y) ? equal : opposite)++;
      }
      if (!pairs || equal == 0 || opposite == 0 || equal + opposite < 3) continue;
      taken[static_cast<size_t>(c)] = taken[static_cast<size_t>(d)] = true;
      Value sum = b.binary(OpKind::FAdd, values[static_cast<size_t>(c)], values[static_cast<size_t>(d)]);
      Value difference =
          b.binary(OpKind::FSub, values[static_cast<size_t>(c)], values[static_cast<size_t>(d)]);
      values[static_cast<size_t>(c)] = sum;
      values[static_cast<size_t>(d)] = difference;
      for (int row = 0; row < matrix.rows; ++row) {
        double& x = matrix.values[static_cast<size_t>(row * matrix.columns + c)];
        double& y = matrix.values[static_cast<size_t>(row * matrix.columns + d)];
        y = near(x, y) ? 0 : x;
        if (y != 0) x = 0;
      }
    }
}

// The row that equals `row` but for signs, with both equal and opposite ones.
std::optional<int> mirrored_row(const TransformMatrix& matrix, int row) {
  for (int other = row + 1; other < matrix.rows; ++other) {
    int equal = 0, opposite = 0;
    bool same = true;
    for (int c = 0; c < matrix.columns && same; ++c) {
      double x = matrix.at(row, c), y = matrix.at(other, c);
      if (x == 0 && y == 0) continue;
      same = near(std::abs(x), std::abs(y));
      (near(x, y) ? equal : opposite)++;
    }
    if (same && equal > 0 && opposite > 0 && equal + opposite > 2) return other;
  }
  return std::nullopt;
}

} // namespace

WinogradTransform make_winograd_transform(int outputs, int taps) {
  WinogradTransform transform;
  transform.outputs = outputs;
  transform.taps = taps;
  int n = transform.inputs();
  FIRN_CHECK(taps > 1 || outputs == 1, "a filter of one tap has nothing to transform");
  transform.input = {n, n, std::vector<double>(static_cast<size_t>(n * n))};
  transform.filter = {n, taps, std::vector<double>(static_cast<size_t>(n * taps))};
  transform.output = {outputs, n, std::vector<double>(static_cast<size_t>(outputs * n))};
  std::vector<double> points = n > 1 ? finite_points(n - 1) : std::vector<double>{};
  for (int j = 0; j < n; ++j) {
    bool infinity = j == n - 1;
    std::vector<double> row = product_of_roots(points, infinity ? -1 : j);
    for (size_t c = 0; c < row.size(); ++c) transform.input.values[static_cast<size_t>(j * n) + c] = row[c];
    double norm = 1;
    for (int l = 0; !infinity && l < n - 1; ++l)
      if (l != j) norm *= points[static_cast<size_t>(j)] - points[static_cast<size_t>(l)];
    for (int k = 0; k < taps; ++k)
      transform.filter.values[static_cast<size_t>(j * taps + k)] =
          infinity ? (k == taps - 1 ? 1 : 0) : std::pow(points[static_cast<size_t>(j)], k) / norm;
    for (int i = 0; i < outputs; ++i)
      transform.output.values[static_cast<size_t>(i * n + j)] =
          infinity ? (i == outputs - 1 ? 1 : 0) : std::pow(points[static_cast<size_t>(j)], i);
  }
  // Powers of square roots that are whole or half numbers become exactly so.
  for (TransformMatrix* matrix : {&transform.input, &transform.output})
    for (double& value : matrix->values)
      if (std::abs(value * 2 - std::round(value * 2)) < 1e-12) value = std::round(value * 2) / 2;
  return transform;
}

std::vector<Value> emit_transform(Builder& b, const TransformMatrix& original, std::vector<Value> values) {
  TransformMatrix matrix = original;
  pair_columns(b, matrix, values);
  std::vector<Value> out(static_cast<size_t>(matrix.rows));
  for (int row = 0; row < matrix.rows; ++row) {
    if (out[static_cast<size_t>(row)]) continue;
    std::optional<int> mirror = mirrored_row(matrix, row);
    Combination even(b), odd(b);
    for (int c = 0; c < matrix.columns; ++c) {
      bool opposite = mirror && matrix.at(row, c) != 0 && !near(matrix.at(row, c), matrix.at(*mirror, c));
      (opposite ? odd : even).add(matrix.at(row, c), values[static_cast<size_t>(c)]);
    }
    Value sum = even.take();
    out[static_cast<size_t>(row)] = sum;
    if (!mirror) continue;
    Value difference = odd.take();
    out[static_cast<size_t>(row)] = b.binary(OpKind::FAdd, sum, difference);
    out[static_cast<size_t>(*mirror)] = b.binary(OpKind::FSub, sum, difference);
  }
  return out;
}

void apply_transform(const TransformMatrix& matrix, const double* in, int64_t in_stride, double* out,
                     int64_t out_stride) {
  for (int row = 0; row < matrix.rows; ++row) {
    double sum = 0;
    for (int c = 0; c < matrix.columns; ++c) sum += matrix.at(row, c) * in[c * in_stride];
    out[row * out_stride] = sum;
  }
}

} // namespace firn::lower
