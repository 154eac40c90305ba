// Dots, blocked ones too, as contractions: which dims become rows, columns and loops of the reduction. Free
// dims of one operand are rows and of the other columns; dims that lie evenly in memory are taken as one.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/tiling.h"
#include "compiler/target/target_info.h"

#include <optional>

namespace firn::plan {

// Where extents vary both are expressions.
struct Axis {
  IntExpr extent, stride; // in elements
};
// All axes as one, if stepping through them in order moves evenly; extents of 1 do not count.
std::optional<Axis> as_one(const std::vector<Axis>& axes);
// At the bounds.
int64_t extent_of(const std::vector<Axis>& axes);

// One operand's dims in the order of their role.
struct DotOperand {
  Type type;
  std::vector<Axis> batch, free, contract;
};

// The columns of a dot may be a constant that lies as tiles read it: [n,k] as [panel][k][column of the
// panel], the last panel as wide as the others. Those of one panel; 0: the type lies otherwise.
int64_t columns_of_panel(const Type& type);
Layout layout_in_panels(int64_t columns);

struct DotGeometry {
  // Contracted dims, neighbours merged where both operands allow it. Of a blocked dot: blocks, and within
  // them steps, or words of steps.
  struct Contract {
    int64_t extent; // at the bounds
    IntExpr row_stride, column_stride;
    IntExpr k_extent; // of a run, which varies only where there is one loop
  };
  DotOperand rows, columns;
  bool swapped = false;      // the lhs has the columns
  bool in_blocks = false;    // sums over the last loop are scaled, by block and column
  int64_t panel_columns = 0; // of a constant in panels; 0: columns are packed, or read where they lie
  int64_t word_k = 1;        // steps of the reduction that an element of the columns holds
  bool rows_as_one = false;  // all free dims of that operand are the tiled rows, rather than the last one
  Axis row{1, 1}, column{1, 1};
  std::vector<Contract> contract; // one at least
  ContractionShape shape;
  int64_t flops = 0; // at the bounds

  // Elements of the columns that a lane holds: a k group, or a word.
  int k_group() const { return word_k > 1 ? 1 : shape.mac.k_group(); }
  // Whether the operand with the columns lies at places that do not vary, and so can be packed: as many of
  // them as a run has.
  bool has_static_columns() const;
  // Of the loops around the tiles, as shape.outer.
  std::vector<IntExpr> outer_extents() const;
  // Of the one loop of a reduction that is cut into so many parts: those of each but the last, in whole
  // products.
  int64_t split_k_extent(int64_t split_k) const {
    int64_t group = shape.mac.k_group(), k_extent = (contract[0].extent + split_k - 1) / split_k;
    return (k_extent + group - 1) / group * group;
  }

  // The same dot of columns that have become what products take: of several steps bytes, as they are here,
  // else f32, in one loop where those of a block lie side by side.
  DotGeometry widened() const;

  // Nothing if register tiles do not cover the dot: types that have no product, layouts other than plain
  // ones and a rhs in panels, columns that lie unevenly. Batches and rows may vary; so may what is summed
  // where that is one loop over single steps, and columns of one dim that are read where they lie.
  static std::optional<DotGeometry> of(const Instruction& dot, const Type& result, bool swapped,
                                       const MacInstruction& mac);

private:
  static std::optional<DotGeometry> of_blocks(const Instruction& dot, const Type& result,
                                              const MacInstruction& mac);
  void set_shape(const MacInstruction& mac);
};

// Whether columns can be read where they lie: of as many as only a run knows, parts of vectors.
bool can_stay(const DotGeometry& g, const TargetInfo& target);
// Whether register tiles reach the columns of neither operand of a dot, but would those of the rhs if its
// free dims lay last; and rows are enough to be worth that copy.
bool prefers_aligned_columns(const Instruction& dot, const TargetInfo& target);

} // namespace firn::plan
