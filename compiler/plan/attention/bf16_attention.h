// Attention whose dots multiply bf16 and sum in f32: in tile matrices, or pairs of steps in vectors. A block
// of rows is a tile of registers, or up to two tile matrices high; its scores of a block of keys stand in
// scratch, are turned into weights there, and weigh values.
#pragma once

#include "compiler/graph/attention.h"
#include "compiler/plan/attention/plan.h"
#include "compiler/plan/options.h"

namespace firn::plan {

// The blocks that follow from a plan.
struct Bf16Blocks {
  static constexpr int kSteps = TileMatrixFacts::kRowBytes / 2; // packed operands hold multiples of it

  int lanes = 1;                  // elements of a vector of f32
  int high = 1, tile_rows = 1;    // tiles of a block, and rows of each: the last may have unused rows
  int64_t blocks = 1;             // blocks of all rows; the last begins earlier if it would reach too far
  int64_t depth_k = 0, key_k = 0; // steps of both dots, as packed
  bool operator==(const Bf16Blocks&) const = default;
};
Bf16Blocks bf16_blocks(const AttentionPlan& plan, const Attention& attention, const Machine& target);

// Why the CPU does not compute an attention in bf16; empty: it does.
std::string lacks_for_bf16(const Attention& attention, const Machine& target);
// Chooses the blocks of least cycles.
AttentionPlan choose_bf16(const Attention& attention, const Machine& target);
// Whether they take less time than the products of f32 would.
bool is_profitable_in_bf16(const Attention& attention, const Machine& target);
// Why a plan with such products cannot be followed; empty: it can.
std::string check_bf16(const AttentionPlan& plan, const Attention& attention, const Machine& target);

} // namespace firn::plan
