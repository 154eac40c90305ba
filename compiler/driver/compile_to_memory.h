// A compilation inside another program, which gets the outputs as bytes.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

struct MemoryOutputs {
  std::unique_ptr<Compilation> compilation;
  std::string object, header, manifest; // the bytes that compile() writes to NAME.o, NAME.h and NAME.json
};

// Runs the whole flow and writes no file, a temporary one neither; only CompileOptions::dump_folder is
// written to if it is given. The options must ask for an object without a file of dependencies, their
// `output` has no effect. Nothing, with the reasons in `diagnostics`, when something failed.
std::optional<MemoryOutputs> compile_to_memory(const CompileOptions& options, DiagnosticList& diagnostics);

} // namespace firn::driver
