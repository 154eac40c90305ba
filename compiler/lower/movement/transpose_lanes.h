// Copies of matrices into the order that vectors want, columns of the source along lanes; and sums and the
// like of the lanes of many vectors at once.
#pragma once

#include "compiler/kernel/builder.h"

namespace firn::lower {

// rows[i] lane j becomes rows[j] lane i; as many rows as lanes, a power of two.
void transpose(kernel::Builder& builder, std::vector<kernel::Register>& rows);

// Lane i of the result combines all lanes of vectors[i] by `kind`; at most as many vectors as lanes, a power
// of two; lanes beyond them repeat what others hold.
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

// target[step][lane] = source(column lane, step) for the first `columns` lanes and all `steps`, zero in the
// others. Vectors are loaded along whichever dim lies together in memory; where that is the steps, squares of
// lanes x lanes are transposed in registers.
void copy_columns(kernel::Builder& builder, const MatrixSource& source, const MatrixTarget& target,
                  int64_t columns, const IntExpr& source_rows, int lanes);

} // namespace firn::lower
