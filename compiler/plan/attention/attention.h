// How the attention kernel walks its operands: tiles of rows, blocks of keys, and operands packed into lanes.
//
// Heads are read where they lie. Keys are read in place as well if query rows are few; else one kernel packs
// them for all rows.
#pragma once

#include "compiler/graph/attention.h"
#include "compiler/plan/attention/plan.h"
#include "compiler/plan/options.h"

namespace firn::plan {

// An attention plan with the numbers that follow from it.
struct AttentionTiling : AttentionPlan {
  int lanes = 1;
  int64_t large = 0, small = 0; // row tiles of `rows` rows, and of one row less; none where rows vary
  // Heights for products with less than a whole tile of rows or vector of keys, if only a run knows how many
  // there are: the largest first, and each divides the one before.
  std::vector<int> rest_rows = {};
  // The multiple of keys that whole vectors of weights and whole iterations of a product cover: both are
  // powers of two.
  int key_k_step() const { return lanes > unroll ? lanes : unroll; }
};

// Completes a plan whose tile is left to the cost model: register tiles as choose_tiling weighs them, but
// with rows that suit both products. Says why a plan cannot be followed; empty: it can.
std::string complete(AttentionPlan& plan, const Instruction& fusion, const PlanOptions& options);
AttentionTiling tiling_of(const AttentionPlan& plan, const Attention& attention, const Machine& target);

} // namespace firn::plan
