// The composite `pack` {packing = "..."}: source -> a packed constant, flat, as support/packing.h describes
// packings. @prepare is made of such.
#pragma once

#include "compiler/graph/builder.h"
#include "compiler/support/packing.h"

namespace firn {

// The composite; elements keep the dtype of `source`, which has any dims. Its body gathers what every box
// copies and scatters it where it belongs.
Value make_pack(GraphBuilder& builder, Value source, const Packing& packing);

// The packing of a composite `pack` whose operand and result it fits; nothing for any other instruction.
std::optional<Packing> read_pack(const Instruction& instruction);

} // namespace firn
