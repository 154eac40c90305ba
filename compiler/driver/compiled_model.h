// The engine of the quantiser: a model as compiled code, run on several samples at the same time.
#pragma once

#include "compiler/driver/compile.h"
#include "compiler/quantize/options.h"

namespace firn::driver {

// The model of `options`, whose facts are known. It is compiled when it is first asked for something, and
// again where samples have other shapes, or other values that the code has to know.
std::unique_ptr<quantize::Executable> compiled_model(CompileOptions options, onnx::ModelFacts facts);

} // namespace firn::driver
