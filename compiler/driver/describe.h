// From a planned program to the facts that headers, manifests and code generation want.
#pragma once

#include "compiler/driver/compile.h"
#include "compiler/memory/arena.h"

namespace firn::driver {

// Whether the names of inputs, outputs and dims that vary in `options` exist in the model; the message lists
// those that do.
Result check_names(const CompileOptions& options, const Function& main,
                   const std::vector<onnx::VaryingDim>& dims);
// A buffer for people: what it is called in the model, or which node computes it.
artifact::Contributor contributor(const kernel::Buffer& buffer);
memory::ArenaOptions arena_options(const CompileOptions& options, const Function& entry);
// Fills compilation.description but for what only the object tells (code bytes, stack).
Result describe(const CompileOptions& options, Compilation& compilation);
// Symbols and target for code generation; wants the description.
codegen::CodegenOptions codegen_options(const CompileOptions& options, const Compilation& compilation);
// Adds what the object told to the description.
void describe_object(Compilation& compilation);

} // namespace firn::driver
