// Weights of recurrent layers in the order in which a step reads them: for every block of hidden units, the
// gates' columns side by side, so that one pass over the block's panel gives all gates of its units.
//
//   packed[block][k][gate][unit vector][lane]  of  weights[gate * hidden + unit][k]
//
// Lanes beyond the last unit hold zeros.
#pragma once

#include "compiler/graph/dtype.h"
#include "compiler/support/int_expr.h"
#include "compiler/support/packing.h"

#include <vector>

namespace firn::plan {

// The hidden units in vectors, and the vectors in blocks; the last block may have fewer.
struct UnitBlocks {
  int64_t hidden = 1;
  int lanes = 1;
  int vectors = 1; // vectors of a whole block
  int64_t total_vectors() const { return (hidden + lanes - 1) / lanes; }
  // Blocks whose units all exist; the rest is one block of `rest_vectors`.
  int64_t whole_blocks() const { return hidden / (static_cast<int64_t>(vectors) * lanes); }
  int rest_vectors() const { return static_cast<int>(total_vectors() - whole_blocks() * vectors); }
  // Lanes of the very last vector that hold units.
  int last_lanes() const { return static_cast<int>(hidden - (total_vectors() - 1) * lanes); }
};

struct GatePanels {
  UnitBlocks units;
  std::vector<int> gates;   // by number, in the order in which they are read
  int64_t reduction = 1;    // extent of k
  DType dtype = DType::F32; // or i8

  int64_t elements() const {
    return static_cast<int64_t>(gates.size()) * reduction * units.total_vectors() * units.lanes;
  }
  // The place of a vector in the block that starts at `first_vector` and has `vectors`: by k, gate position
  // and vector.
  IntExpr index(const IntExpr& first_vector, int vectors, const IntExpr& k, int gate, int vector) const;
  int64_t element_bytes() const { return bit_width(dtype) / 8; }
  // How to pack the panels from weights of `source_elements` elements.
  Packing packing(int64_t source_elements) const;
};

} // namespace firn::plan
