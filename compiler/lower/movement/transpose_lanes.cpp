// Transposition in registers, by halves: log2(lanes) rounds of two shuffles per pair of vectors.
#include "compiler/lower/movement/transpose_lanes.h"

#include <algorithm>
#include <bit>

namespace firn::lower {

using kernel::Builder;
using kernel::Register;
using kernel::Scalar;

// In the round of distance d, the d-wide halves that face each other across the diagonal of every square of
// 2d x 2d are swapped.
void transpose(Builder& b, std::vector<Register>& rows) {
  int count = static_cast<int>(rows.size());
  for (int distance = count / 2; distance > 0; distance /= 2) {
    std::vector<int64_t> upper, lower;
    for (int j = 0; j < count; ++j) {
      bool second = (j & distance) != 0;
      upper.push_back(second ? count + j - distance : j);
      lower.push_back(second ? count + j : j + distance);
    }
    for (int i = 0; i < count; ++i) {
      if (i & distance) continue;
      Register first = rows[static_cast<size_t>(i)], second = rows[static_cast<size_t>(i + distance)];
      rows[static_cast<size_t>(i)] = b.shuffle(first, second, upper);
      rows[static_cast<size_t>(i + distance)] = b.shuffle(first, second, lower);
    }
  }
}

// Every round combines the halves of two vectors: one goes to the lanes whose index has the bit `half`, the
// other to the rest. If there are fewer vectors than lanes, the first rounds combine the halves of one
// vector.
Register fold_lanes(Builder& b, kernel::OpKind kind, std::vector<Register> vectors, int lanes) {
  vectors.resize(std::bit_ceil(vectors.size()), vectors.front());
  auto count = static_cast<int>(vectors.size());
  for (int half = lanes / 2; half > 0; half /= 2) {
    std::vector<int64_t> along, across;
    for (int lane = 0; lane < lanes; ++lane) {
      bool is_second = count > half && (lane & half) != 0;
      along.push_back(is_second ? lanes + lane : lane);
      across.push_back(is_second ? lanes + lane - half : lane ^ half);
    }
    int partner = count > half ? half : 0;
    count = std::min(count, half);
    for (int i = 0; i < count; ++i) {
      Register first = vectors[static_cast<size_t>(i)], second = vectors[static_cast<size_t>(i + partner)];
      Register kept = partner > 0 ? b.shuffle(first, second, along) : first;
      vectors[static_cast<size_t>(i)] = b.binary(kind, kept, b.shuffle(first, second, across));
    }
  }
  return vectors.front();
}

void copy_columns(Builder& b, const MatrixSource& source, const MatrixTarget& target, int64_t columns,
                  const IntExpr& source_rows, int lanes) {
  kernel::MachineType vector{Scalar::F32, lanes}, scalar{Scalar::F32, 1};
  auto store = [&](Register value, const IntExpr& step) {
    b.store(value, target.buffer, target.place + step * lanes, 4 * lanes);
  };
  if (source.column_stride == IntExpr(1) && columns == lanes) {
    b.loop(0, source_rows, 1, [&](const IntExpr& step) {
      store(b.load(vector, source.buffer, source.place + step * source.step_stride), step);
    });
    return;
  }
  IntExpr squares =
      source.step_stride == IntExpr(1) && lanes > 1 ? floor_div(source_rows, lanes) : IntExpr(0);
  b.loop(0, squares, 1, [&](const IntExpr& square) {
    std::vector<Register> rows;
    for (int column = 0; column < lanes; ++column)
      rows.push_back(column < columns ? b.load(vector, source.buffer,
                                               source.place + source.column_stride * column + square * lanes)
                                      : b.constant(vector, 0));
    transpose(b, rows);
    for (int step = 0; step < lanes; ++step) store(rows[static_cast<size_t>(step)], square * lanes + step);
  });
  b.loop(squares * lanes, source_rows, 1, [&](const IntExpr& step) {
    Register value = b.constant(vector, 0);
    for (int column = 0; column < columns; ++column) {
      Register element = b.load(scalar, source.buffer,
                                source.place + source.column_stride * column + step * source.step_stride);
      value = lanes == 1 ? element : b.insert(value, element, column);
    }
    store(value, step);
  });
}

} // namespace firn::lower
