// The sources of a program's constants: literals, as kernels know tensors.
#pragma once

#include "compiler/graph/literal.h"
#include "compiler/kernel/kernel.h"

namespace firn::lower {

// The tensor that `packing` reads, by its name in the model.
kernel::ConstantSource source_of(const LiteralRef& literal, const Packing& packing, std::string name);
// The literal of a source if its values may not be used; null for others.
LiteralRef refittable_literal(const kernel::ConstantSource& source);

} // namespace firn::lower
