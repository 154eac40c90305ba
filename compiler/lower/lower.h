// Graph IR to kernel IR: every instruction of @main becomes a kernel call, a view of another buffer, or nothing.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/kernel/kernel.h"
#include "compiler/target/target_machine.h"

namespace firn::lower {

enum class Math : uint8_t { Default, Strict, Fast };

struct Options {
  TargetMachine target;
  bool optimize_size = false;
  Math math = Math::Default;
};

// The program that computes @main. What cannot be lowered is an error (Fault::Unsupported) naming the instruction's
// location and op.
Expected<kernel::Program> lower_module(const Module& module, const Options& options);

} // namespace firn::lower
