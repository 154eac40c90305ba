// Matrix products with numpy's batch broadcasting, shared by MatMul, its integer forms and attention.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// numpy.matmul: vectors count as a row (lhs) or a column (rhs) and lose that dim again; dims before the last
// two broadcast. Null after a failure.
Value matrix_product(NodeContext& node, Value lhs, Value rhs);

// dot with the given dims. `result` is the dtype of the sums, by default that of lhs.
Value dot(NodeContext& node, Value lhs, Value rhs, const Ints& lhs_batch, const Ints& rhs_batch,
          const Ints& lhs_contract, const Ints& rhs_contract, std::optional<DType> result = {});

// Rows times the matrices of the groups that are chosen for each; grouped_matmul.cpp.
void import_grouped_matmul(NodeContext& node);

// alpha * A * B + beta * C of a node with Gemm's inputs and attributes, as its output.
void import_gemm(NodeContext& node);

} // namespace firn::onnx
