// Groups of columns that are widened, and tiles that read them.
#include "compiler/lower/contraction/widen_columns.h"

#include "compiler/lower/contraction/operand_loads.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/lowering_context.h"

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;

// A vector of the widened elements that a product takes.
kernel::MachineType vector_of(const plan::MacInstruction& product, int lanes) {
  if (product.k_group() == 1) return {kernel::Scalar::F32, lanes};
  return {kernel::Scalar::I8, lanes * product.k_group()};
}

// The number of a product among all products of the reduction.
IntExpr number_of(const plan::ContractionShape& shape, const std::vector<IntExpr>& k) {
  IntExpr number = 0;
  for (size_t i = 0; i < shape.k.size(); ++i) number = number * shape.k[i].extent + k[i];
  return number;
}

// The loops that widen one group of columns.
class GroupWidener {
public:
  GroupWidener(const ContractionSpec& narrow, kernel::MachineType vector, bool looks_up, int scratch)
      : operands_(narrow.operands), shape_(narrow.shape), word_k_(narrow.word_k),
        is_scaled_(narrow.block_scales != BlockScales::None), vector_(vector), looks_up_(looks_up),
        scratch_(scratch) {}

  void emit(Builder& b, const TilePosition& at) const {
    KValues k(shape_.k.size());
    Register table = looks_up_ ? table_of_steps(b, word_k_) : Register{};
    emit_loops(b, at, 0, k, {}, table);
  }

private:
  // Scales belong to a block, which is the innermost loop.
  void emit_loops(Builder& b, const TilePosition& at, size_t level, KValues& k, std::vector<Register> scales,
                  Register table) const {
    if (level == k.size()) return emit_step(b, at, k, scales, table);
    if (level + 1 == k.size() && is_scaled_)
      for (int vector = 0; vector < at.vectors; ++vector)
        scales.push_back(operands_->scales(b, at, vector, k));
    b.loop(0, shape_.k[level].extent, 1, [&](const IntExpr& iv) {
      k[level] = iv;
      emit_loops(b, at, level + 1, k, scales, table);
    });
  }

  void emit_step(Builder& b, const TilePosition& at, const KValues& k, const std::vector<Register>& scales,
                 Register table) const {
    IntExpr first = number_of(shape_, k) * word_k_;
    for (int vector = 0; vector < at.vectors; ++vector) {
      Register loaded = operands_->vector(b, at, vector, k);
      for (int step = 0; step < word_k_; ++step) {
        Register factor = word_k_ > 1 ? step_of_words(b, loaded, step, word_k_, table) : loaded;
        if (!scales.empty()) factor = b.binary(OpKind::FMul, factor, scales[static_cast<size_t>(vector)]);
        b.store(factor, scratch_, ((first + step) * at.vectors + vector) * vector_.lanes,
                vector_.lanes * kernel::scalar_bytes(vector_.scalar));
      }
    }
  }

  std::shared_ptr<const TileOperands> operands_;
  plan::ContractionShape shape_;
  int word_k_;
  bool is_scaled_;
  kernel::MachineType vector_;
  bool looks_up_;
  int scratch_;
};

// The operands of a contraction, whose columns lie widened in scratch.
class WidenedOperands final : public TileOperands {
public:
  WidenedOperands(const ContractionSpec& tiled, GroupWidener widener, kernel::MachineType type, int lanes,
                  int scratch)
      : scalars_(tiled.operands), shape_(tiled.shape), widener_(std::move(widener)), type_(type),
        lanes_(lanes), scratch_(scratch) {}

  Register scalar(Builder& b, const TilePosition& at, int row, const KValues& k) const override {
    return scalars_->scalar(b, at, row, k);
  }
  MatrixSlice scalar_rows(const TilePosition& at, int row, const KValues& k) const override {
    return scalars_->scalar_rows(at, row, k);
  }
  bool row_contributes(int64_t row, const KValues& k) const override {
    return scalars_->row_contributes(row, k);
  }
  ClippedRange clipped_range(const TilePosition& at, size_t level) const override {
    return scalars_->clipped_range(at, level);
  }

  Register vector(Builder& b, const TilePosition& at, int vector, const KValues& k) const override {
    return load_packed_operands(b, shape_.mac, scratch_, place(at, vector, k), lanes_);
  }
  MatrixSlice vector_rows(const TilePosition& at, int vector, const KValues& k) const override {
    return {scratch_, place(at, vector, k), int64_t{at.vectors} * type_.lanes};
  }
  void begin_group(Builder& b, const TilePosition& at) const override { widener_.emit(b, at); }

private:
  IntExpr place(const TilePosition& at, int vector, const KValues& k) const {
    return (number_of(shape_, k) * at.vectors + vector) * type_.lanes;
  }

  std::shared_ptr<const TileOperands> scalars_;
  plan::ContractionShape shape_;
  GroupWidener widener_;
  kernel::MachineType type_;
  int lanes_, scratch_;
};

} // namespace

WidenedColumns::WidenedColumns(KernelMaker& maker, const plan::ContractionShape& shape,
                               const plan::Tiling& tiling)
    : looks_up_words_(tiling.looks_up_words), lanes_(tiling.tile.lanes),
      type_(vector_of(shape.mac, tiling.tile.lanes)) {
  int64_t elements = int64_t{plan::column_groups(shape.n, tiling.tile).max_registers()} * type_.lanes;
  for (const plan::ReductionLoop& loop : shape.k) elements *= loop.extent;
  scratch_ = maker.scratch(type_.scalar, elements, "widened");
}

ContractionSpec WidenedColumns::over(ContractionSpec tiled, const ContractionSpec& narrow) const {
  tiled.operands = std::make_shared<const WidenedOperands>(
      tiled, GroupWidener(narrow, type_, looks_up_words_, scratch_), type_, lanes_, scratch_);
  if (tiled.edge_rows) { // edge rows read the same columns
    auto edges = std::make_shared<EdgeRows>(*tiled.edge_rows);
    edges->spec.operands = tiled.operands;
    tiled.edge_rows = std::move(edges);
  }
  // Requests are for the narrow columns, which come from memory.
  tiled.prefetch = narrow.prefetch;
  tiled.group_lines = narrow.group_lines;
  tiled.begins_groups = true;
  return tiled;
}

} // namespace firn::lower
