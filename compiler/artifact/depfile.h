// Dependency files in Make's syntax, which Ninja and CMake read.
#pragma once

#include "compiler/support/diagnostic.h"

#include <string>
#include <vector>

namespace firn::artifact {

// "targets: inputs", one input per line, in the order given, escaped as Make and Ninja want. A path that the
// two cannot both be told, with a control character or ';' above all, is an error: it would be read as
// another path, or as a rule.
Expected<std::string> write_depfile(const std::vector<std::string>& targets,
                                    const std::vector<std::string>& inputs);

} // namespace firn::artifact
