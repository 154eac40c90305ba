// How deep the stack of an object's code gets.
#pragma once

#include "compiler/codegen/machine.h"
#include "compiler/codegen/module_emitter.h"

#include <algorithm>
#include <cstdint>

namespace firn::codegen {

// The deepest frame of each kind of function.
struct StackDepths {
  int64_t choice = 0, entry = 0, task = 0, kernel = 0, other = 0;

  void include(const StackDepths& more) {
    choice = std::max(choice, more.choice);
    entry = std::max(entry, more.entry);
    task = std::max(task, more.task);
    kernel = std::max(kernel, more.kernel);
    other = std::max(other, more.other);
  }
};

// The depths of a module's functions.
StackDepths stack_depths(const BackendReport& report, const CodegenOptions& options,
                         const EmittedModule& emitted);
// The bytes that a call of the object's deepest function takes.
int64_t deepest_stack(const StackDepths& depths, const CodegenOptions& options);

} // namespace firn::codegen
