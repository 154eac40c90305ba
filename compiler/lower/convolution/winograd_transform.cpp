// Winograd's transforms as few additions and multiplications.
#include "compiler/lower/convolution/winograd_transform.h"

#include <cmath>
#include <optional>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;

// A linear combination as it grows: absent, a value with a pending sign, or a value.
class Combination {
public:
  explicit Combination(Builder& builder) : b_(builder) {}
  void add(double coefficient, Register value) {
    if (coefficient == 0) return;
    kernel::MachineType type = b_.type(value);
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
  Register take() {
    if (sum_ && pending_ != 1) sum_ = b_.binary(OpKind::FMul, sum_, b_.constant(b_.type(sum_), pending_));
    pending_ = 1;
    return sum_;
  }

private:
  Builder& b_;
  Register sum_;
  double pending_ = 1;
};

bool near(double a, double b) {
  return std::abs(a - b) < 1e-12;
}

// Replaces columns c, d of equal magnitude by their sum and difference where every row uses just one of the
// two.
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
      Register sum = b.binary(OpKind::FAdd, values[static_cast<size_t>(c)], values[static_cast<size_t>(d)]);
      Register difference =
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
    out[static_cast<size_t>(row)] = b.binary(OpKind::FAdd, sum, difference);
    out[static_cast<size_t>(*mirror)] = b.binary(OpKind::FSub, sum, difference);
  }
  return out;
}

} // namespace firn::lower
