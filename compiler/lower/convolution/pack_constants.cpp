// Composites `pack` as kernels: @prepare consists of them.
#include "compiler/graph/packing.h"
#include "compiler/lower/contraction/packed_operand.h"
#include "compiler/lower/convolution/winograd_transform.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/pack/plan.h"

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;
using kernel::Scalar;

// Transforms the taps of as many filters as a register has lanes.
class TransformedPack {
public:
  // `precise`: sums are in f64, term by term in the order of transform_taps(), so that prepared weights equal
  // the compiler's own to the bit. CPUs without f64 do not have it.
  TransformedPack(Builder& builder, const Packing& packing, bool precise, int source, int out)
      : b_(builder), packing_(packing), transform_(*packing.transform), precise_(precise), source_(source),
        out_(out) {}

  void emit(int lanes) {
    emit_packed_registers(b_, taps_packing(), lanes, [&](const PackedRegister& at) {
      std::vector<Register> points = transform(load_taps(at));
      for (size_t point = 0; point < points.size(); ++point) {
        Register value =
            precise_ ? b_.cast(kernel::OpKind::FTruncTo, points[point], Scalar::F32) : points[point];
        b_.store(value, out_, at.packed + static_cast<int64_t>(point) * at.point_stride);
      }
    });
  }

private:
  // The packing with the source's places of taps instead of those of points.
  Packing taps_packing() const {
    Packing taps = packing_;
    for (PackedBox& box : taps.boxes) {
      box.source = box.source / transform_.points() * transform_.taps();
      for (PackedDim& dim : box.dims) dim.source = dim.source / transform_.points() * transform_.taps();
    }
    return taps;
  }

  // One lane per set of taps; lanes without taps in the source are zeros.
  std::vector<Register> load_taps(const PackedRegister& at) {
    std::vector<int64_t> offsets = at.offsets;
    int lanes = static_cast<int>(offsets.size());
    int64_t valid = 0;
    for (int64_t& offset : offsets) offset < 0 ? (offset = 0) : ++valid;
    std::vector<Register> taps;
    if (valid == 0) {
      Scalar scalar = precise_ ? Scalar::F64 : Scalar::F32;
      taps.assign(static_cast<size_t>(transform_.taps()), b_.constant({scalar, lanes}, 0));
      return taps;
    }
    Register index = b_.constant_lanes({Scalar::I64, lanes}, offsets), mask;
    if (valid < lanes) mask = b_.lane_mask(lanes, valid);
    for (int64_t tap = 0; tap < transform_.taps(); ++tap) {
      Register value = b_.gather({Scalar::F32, lanes}, source_, at.source + tap, index, mask);
      taps.push_back(precise_ ? b_.cast(kernel::OpKind::FExt, value, Scalar::F64) : value);
    }
    return taps;
  }

  std::vector<Register> transform(const TransformMatrix& matrix, const std::vector<Register>& values) {
    if (!precise_) return emit_transform(b_, matrix, values);
    std::vector<Register> out;
    kernel::MachineType type = b_.type(values[0]);
    for (int row = 0; row < matrix.rows; ++row) {
      Register sum = b_.constant(type, 0);
      for (int column = 0; column < matrix.columns; ++column) {
        if (matrix.at(row, column) == 0) continue;
        Register term = b_.binary(kernel::OpKind::FMul, b_.constant(type, matrix.at(row, column)),
                                  values[static_cast<size_t>(column)]);
        sum = b_.binary(kernel::OpKind::FAdd, sum, term);
      }
      out.push_back(sum);
    }
    return out;
  }

  // Computes height * taps * width^T.
  std::vector<Register> transform(const std::vector<Register>& taps) {
    const TransformMatrix &height = transform_.height, &width = transform_.width;
    std::vector<std::vector<Register>> rows;
    for (int row = 0; row < height.columns; ++row) {
      auto from = taps.begin() + row * width.columns;
      rows.push_back(transform(width, {from, from + width.columns}));
    }
    std::vector<Register> points(static_cast<size_t>(transform_.points()));
    for (int column = 0; column < width.rows; ++column) {
      std::vector<Register> values;
      for (const std::vector<Register>& row : rows) values.push_back(row[static_cast<size_t>(column)]);
      values = transform(height, values);
      for (int row = 0; row < height.rows; ++row)
        points[static_cast<size_t>(row * width.rows + column)] = values[static_cast<size_t>(row)];
    }
    return points;
  }

  Builder& b_;
  const Packing& packing_;
  const TapTransform& transform_;
  bool precise_;
  int source_, out_;
};

} // namespace

void emit_pack(LoweringContext& context, const Instruction& instruction, const plan::PackPlan& plan) {
  Packing packing = *read_pack(instruction);
  KernelMaker maker(context, instruction, "pack");
  int source = maker.read(instruction.operand(0)), out = maker.write(result_of(instruction));
  const auto lanes = static_cast<int>(plan.lanes);
  if (packing.transform)
    TransformedPack(maker.builder(), packing, plan.in_f64, source, out).emit(lanes);
  else
    emit_pack(maker.builder(), packing, memory_scalar(instruction.type().dtype), lanes, source, out);
  maker.finish();
}

} // namespace firn::lower
