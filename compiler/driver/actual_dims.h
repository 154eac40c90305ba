// The values of varying dims in a run.
#pragma once

#include "compiler/artifact/model_description.h"
#include "compiler/graph/literal.h"
#include "compiler/support/bind_symbols.h"

#include <map>

namespace firn::driver {

struct ActualDims {
  SymbolTable values;          // by symbol of the description's dims
  std::vector<size_t> extents; // the arguments that the object gets for them
};

// Finds the dims that tensors of a run decide. An error names a dim that does not fit or that the object is
// not for.
Expected<ActualDims> find_dims(const artifact::ModelDescription& d, std::vector<KnownExtent> known);
// Dims with the values that are given by name; others have their upper bounds.
Expected<ActualDims> dims_at(const artifact::ModelDescription& d,
                             const std::map<std::string, int64_t>& values);

// Whether an input of a run fits its tensor: type and rank, and every dim that does not vary. A state that is
// not given (null) goes on from what it is.
Result check_input(const artifact::TensorDescription& wanted, const LiteralRef& input, bool is_state);

// Adds to `known` that the dims of `tensor` are `actual` in a run; `actual` has as many.
void add_known(const artifact::TensorDescription& tensor, const std::vector<int64_t>& actual,
               std::vector<KnownExtent>& known);
std::vector<int64_t> actual_dims(const artifact::TensorDescription& tensor, const ActualDims& dims);
// The bytes of a tensor in a run; those that depend on data are at their bound.
size_t actual_bytes(const artifact::TensorDescription& tensor, const ActualDims& dims);

} // namespace firn::driver
