// The loops that widen one group of columns.
#include "compiler/lower/contraction/widen_columns.h"

#include "compiler/lower/contraction/operand_loads.h"
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

class GroupWidener {
public:
  GroupWidener(ContractionSpec narrow, kernel::MachineType vector, bool looks_up, int scratch)
      : spec_(std::move(narrow)), vector_(vector), looks_up_(looks_up), scratch_(scratch) {}

  void emit(Builder& b, const TilePosition& at) const {
    std::vector<IntExpr> k(spec_.shape.k.size());
    Register table = looks_up_ ? table_of_steps(b, spec_.word_k) : Register{};
    emit_loops(b, at, 0, k, {}, table);
  }

private:
  // Scales belong to a block, which is the innermost loop.
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
    IntExpr first = number_of(spec_.shape, k) * spec_.word_k;
    for (int vector = 0; vector < at.vectors; ++vector) {
      Register loaded = spec_.vector(b, at, vector, k);
      for (int step = 0; step < spec_.word_k; ++step) {
        Register factor = spec_.word_k > 1 ? step_of_words(b, loaded, step, spec_.word_k, table) : loaded;
        if (!scales.empty()) factor = b.binary(OpKind::FMul, factor, scales[static_cast<size_t>(vector)]);
        b.store(factor, scratch_, ((first + step) * at.vectors + vector) * vector_.lanes,
                vector_.lanes * kernel::scalar_bytes(vector_.scalar));
      }
    }
  }

  ContractionSpec spec_;
  kernel::MachineType vector_;
  bool looks_up_;
  int scratch_;
};

} // namespace

void widen_columns(KernelMaker& maker, ContractionSpec& tiled, ContractionSpec narrow,
                   const plan::Tiling& tiling) {
  kernel::MachineType type = vector_of(tiled.shape.mac, tiling.tile.lanes);
  int64_t elements = int64_t{plan::column_groups(tiled.shape.n, tiling.tile).max_registers()} * type.lanes;
  for (const plan::ReductionLoop& loop : tiled.shape.k) elements *= loop.extent;
  int scratch = maker.scratch(type.scalar, elements, "widened");
  auto place = [shape = tiled.shape, lanes = type.lanes](const TilePosition& at, int vector,
                                                         const std::vector<IntExpr>& k) {
    return (number_of(shape, k) * at.vectors + vector) * lanes;
  };
  tiled.vector = [place, scratch, product = tiled.shape.mac, lanes = tiling.tile.lanes](
                     Builder& b, const TilePosition& at, int vector, const std::vector<IntExpr>& k) {
    return load_packed_operands(b, product, scratch, place(at, vector, k), lanes);
  };
  tiled.vector_rows = [place, type, scratch](const TilePosition& at, int vector,
                                             const std::vector<IntExpr>& k) {
    return MatrixSlice{scratch, place(at, vector, k), int64_t{at.vectors} * type.lanes};
  };
  if (tiled.edge_rows) { // edge rows read the same columns
    auto edges = std::make_shared<EdgeRows>(*tiled.edge_rows);
    edges->spec.vector = tiled.vector;
    edges->spec.vector_rows = tiled.vector_rows;
    tiled.edge_rows = std::move(edges);
  }
  // Prefetches are for the narrow columns, which come from memory.
  tiled.prefetch = narrow.prefetch;
  tiled.group_lines = narrow.group_lines;
  tiled.begin_group = [widener = GroupWidener(std::move(narrow), type, tiling.looks_up_words, scratch)](
                          Builder& b, const TilePosition& at) { widener.emit(b, at); };
}

} // namespace firn::lower
