// Products of one query row with keys whose depth lies side by side: attention of few rows computes them
// without packing the keys first.
#pragma once

#include "compiler/kernel/builder.h"

namespace firn::lower {

struct QkDot {
  int query, keys; // buffers
  IntExpr query_place, key_place;
  IntExpr key_stride; // from one key to the next
  int64_t depth;      // a multiple of `lanes`
  int lanes;
};

// A vector whose lane i is the product of the query with key i, zero from lane `valid` on: no key is read
// there.
kernel::Register emit_qk_dot(kernel::Builder& builder, const QkDot& products, int valid);

} // namespace firn::lower
