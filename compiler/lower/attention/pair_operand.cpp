// If steps lie side by side, pairs of a row's steps are loaded together, and squares of such pairs are
// transposed in registers. If columns lie side by side, two vectors of them are interleaved.
#include "compiler/lower/attention/pair_operand.h"

#include "compiler/lower/movement/transpose_lanes.h"

namespace firn::lower {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;
using kernel::Scalar;

Register narrowed(Builder& b, Register vector) {
  return b.cast(OpKind::FTruncTo, vector, Scalar::BF16);
}

Register load_some(Builder& b, int buffer, const IntExpr& place, int64_t count, int lanes) {
  kernel::MachineType type{Scalar::F32, lanes};
  if (count <= 0) return b.constant(type, 0);
  if (count >= lanes) return b.load(type, buffer, place);
  return b.load_masked(type, buffer, place, b.lane_mask(lanes, count), b.constant(type, 0));
}

namespace {

class PairPacking {
public:
  PairPacking(Builder& b, const LaneOperand& operand, int64_t k_extent, int source, int out)
      : b_(b), o_(operand), k_extent_(k_extent), source_(source), out_(out) {}

  void emit(const IntExpr& place) {
    int64_t vectors = o_.vectors().value(), rest = o_.columns.value() % o_.lanes;
    IntExpr p = b_.set_parallel(o_.parts() * vectors);
    IntExpr part = floor_div(p, vectors), vector = floor_mod(p, vectors);
    from_ = offset_at(part, o_.part_dims(), o_.outer_strides) + place;
    to_ = p * (o_.k_extent * o_.lanes);
    if (rest == 0) return pack_vector(vector, o_.lanes);
    if (vectors == 1) return pack_vector(0, rest);
    Register is_full =
        b_.compare(OpKind::SCmp, kernel::Predicate::Lt, b_.index(vector), b_.index(vectors - 1));
    b_.if_then_else(
        is_full,
        [&] {
          pack_vector(min(vector, vectors - 2), o_.lanes);
          return std::vector<Register>();
        },
        [&] {
          pack_vector(vectors - 1, rest);
          return std::vector<Register>();
        });
  }

private:
  void pack_vector(const IntExpr& vector, int64_t columns) {
    IntExpr from = from_ + vector * o_.lanes * o_.column_stride;
    if (o_.step_stride == IntExpr(1))
      pack_rows_of_steps(from, columns);
    else
      pack_rows_of_columns(from, columns);
  }

  void pack_rows_of_steps(const IntExpr& from, int64_t columns) {
    int64_t width = 2 * o_.lanes, whole = k_extent_ / width;
    b_.loop(0, whole, 1, [&](const IntExpr& s) { pack_square(from, s * width, columns, width); });
    if (k_extent_ > whole * width) pack_square(from, whole * width, columns, k_extent_ - whole * width);
  }

  void pack_square(const IntExpr& from, const IntExpr& first, int64_t columns, int64_t k_extent) {
    std::vector<Register> rows;
    for (int64_t column = 0; column < o_.lanes; ++column) {
      IntExpr place = from + column * o_.column_stride + first;
      int64_t count = column < columns ? k_extent : 0;
      Register pairs =
          joined(narrowed(b_, load_some(b_, source_, place, count, o_.lanes)),
                 narrowed(b_, load_some(b_, source_, place + o_.lanes, count - o_.lanes, o_.lanes)),
                 /*interleaves=*/false);
      rows.push_back(b_.cast(OpKind::Bitcast, pairs, Scalar::I32));
    }
    transpose(b_, rows);
    for (int i = 0; i < o_.lanes; ++i)
      b_.store(b_.cast(OpKind::Bitcast, rows[static_cast<size_t>(i)], Scalar::BF16), out_,
               to_ + first * o_.lanes + int64_t{i} * 2 * o_.lanes, 4 * o_.lanes);
  }

  void pack_rows_of_columns(const IntExpr& from, int64_t columns) {
    auto row = [&](const IntExpr& step) {
      return narrowed(b_, load_some(b_, source_, from + step * o_.step_stride, columns, o_.lanes));
    };
    auto store = [&](const IntExpr& pair, Register even, Register odd) {
      b_.store(joined(even, odd, /*interleaves=*/true), out_, to_ + pair * (2 * o_.lanes), 4 * o_.lanes);
    };
    Register zero = b_.constant({Scalar::BF16, o_.lanes}, 0);
    int64_t whole = k_extent_ / 2, all = o_.k_extent.value() / 2;
    b_.loop(0, whole, 1, [&](const IntExpr& pair) { store(pair, row(pair * 2), row(pair * 2 + 1)); });
    if (k_extent_ % 2 != 0) store(whole, row(2 * whole), zero);
    b_.loop((k_extent_ + 1) / 2, all, 1, [&](const IntExpr& pair) { store(pair, zero, zero); });
  }

  Register joined(Register a, Register b, bool interleaves) {
    std::vector<int64_t> lanes;
    for (int64_t i = 0; i < 2 * o_.lanes; ++i) lanes.push_back(interleaves ? i / 2 + i % 2 * o_.lanes : i);
    return b_.shuffle(a, b, lanes);
  }

  Builder& b_;
  const LaneOperand& o_;
  int64_t k_extent_;
  int source_, out_;
  IntExpr from_, to_; // start of the current part and vector
};

} // namespace

void emit_pack_pairs(Builder& builder, const LaneOperand& operand, int64_t k_extent, int source,
                     const IntExpr& place, int out) {
  PairPacking(builder, operand, k_extent, source, out).emit(place);
}

} // namespace firn::lower
