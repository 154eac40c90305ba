// A program in text form (.kir) with a side file of its weights, in the place of a model: what a compilation
// has made of a model when its kernels are done.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// Whether the model is kernels in text form: a file's name tells, and without a file the first word.
bool is_kernel_text(const CompileOptions& options);

struct ImportedKernels {
  kernel::Program program; // has its entry, places and weights
  std::unique_ptr<Module> module;
  onnx::ModelFacts facts;
  std::vector<onnx::VaryingDim> dims;
};

// Reads the text and the weights of --weights-in. Errors: options that are for models; text that is none,
// with line and column; a program without places, or whose buffers and interface disagree; weights of another
// length.
Expected<ImportedKernels> import_kernels(const CompileOptions& options);

} // namespace firn::driver
