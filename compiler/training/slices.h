// Slices of a batch, which a step processes one after the other.
#pragma once

#include "compiler/graph/builder.h"

#include <string>
#include <vector>

namespace firn::training {

// The symbol of the batch's dim: null if the targets have no rows, or none whose number varies.
SymbolRef batch_symbol(const Type& targets);

// Whether the inputs and targets of a step, `types` with their names, can be processed `rows` rows at a time:
// the rows of the targets are `rows` times a symbol, and what depends on it is rows of inputs.
Result check_slices(const std::vector<std::string>& names, const std::vector<Type>& types,
                    const Type& targets, int64_t rows);

// The dim of the rows; -1: the tensor belongs to all slices.
int row_dim(const Type& type, const Symbol& batch);

// Makes the function one of a single slice: the symbol becomes 1.
void fix_to_slice(Region& region, const Symbol& batch);
Type slice_type(Type type, const Symbol& batch);

// How many slices of `rows` rows the targets have, an i64 scalar.
Value count_slices(GraphBuilder& builder, Value targets, int64_t rows);

// The slice of this number (an i64 scalar), if the tensor has rows.
Value slice_of(GraphBuilder& builder, Value tensor, const Symbol& batch, Value number);

} // namespace firn::training
