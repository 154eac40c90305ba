// Packing into lanes.
#include "compiler/lower/attention/lane_operand.h"

#include "compiler/lower/movement/transpose_lanes.h"

namespace firn::lower {

LaneOperand keys_in_lanes(const Attention& a, int lanes) {
  return {lanes, a.depth, a.keys, a.score_dims, a.k_outer, a.k_key, a.k_depth};
}

IntExpr offset_at(const IntExpr& flat, const std::vector<int64_t>& extents,
                  const std::vector<int64_t>& strides) {
  std::vector<IntExpr> index = unflatten(flat, {extents.begin(), extents.end()});
  IntExpr place = 0;
  for (size_t i = 0; i < index.size(); ++i) place = place + index[i] * strides[i];
  return place;
}

std::vector<int64_t> LaneOperand::part_dims() const {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < outer_dims.size(); ++i) dims.push_back(outer_strides[i] == 0 ? 1 : outer_dims[i]);
  return dims;
}

int64_t LaneOperand::parts() const {
  int64_t count = 1;
  for (int64_t extent : part_dims()) count *= extent;
  return count;
}

IntExpr LaneOperand::part(const IntExpr& flat) const {
  std::vector<int64_t> strides(outer_dims.size(), 0), extents = part_dims();
  int64_t stride = vectors() * steps * lanes;
  for (size_t i = extents.size(); i-- > 0; stride *= extents[i])
    if (extents[i] > 1) strides[i] = stride;
  return offset_at(flat, outer_dims, strides);
}

void emit_pack_lanes(kernel::Builder& b, const LaneOperand& operand, int source, int64_t place, int out) {
  int lanes = operand.lanes;
  int64_t vectors = operand.vectors(), rest = operand.columns % lanes;
  IntExpr p = b.set_parallel(operand.parts() * vectors);
  IntExpr part = floor_div(p, vectors), vector = floor_mod(p, vectors);
  IntExpr from = offset_at(part, operand.part_dims(), operand.outer_strides) + place;
  auto copy = [&](const IntExpr& first, int64_t columns) {
    copy_columns(b,
                 {source, from + first * operand.column_stride, operand.column_stride, operand.step_stride},
                 {out, p * (operand.steps * lanes)}, columns, operand.steps, lanes);
    return std::vector<kernel::Register>();
  };
  if (rest == 0) {
    copy(vector * lanes, lanes);
  } else if (vectors == 1) {
    copy(0, rest);
  } else {
    kernel::Register full =
        b.compare(kernel::OpKind::SCmp, kernel::Predicate::Lt, b.index(vector), b.index(vectors - 1));
    b.if_then_else(
        full, [&] { return copy(min(vector, vectors - 2) * lanes, lanes); },
        [&] { return copy((vectors - 1) * lanes, rest); });
  }
}

} // namespace firn::lower
