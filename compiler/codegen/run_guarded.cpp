// Fatal errors arrive at a handler that must not return, crashes as signals; LLVM's crash recovery leaves
// both by a long jump over its own frames. Its handlers belong to the process, so the first work that is
// guarded installs them and the last that is under way removes them.
#include "compiler/codegen/run_guarded.h"

#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/ErrorHandling.h>

#include <cstdlib>
#include <mutex>
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

// Called on the thread that failed.
void leave(void*, const char* reason, bool) {
  last_words = first_and_last_line(reason);
  llvm::CrashRecoveryContext::GetCurrent()->HandleExit(EXIT_FAILURE);
}

// Signals are caught for the time of the work alone, as others have handlers of their own.
class Handlers {
public:
  Handlers() {
    std::lock_guard lock(mutex);
    if (users++ > 0) return;
    llvm::install_fatal_error_handler(leave);
    llvm::CrashRecoveryContext::Enable();
  }
  ~Handlers() {
    std::lock_guard lock(mutex);
    if (--users > 0) return;
    llvm::CrashRecoveryContext::Disable();
    llvm::remove_fatal_error_handler();
  }
  Handlers(const Handlers&) = delete;

private:
  static inline std::mutex mutex;
  static inline int users = 0;
};

} // namespace

std::string run_guarded(const std::function<void()>& work) {
  last_words.clear();
  Handlers handlers;
  llvm::CrashRecoveryContext recovery;
  if (recovery.RunSafely(work)) return "";
  if (!last_words.empty()) return last_words;
  return "it crashed with signal " + std::to_string(recovery.RetCode - 128);
}

} // namespace firn::codegen
