// LLVM ends the process when it fails. run_guarded() makes it end only the work.
#pragma once

#include <functional>
#include <string>

namespace firn::codegen {

// Runs `work`, which calls LLVM. Empty if it returned; else LLVM's last words, or the signal of its crash.
// What the work used is then in no state to be used again, nor to be destroyed. Several threads may run work
// at once.
std::string run_guarded(const std::function<void()>& work);

} // namespace firn::codegen
