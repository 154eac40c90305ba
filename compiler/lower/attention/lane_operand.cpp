// Packs an operand of attention, with one branch for whole vectors and one for the last.
#include "compiler/lower/attention/lane_operand.h"

#include "compiler/lower/movement/transpose_lanes.h"

namespace firn::lower {

LaneOperand keys_in_lanes(const Attention& a, int lanes) {
  return {lanes, a.depth, a.keys, a.score_dims, a.k_outer, a.k_key, a.k_depth};
}

IntExpr offset_at(const IntExpr& flat, const std::vector<IntExpr>& extents,
                  const std::vector<IntExpr>& strides) {
  std::vector<IntExpr> index = unflatten(flat, extents);
  IntExpr place = 0;
  for (size_t i = 0; i < index.size(); ++i) place = place + index[i] * strides[i];
  return place;
}

std::vector<IntExpr> LaneOperand::part_dims() const {
  std::vector<IntExpr> dims;
  for (size_t i = 0; i < outer_dims.size(); ++i)
    dims.push_back(outer_strides[i] == IntExpr(0) ? IntExpr(1) : outer_dims[i]);
  return dims;
}

IntExpr LaneOperand::parts() const {
  IntExpr count = 1;
  for (const IntExpr& extent : part_dims()) count = count * extent;
  return count;
}

IntExpr LaneOperand::part(const IntExpr& flat) const {
  std::vector<IntExpr> strides(outer_dims.size(), IntExpr(0)), extents = part_dims();
  IntExpr stride = vectors() * k_extent * lanes;
  for (size_t i = extents.size(); i-- > 0; stride = stride * extents[i])
    if (extents[i] != IntExpr(1)) strides[i] = stride;
  return offset_at(flat, outer_dims, strides);
}

namespace {

// The columns of the last vector, whose number varies.
void copy_some_columns(kernel::Builder& b, const MatrixSource& source, const MatrixTarget& target,
                       const IntExpr& columns, const IntExpr& k_extent, int lanes) {
  kernel::MachineType scalar{kernel::Scalar::F32, 1};
  b.loop(0, columns, 1, [&](const IntExpr& column) {
    b.loop(0, k_extent, 1, [&](const IntExpr& step) {
      b.store(b.load(scalar, source.buffer,
                     source.place + column * source.column_stride + step * source.step_stride),
              target.buffer, target.place + step * lanes + column);
    });
  });
}

} // namespace

void emit_pack_lanes(kernel::Builder& b, const LaneOperand& operand, int source, const IntExpr& place,
                     int out) {
  int lanes = operand.lanes;
  IntExpr vectors = operand.vectors(), whole = floor_div(operand.columns, lanes),
          rest = floor_mod(operand.columns, lanes);
  IntExpr p = b.set_parallel(operand.parts() * vectors);
  IntExpr part = floor_div(p, at_least_one(vectors)), vector = floor_mod(p, at_least_one(vectors));
  IntExpr from = offset_at(part, operand.part_dims(), operand.outer_strides) + place;
  auto source_at = [&](const IntExpr& first) {
    return MatrixSource{source, from + first * operand.column_stride, operand.column_stride,
                        operand.step_stride};
  };
  MatrixTarget target{out, p * (operand.k_extent * lanes)};
  auto copy = [&](const IntExpr& first, int64_t columns) {
    copy_columns(b, source_at(first), target, columns, operand.k_extent, lanes);
    return std::vector<kernel::Register>();
  };
  if (rest == IntExpr(0)) {
    copy(vector * lanes, lanes);
  } else if (rest.is_constant() && vectors == IntExpr(1)) {
    copy(0, rest.value());
  } else if (whole == IntExpr(0)) {
    copy_some_columns(b, source_at(0), target, rest, operand.k_extent, lanes);
  } else if (rest.is_constant()) {
    kernel::Register full =
        b.compare(kernel::OpKind::SCmp, kernel::Predicate::Lt, b.index(vector), b.index(vectors - 1));
    b.if_then_else(
        // The verifier knows no branches: min() tells it that whole vectors stay inside.
        full, [&] { return copy(min(vector, vectors - 2) * lanes, lanes); },
        [&] { return copy((vectors - 1) * lanes, rest.value()); });
  } else {
    kernel::Register full =
        b.compare(kernel::OpKind::SCmp, kernel::Predicate::Lt, b.index(vector), b.index(whole));
    b.if_then_else(
        full, [&] { return copy(vector * lanes, lanes); },
        [&] {
          copy_some_columns(b, source_at(vector * lanes), target, rest, operand.k_extent, lanes);
          return std::vector<kernel::Register>();
        });
  }
}

} // namespace firn::lower
