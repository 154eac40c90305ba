// Fatal errors arrive at a handler that must not return, crashes as signals; LLVM's crash recovery leaves
// both by a long jump over its own frames.
#include "compiler/codegen/run_guarded.h"

#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/ErrorHandling.h>

#include <cstdlib>
#include <string_view>

namespace firn::codegen {

namespace {

// The reason must outlive the jump, which runs no destructors.
thread_local std::string last_words;

// LLVM says what it stumbled over in the first line, then shows the code around it, and where in the last.
std::string first_and_last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  size_t first = text.find('\n'), last = text.rfind('\n');
  std::string result(text.substr(0, first));
  if (last != std::string_view::npos) result += " ... " + std::string(text.substr(last + 1));
  return result;
}

void leave(void*, const char* reason, bool) {
  last_words = first_and_last_line(reason);
  llvm::CrashRecoveryContext::GetCurrent()->HandleExit(EXIT_FAILURE);
}

} // namespace

std::string run_guarded(const std::function<void()>& work) {
  last_words.clear();
  llvm::ScopedFatalErrorHandler handler(leave);
  // Signals are caught for the time of the work alone, as others have handlers of their own.
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext recovery;
  bool returned = recovery.RunSafely(work);
  llvm::CrashRecoveryContext::Disable();
  if (returned) return "";
  if (!last_words.empty()) return last_words;
  return "it crashed with signal " + std::to_string(recovery.RetCode - 128);
}

} // namespace firn::codegen
