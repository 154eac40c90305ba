// Rows that are widened, and tiles that read them.
#include "compiler/lower/contraction/widen_rows.h"

#include "compiler/lower/contraction/operand_loads.h"
#include "compiler/lower/kernel_maker.h"

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;
using kernel::Scalar;

constexpr int kHalves = 2; // words of a word of bytes: its even ones, and its odd ones

class PairsOfRows final : public TileOperands {
public:
  PairsOfRows(const ContractionSpec& spec, int rows, int scratch)
      : bytes_(spec.operands), shape_(spec.shape), rows_(rows), scratch_(scratch) {}

  Register scalar(Builder& b, const TilePosition& at, int row, const KValues& k) const override {
    return bytes_->scalar(b, at, row, k);
  }
  Register vector(Builder& b, const TilePosition& at, int vector, const KValues& k) const override {
    return bytes_->vector(b, at, vector, k);
  }
  bool row_contributes(int64_t row, const KValues& k) const override {
    return bytes_->row_contributes(row, k);
  }

  void begin_rows(Builder& b, const TilePosition& at, int rows) const override {
    KValues k(shape_.k.size());
    widen(b, at, rows, 0, k);
  }
  std::array<Register, 2> widened_scalar(Builder& b, const TilePosition&, int row,
                                         const KValues& k) const override {
    std::array<Register, 2> pairs;
    for (int half = 0; half < kHalves; ++half)
      pairs[static_cast<size_t>(half)] =
          b.cast(OpKind::Bitcast, b.load({Scalar::I32, 1}, scratch_, place(row, half, k)), Scalar::I16);
    return pairs;
  }

private:
  void widen(Builder& b, const TilePosition& at, int rows, size_t level, KValues& k) const {
    if (level < k.size())
      return b.loop(0, shape_.k[level].extent, 1, [&](const IntExpr& iv) {
        k[level] = iv;
        widen(b, at, rows, level + 1, k);
      });
    for (int row = 0; row < rows; ++row) {
      Register bytes = unpacked_operands(b, shape_.mac, bytes_->scalar(b, at, row, k));
      std::array<Register, 2> pairs = widened_pairs(b, shape_.mac.lhs, bytes);
      for (int half = 0; half < kHalves; ++half)
        b.store(b.cast(OpKind::Bitcast, pairs[static_cast<size_t>(half)], Scalar::I32), scratch_,
                place(row, half, k));
    }
  }

  IntExpr place(int row, int half, const KValues& k) const {
    IntExpr number = 0;
    for (size_t i = 0; i < shape_.k.size(); ++i) number = number * shape_.k[i].extent + k[i];
    return (number * rows_ + row) * kHalves + half;
  }

  std::shared_ptr<const TileOperands> bytes_;
  plan::ContractionShape shape_;
  int rows_, scratch_;
};

} // namespace

WidenedRows::WidenedRows(KernelMaker& maker, const plan::ContractionShape& shape, const plan::Tiling& tiling)
    : rows_(static_cast<int>(std::min<int64_t>(tiling.tile.rows, shape.m))) {
  int64_t words = int64_t{rows_} * kHalves;
  for (const plan::ReductionLoop& loop : shape.k) words *= loop.extent;
  scratch_ = maker.scratch(Scalar::I32, words, "pairs");
}

ContractionSpec WidenedRows::over(ContractionSpec spec) const {
  spec.operands = std::make_shared<const PairsOfRows>(spec, rows_, scratch_);
  spec.widens_rows = true;
  return spec;
}

} // namespace firn::lower
