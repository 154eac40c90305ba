// Dependency files in Make's syntax, which Ninja and CMake read.
#pragma once

#include <string>
#include <vector>

namespace firn::artifact {

// "targets: inputs", one input per line, in the order given; spaces, '#' and '$' are escaped as Make and
// Ninja want.
std::string write_depfile(const std::vector<std::string>& targets, const std::vector<std::string>& inputs);

} // namespace firn::artifact
