// Attention by tile matrices: both dots multiply bf16 and sum in f32. A block of rows is up to two tiles
// high; its scores of a block of keys stand in scratch, are turned into weights there, and weigh values.
#pragma once

#include "compiler/graph/attention.h"
#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/options.h"

namespace firn::plan {

// What follows from a plan.
struct MatrixBlocks {
  static constexpr int kSteps = TileMatrixFacts::kRowBytes / 2; // of a product

  int high = 1, tile_rows = 1; // tiles of a block, and rows of each: the last may have some to spare
  int64_t blocks = 1;          // of all rows; the last begins earlier where it would reach too far
  int64_t depth_steps = 0, key_steps = 0; // of both dots, in whole products
  bool operator==(const MatrixBlocks&) const = default;
};
MatrixBlocks matrix_blocks(const AttentionPlan& plan, const Attention& attention);

// Why tile matrices do not compute an attention; empty: they can.
std::string lacks_for_matrices(const Attention& attention, const TargetInfo& target);
// The blocks of least cycles.
AttentionPlan choose_matrix_blocks(const Attention& attention, const TargetInfo& target);
// Whether they take less time than the products of f32 would.
bool gains_by_matrices(const Attention& attention, const TargetInfo& target);
// Why a plan with tile matrices cannot be followed; empty: it can.
std::string check_matrix_blocks(const AttentionPlan& plan, const Attention& attention,
                                const TargetInfo& target);

} // namespace firn::plan
