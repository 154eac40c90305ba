// Views: a value that has the bytes of another in the same order needs no kernel.
#pragma once

#include "compiler/graph/module.h"

#include <optional>
#include <vector>

namespace firn::plan {

// Dims of a tensor as they lie in memory, outermost first, with blocks split into their outer and inner part.
struct PhysicalDim {
  int logical;
  int64_t extent;
  int64_t unit; // logical elements per step
};
std::vector<PhysicalDim> physical_dims_of(const Type& type);

// Whether no dim of operands and results varies.
bool has_static_types(const Instruction& instruction);

// The offset in bytes into its first operand at which the instruction's one result lies: for reshapes and
// bitcasts that keep the physical order, contiguous slices, and copies to the same layout. Nothing if the
// result is computed.
std::optional<int64_t> view_offset(const Instruction& instruction);

// The offset in bytes from the start of `whole` at which `part` lies if its elements are a slice that is
// contiguous in memory. `starts`: the first index of the part within the whole, per logical dim. Nothing if
// the slice is not contiguous.
std::optional<int64_t> contiguous_offset(const Type& whole, const Type& part,
                                         const std::vector<int64_t>& starts);

} // namespace firn::plan
