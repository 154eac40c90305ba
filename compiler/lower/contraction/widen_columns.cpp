// The loops that widen one group of columns.
#include "compiler/lower/contraction/widen_columns.h"

#include "compiler/lower/contraction/factors.h"
#include "compiler/lower/lowering_context.h"

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;

// The number of a step of the reduction among all of them.
IntExpr number_of(const plan::ContractionShape& shape, const std::vector<IntExpr>& k) {
  IntExpr number = 0;
  for (size_t i = 0; i < shape.k.size(); ++i) number = number * shape.k[i].extent + k[i];
  return number;
}

class GroupWidener {
public:
  GroupWidener(ContractionSpec narrow, const plan::Tiling& tiling, int scratch)
      : spec_(std::move(narrow)), lanes_(tiling.tile.lanes), looks_up_(tiling.looks_up_words),
        scratch_(scratch) {}

  void emit(Builder& b, const TilePosition& at) const {
    std::vector<IntExpr> k(spec_.shape.k.size());
    Register table = looks_up_ ? table_of_steps(b, spec_.word_steps) : Register{};
    emit_loops(b, at, 0, k, {}, table);
  }

private:
  // Scales are those of a block, which the innermost loop has.
  void emit_loops(Builder& b, const TilePosition& at, size_t level, std::vector<IntExpr>& k,
                  std::vector<Register> scales, Register table) const {
    if (level == k.size()) return emit_step(b, at, k, scales, table);
    if (level + 1 == k.size() && spec_.scales)
      for (int vector = 0; vector < at.vectors; ++vector) scales.push_back(spec_.scales(b, at, vector, k));
    b.loop(0, spec_.shape.k[level].extent, 1, [&](const IntExpr& iv) {
      k[level] = iv;
      emit_loops(b, at, level + 1, k, scales, table);
    });
  }

  void emit_step(Builder& b, const TilePosition& at, const std::vector<IntExpr>& k,
                 const std::vector<Register>& scales, Register table) const {
    IntExpr first = number_of(spec_.shape, k) * spec_.word_steps;
    for (int vector = 0; vector < at.vectors; ++vector) {
      Register loaded = spec_.vector(b, at, vector, k);
      for (int step = 0; step < spec_.word_steps; ++step) {
        Register factor =
            spec_.word_steps > 1 ? step_of_words(b, loaded, step, spec_.word_steps, table) : loaded;
        if (!scales.empty()) factor = b.binary(OpKind::FMul, factor, scales[static_cast<size_t>(vector)]);
        b.store(factor, scratch_, ((first + step) * at.vectors + vector) * lanes_, 4 * lanes_);
      }
    }
  }

  ContractionSpec spec_;
  int lanes_;
  bool looks_up_;
  int scratch_;
};

} // namespace

void widen_columns(KernelMaker& maker, ContractionSpec& tiled, ContractionSpec narrow,
                   const plan::Tiling& tiling) {
  plan::ColumnGroups groups = plan::column_groups(tiled.shape.n, tiling.tile);
  int64_t elements = int64_t{groups.most_registers()} * groups.lanes;
  for (const plan::ReductionLoop& loop : tiled.shape.k) elements *= loop.extent;
  int scratch = maker.scratch(kernel::Scalar::F32, elements, "widened");
  int lanes = groups.lanes;
  tiled.vector = [shape = tiled.shape, scratch, lanes](Builder& b, const TilePosition& at, int vector,
                                                       const std::vector<IntExpr>& k) {
    IntExpr place = (number_of(shape, k) * at.vectors + vector) * lanes;
    return b.load({kernel::Scalar::F32, lanes}, scratch, place, 4 * lanes);
  };
  // What comes from memory is asked for as it lies there.
  tiled.prefetch = narrow.prefetch;
  tiled.group_lines = narrow.group_lines;
  tiled.begin_group = [widener = GroupWidener(std::move(narrow), tiling, scratch)](
                          Builder& b, const TilePosition& at) { widener.emit(b, at); };
}

} // namespace firn::lower
