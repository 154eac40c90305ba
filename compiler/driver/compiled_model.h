// The engine of the quantiser: a model as compiled code, run on several samples at the same time.
#pragma once

#include "compiler/driver/compile.h"
#include "compiler/quantize/options.h"

#include <set>

namespace firn::driver {

// The model of `options`, whose facts are known. It is compiled when it is first asked for something, and
// again where samples have other shapes, or other values that the code has to know. `external_files`, which
// outlives it, gets the paths of external data that is read.
std::unique_ptr<quantize::Executable> compiled_model(CompileOptions options, onnx::ModelFacts facts,
                                                     std::set<std::string>& external_files);

} // namespace firn::driver
