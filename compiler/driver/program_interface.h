// The facts that callers know of a program, from a module to the text of its kernels and back.
#pragma once

#include "compiler/frontend/onnx/import.h"
#include "compiler/graph/module.h"
#include "compiler/kernel/kernel.h"

#include <memory>
#include <vector>

namespace firn::driver {

// The interface of a program that computes `entry`. `dims`: those that vary among its inputs.
kernel::Interface interface_of(const Function& entry, const std::vector<onnx::VaryingDim>& dims,
                               const kernel::Program& program);

// A module whose @main has the interface of a verified program, and a body that says no more than that the
// program computes it. An error names a tensor whose type is none, or whose buffer does not have its bytes.
Expected<std::unique_ptr<Module>> module_of(const kernel::Program& program);
// The dims that vary among the program's inputs.
std::vector<onnx::VaryingDim> dims_of(const kernel::Program& program);

} // namespace firn::driver
