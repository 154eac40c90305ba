// Composites `pack` as kernels: what @prepare is made of.
#include "compiler/graph/packing.h"
#include "compiler/lower/contraction/pack.h"
#include "compiler/lower/convolution/winograd_transform.h"
#include "compiler/lower/emitters.h"

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;
using kernel::Scalar;

// Taps of as many filters as a register has lanes, transformed.
class TransformedPack {
public:
  TransformedPack(Builder& builder, const Packing& packing, int source, int out)
      : b_(builder), packing_(packing), transform_(*packing.transform), source_(source), out_(out) {}

  void emit(int lanes) {
    emit_packed_registers(b_, taps_packing(), lanes, [&](const PackedRegister& at) {
      std::vector<Register> points = transform(load_taps(at));
      for (size_t point = 0; point < points.size(); ++point)
        b_.store(points[point], out_, at.packed + static_cast<int64_t>(point) * at.point_stride);
    });
  }

private:
  // The packing with places of taps in the source for those of points.
  Packing taps_packing() const {
    Packing taps = packing_;
    for (PackedBox& box : taps.boxes) {
      box.source = box.source / transform_.points() * transform_.taps();
      for (PackedDim& dim : box.dims) dim.source = dim.source / transform_.points() * transform_.taps();
    }
    return taps;
  }

  // One lane per set of taps; those that the source has not are zeros.
  std::vector<Register> load_taps(const PackedRegister& at) {
    std::vector<int64_t> offsets = at.offsets;
    int lanes = static_cast<int>(offsets.size());
    int64_t valid = 0;
    for (int64_t& offset : offsets) offset < 0 ? (offset = 0) : ++valid;
    std::vector<Register> taps;
    if (valid == 0) {
      taps.assign(static_cast<size_t>(transform_.taps()), b_.constant({Scalar::F32, lanes}, 0));
      return taps;
    }
    Register index = b_.constant_lanes({Scalar::I64, lanes}, offsets), mask;
    if (valid < lanes) mask = b_.lane_mask(lanes, valid);
    for (int64_t tap = 0; tap < transform_.taps(); ++tap)
      taps.push_back(b_.gather({Scalar::F32, lanes}, source_, at.source + tap, index, mask));
    return taps;
  }

  // height * taps * width^T.
  std::vector<Register> transform(const std::vector<Register>& taps) {
    const TransformMatrix &height = transform_.height, &width = transform_.width;
    std::vector<std::vector<Register>> rows;
    for (int row = 0; row < height.columns; ++row) {
      auto from = taps.begin() + row * width.columns;
      rows.push_back(emit_transform(b_, width, {from, from + width.columns}));
    }
    std::vector<Register> points(static_cast<size_t>(transform_.points()));
    for (int column = 0; column < width.rows; ++column) {
      std::vector<Register> values;
      for (const std::vector<Register>& row : rows) values.push_back(row[static_cast<size_t>(column)]);
      values = emit_transform(b_, height, std::move(values));
      for (int row = 0; row < height.rows; ++row)
        points[static_cast<size_t>(row * width.rows + column)] = values[static_cast<size_t>(row)];
    }
    return points;
  }

  Builder& b_;
  const Packing& packing_;
  const TapTransform& transform_;
  int source_, out_;
};

} // namespace

void emit_pack_constant(LoweringContext& context, const Instruction& instruction) {
  Packing packing = *read_pack(instruction);
  KernelMaker maker(context, instruction, "pack");
  int source = maker.read(instruction.operand(0)), out = maker.write(result_of(instruction));
  int lanes = context.target().lanes(8 * packing.element_bytes);
  if (packing.transform)
    TransformedPack(maker.builder(), packing, source, out).emit(lanes);
  else
    emit_pack(maker.builder(), packing, memory_scalar(instruction.type().dtype), lanes, source, out);
  maker.finish();
}

} // namespace firn::lower
