// Generates the code of an object, from one module or from parts.
#pragma once

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/stack_depth.h"

#include <map>
#include <string>
#include <vector>

namespace firn::codegen {

struct GeneratedObject {
  std::string bytes;
  // Names of the first program's kernels by number; those of the others follow.
  std::vector<std::string> kernel_symbols;
  // Names of functions that are not there, each with the name of the one that stands for it.
  std::map<std::string, std::string> merged;
  StackDepths stack;
  int64_t parts = 0, cached_parts = 0; // see ObjectFacts
};

// For object formats that Firn does not write itself: one module, with the weights.
Expected<GeneratedObject> generate_whole(const kernel::Program& program, const CodegenOptions& options);
// For ELF: every kernel by itself, on CodegenOptions::jobs threads. A placeholder stands for the weights. The
// number of threads changes no byte.
Expected<GeneratedObject> generate_in_parts(const kernel::Program& program, const CodegenOptions& options);

} // namespace firn::codegen
