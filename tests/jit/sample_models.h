// Models for tests of the library.
#pragma once

#include "include/firn/jit.h"

#include <string>

namespace firn::test {

// The path of a model in models/, "digits" say.
std::string model_path(const std::string& name);
// The content of a file.
std::string content(const std::string& path);
// A graph in text form that multiplies 1x64 by constants and differs from those of other seeds.
std::string small_graph(int seed);
// The model; fails the test with its message if there is none.
jit::Model compiled(jit::Compiler& compiler, const std::string& path, const jit::ModelOptions& options = {});

} // namespace firn::test
