// Dots, blocked ones too, as contractions: which dims become rows, columns and loops of the reduction. Free
// dims of one operand are rows, those of the other columns; dims that lie evenly in memory are merged.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/contraction/tiling.h"
#include "compiler/target/machine.h"

#include <optional>

namespace firn::plan {

// Extent and stride are expressions if extents vary.
struct Axis {
  IntExpr extent, stride; // in elements
};
// All axes merged into one, if stepping through them in order moves evenly; extents of 1 do not count.
std::optional<Axis> as_one(const std::vector<Axis>& axes);
// The number of elements, at the bounds.
int64_t extent_of(const std::vector<Axis>& axes);

// One operand's dims, ordered by role.
struct DotOperand {
  Type type;
  std::vector<Axis> batch, free, contract;
};

// The columns of a dot may be a constant that lies as tiles read it: [n,k] as [panel][k][column of the
// panel], the last panel as wide as the others. Returns the columns of one panel; 0: the type lies otherwise.
int64_t columns_of_panel(const Type& type);
Layout layout_in_panels(int64_t columns);

struct DotGeometry {
  // Contracted dims, neighbours merged if both operands allow it. A blocked dot has a dim of blocks, and
  // within them steps, or words of steps.
  struct Contract {
    int64_t extent; // at the bounds
    IntExpr row_stride, column_stride;
    IntExpr k_extent; // extent in a run; varies only if there is one loop
  };
  DotOperand rows, columns;
  bool swapped = false;   // the lhs has the columns
  bool in_blocks = false; // sums over the last loop are scaled, by block and column
  // Columns of a panel of a constant in panels; 0: columns are packed, or read where they lie.
  int64_t panel_columns = 0;
  int64_t word_k = 1;       // steps of the reduction that an element of the columns holds
  bool rows_as_one = false; // the tiled rows are all free dims of that operand, not just the last
  Axis row{1, 1}, column{1, 1};
  std::vector<Contract> contract; // at least one
  ContractionShape shape;
  int64_t flops = 0; // at the bounds

  // Elements of the columns in a lane: a k group, or a word.
  int k_group() const { return word_k > 1 ? 1 : shape.mac.k_group(); }
  // Whether the columns' operand lies at places that do not vary, so that it can be packed: a run may have
  // fewer of them.
  bool has_static_columns() const;
  // Whether the lanes of a vector of sums are not neighbours in the result, but the rows of a column are.
  bool lanes_lie_apart() const { return swapped && shape.m > 1; }
  // Extents of the loops around the tiles, as in shape.outer.
  std::vector<IntExpr> outer_extents() const;
  // If the reduction's one loop is cut into so many parts: the steps of each part but the last, in whole
  // products.
  int64_t split_k_extent(int64_t split_k) const {
    int64_t group = shape.mac.k_group(), k_extent = (contract[0].extent + split_k - 1) / split_k;
    return (k_extent + group - 1) / group * group;
  }

  // This dot with columns widened to the product's type: bytes if products take several steps, as they do
  // here, otherwise f32, in one loop if the steps of a block lie side by side.
  DotGeometry widened() const;

  // Nothing if register tiles do not cover the dot: types that have no product, layouts other than plain ones
  // and a rhs in panels, columns that lie unevenly. Batches and rows may vary. The summed dim may if it is
  // one loop over single steps, and so may columns of one dim that are read where they lie.
  static std::optional<DotGeometry> of(const Instruction& dot, const Type& result, bool swapped,
                                       const MacInstruction& mac);

private:
  static std::optional<DotGeometry> of_blocks(const Instruction& dot, const Type& result,
                                              const MacInstruction& mac);
  void set_shape(const MacInstruction& mac);
};

// Whether columns can be read where they lie; if only a run knows how many there are, the last vector may be
// a partial one.
bool can_stay(const DotGeometry& g, const Machine& target);
// Whether register tiles reach the columns of neither operand of a dot, but would reach those of the rhs if
// its free dims lay last, and there are enough rows to pay for that copy.
bool prefers_aligned_columns(const Instruction& dot, const Machine& target);

} // namespace firn::plan
