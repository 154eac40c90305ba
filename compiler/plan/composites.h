// Which composites have kernels; the others are lowered as their bodies.
#pragma once

#include "compiler/graph/resample.h"

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

// Whether the terms of a reduction can stand where the result will: they are exponentials, and of its type,
// in which they are computed.
bool can_store_exponentials(Value terms, const Type& result);

// The dims of a composite `resample` whose lines are combined of few enough for straight code; nothing for
// any other instruction.
std::optional<std::vector<ResampledDim>> find_resample(const Instruction& instruction);

// Whether some plan covers composites of that name, whatever their types: passes keep these.
bool has_composite_kernel(const Instruction& instruction);

// Whether a composite computes every element on its own, as gelu does.
bool is_elementwise_composite(const Instruction& instruction);

} // namespace firn::plan
