// One kernel under construction and the call that gives it its buffers.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/lower/lowering_context.h"
#include "compiler/lower/machine_types.h"

#include <memory>
#include <string>
#include <vector>

namespace firn::lower {

// Builds one kernel: parameters on demand, then its body, then the call.
class KernelMaker {
public:
  // `stem` names the kernel ("softmax"), `algorithm` is what reports say of it.
  KernelMaker(LoweringContext& context, const std::string& location, std::string stem);
  // With indices that may be out of range, and are checked, the kernel has the status word.
  KernelMaker(LoweringContext& context, const Instruction& instruction, std::string stem);

  kernel::Builder& builder() { return builder_; }
  LoweringContext& context() { return context_; }
  kernel::Kernel& kernel() { return *kernel_; }
  // The number of the parameter through which a value is read or written; one per place. Before any scratch.
  int read(Value value);
  int write(Value value);
  // A parameter for a buffer of `elements`, such as packed weights or scratch in the arena.
  int parameter(BufferSlice place, kernel::Scalar element, int64_t elements, bool written, std::string name);
  // A parameter for memory that iterations of the parallel loop reuse.
  int scratch(kernel::Scalar element, int64_t elements, const char* name);
  // Work of one run, for reports.
  void set_flops(int64_t flops) { kernel_->flops = flops; }
  // Adds kernel and call to the context.
  void finish();
  // Adds a kernel that gives its second parameter the bytes of its first and does no more.
  void finish_copy();

private:
  std::vector<IntExpr> take_extents();

  LoweringContext& context_;
  std::unique_ptr<kernel::Kernel> kernel_;
  kernel::Builder builder_;
  std::vector<kernel::Argument> arguments_;
  std::string location_;
};

} // namespace firn::lower
