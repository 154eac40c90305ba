// Winograd's transforms as few additions and multiplications.
#include "compiler/lower/convolution/winograd_transform.h"

#include <cmath>
#include <optional>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;

Register add(Builder& b, Register lhs, Register rhs) {
  return b.binary(is_float(b.type(lhs).scalar) ? OpKind::FAdd : OpKind::IAdd, lhs, rhs);
}

Register subtract(Builder& b, Register lhs, Register rhs) {
  return b.binary(is_float(b.type(lhs).scalar) ? OpKind::FSub : OpKind::ISub, lhs, rhs);
}

Register scale(Builder& b, double factor, Register value) {
  kernel::MachineType type = b.type(value);
  if (is_float(type.scalar))
    return factor == -1 ? b.unary(OpKind::FNeg, value)
                        : b.binary(OpKind::FMul, value, b.constant(type, factor));
  if (factor == -1) return subtract(b, b.constant(type, 0), value);
  return b.binary(OpKind::IMul, value, b.constant(type, factor));
}

// A linear combination under construction: absent, a value with a pending sign, or a value.
class Combination {
public:
  explicit Combination(Builder& builder) : b_(builder) {}
  void add(double coefficient, Register value) {
    if (coefficient == 0) return;
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
    scale_pending();
    sum_ = emit_sum(b_, coefficient, value, sum_);
  }
  // The sum; no register if there are no terms.
  Register take() {
    if (sum_) scale_pending();
    return sum_;
  }

private:
  void scale_pending() {
    if (pending_ != 1) sum_ = scale(b_, pending_, sum_);
    pending_ = 1;
  }

  Builder& b_;
  Register sum_;
  double pending_ = 1;
};

bool near(double a, double b) {
  return std::abs(a - b) < 1e-12;
}

// Replaces columns c, d of equal magnitude by their sum and difference if every row uses just one of the two.
void pair_columns(Builder& b, TransformMatrix& matrix, std::vector<Register>& values) {
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
      Register sum = add(b, values[static_cast<size_t>(c)], values[static_cast<size_t>(d)]);
      Register difference = subtract(b, values[static_cast<size_t>(c)], values[static_cast<size_t>(d)]);
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

// The row that equals `row` except for signs, some of which are equal and some opposite.
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

Register emit_sum(Builder& b, double factor, Register value, Register sum) {
  if (factor == 1) return add(b, sum, value);
  if (factor == -1) return subtract(b, sum, value);
  if (is_float(b.type(sum).scalar)) return b.fma(value, b.constant(b.type(sum), factor), sum);
  return add(b, sum, scale(b, factor, value));
}

std::vector<Register> emit_transform(Builder& b, const TransformMatrix& original,
                                     std::vector<Register> values) {
  TransformMatrix matrix = original;
  pair_columns(b, matrix, values);
  std::vector<Register> out(static_cast<size_t>(matrix.rows));
  for (int row = 0; row < matrix.rows; ++row) {
    if (out[static_cast<size_t>(row)]) continue;
    std::optional<int> mirror = mirrored_row(matrix, row);
    Combination even(b), odd(b);
    for (int c = 0; c < matrix.columns; ++c) {
      bool opposite = mirror && matrix.at(row, c) != 0 && !near(matrix.at(row, c), matrix.at(*mirror, c));
      (opposite ? odd : even).add(matrix.at(row, c), values[static_cast<size_t>(c)]);
    }
    Register sum = even.take();
    out[static_cast<size_t>(row)] = sum;
    if (!mirror) continue;
    Register difference = odd.take();
    out[static_cast<size_t>(row)] = add(b, sum, difference);
    out[static_cast<size_t>(*mirror)] = subtract(b, sum, difference);
  }
  return out;
}

} // namespace firn::lower
