// Which composites have kernels; the others are lowered as their bodies.
#pragma once

#include "compiler/graph/resample.h"

#include <optional>
#include <vector>

namespace firn::plan {

// The form of softmax, layer norm and their like: reductions along a row, and elementwise code.
struct RowForm {
  std::vector<int64_t> dims;     // dims of a row, ascending
  std::vector<Value> reductions; // reductions over them, in order
  bool is_last_dim = false;      // the last dim alone is a row
};

// The row form of a composite; nothing unless it has one of the known names and its body has the form:
// reductions over the same dims, each of one value, and elementwise code.
std::optional<RowForm> find_rows(const Instruction& composite);

// Whether the terms of a reduction can be stored in the result's place: they are exponentials of its type,
// and computed in that type.
bool can_store_exponentials(Value terms, const Type& result);

// The dims of a composite `resample` whose lines combine few enough lines for straight code; nothing for any
// other instruction.
std::optional<std::vector<ResampledDim>> find_resample(const Instruction& instruction);

// Whether some plan covers composites of that name, whatever their types: passes keep such composites.
bool has_composite_kernel(const Instruction& instruction);

// Whether a composite computes every element on its own, as gelu does.
bool is_elementwise_composite(const Instruction& instruction);

} // namespace firn::plan
