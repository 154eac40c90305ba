// LLVM ends the process when it fails. run_guarded() makes it end only the work.
#pragma once

#include <functional>
#include <string>

namespace firn::codegen {

// Runs `work`, which calls LLVM. Empty if it returned; else LLVM's last words, or the signal of its crash.
// After a failure, objects that the work used can be neither used again nor destroyed. Several threads may
// run work at once.
std::string run_guarded(const std::function<void()>& work);

} // namespace firn::codegen
