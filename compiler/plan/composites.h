// Which composites have kernels; the others are lowered as their bodies.
#pragma once

#include "compiler/graph/module.h"

#include <optional>
#include <vector>

namespace firn::plan {

// Softmax, layer norm and their like: the body is reductions along a row and elementwise code.
struct RowForm {
  std::vector<int64_t> dims;     // of a row, ascending
  std::vector<Value> reductions; // over them, in order
  bool is_last_dim = false;      // a row is all that lies along the last dim
};

// Nothing unless the composite is one of those by name, and its body has the form: reductions over the same
// dims, each of one value, and elementwise code.
std::optional<RowForm> find_rows(const Instruction& composite);

// Whether some plan covers composites of that name, whatever their types: passes keep these.
bool has_composite_kernel(const Instruction& instruction);

// Whether a composite computes every element on its own, as gelu does.
bool is_elementwise_composite(const Instruction& instruction);

} // namespace firn::plan
