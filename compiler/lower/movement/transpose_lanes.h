// Copies of matrices with columns of the source along lanes, and reductions of the lanes of many vectors at
// once.
#pragma once

#include "compiler/kernel/builder.h"

namespace firn::lower {

// Moves lane j of rows[i] to lane i of rows[j]; there are as many rows as lanes, a power of two.
void transpose(kernel::Builder& builder, std::vector<kernel::Register>& rows);

// Lane i of the result combines all lanes of vectors[i] by `kind`. There are at most as many vectors as
// lanes, which are a power of two; further lanes repeat others.
kernel::Register fold_lanes(kernel::Builder& builder, kernel::OpKind kind,
                            std::vector<kernel::Register> vectors, int lanes);

// A matrix in a buffer: element (column, step) lies at place + column * column_stride + step * step_stride.
struct MatrixSource {
  int buffer;
  IntExpr place, column_stride, step_stride;
};
struct MatrixTarget {
  int buffer;
  IntExpr place; // a multiple of the lanes
};

// Sets target[step][lane] = source(column lane, step) for the first `columns` lanes and the steps below
// `source_rows`, and zero in other lanes. Vectors are loaded along the dim that lies together in memory; if
// steps do, squares of lanes x lanes are transposed in registers.
void copy_columns(kernel::Builder& builder, const MatrixSource& source, const MatrixTarget& target,
                  int64_t columns, const IntExpr& source_rows, int lanes);

} // namespace firn::lower
