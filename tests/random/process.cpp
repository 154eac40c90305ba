// See process.h.
#include "tests/random/process.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace firn::test {
namespace {

constexpr rlim_t kMaxMemory = rlim_t{4} << 30;
constexpr char kPhase = '\1', kVerdict = '\2'; // each begins a report of the child; other text is its output

void send(int to, const std::string& text) {
  for (size_t sent = 0; sent < text.size();) {
    ssize_t n = ::write(to, text.data() + sent, text.size() - sent);
    if (n <= 0) return;
    sent += static_cast<size_t>(n);
  }
}

[[noreturn]] void run_child(const std::function<Verdict(const Phase&)>& check, int seconds, int output) {
  // Limits computing time. The alarm ends only processes that wait, so that a busy machine fails no graph.
  rlimit time{static_cast<rlim_t>(seconds), static_cast<rlim_t>(seconds) + 5};
  ::setrlimit(RLIMIT_CPU, &time);
  ::alarm(static_cast<unsigned>(seconds) * 20);
  rlimit none{0, 0};
#ifndef __SANITIZE_ADDRESS__ // which maps terabytes
  rlimit memory{kMaxMemory, kMaxMemory};
  ::setrlimit(RLIMIT_AS, &memory);
#endif
  ::setrlimit(RLIMIT_CORE, &none);
  ::dup2(output, STDERR_FILENO);
  ::dup2(output, STDOUT_FILENO);
  Verdict verdict = check([&](const std::string& phase) { send(output, kPhase + phase + "\n"); });
  send(output, kVerdict + verdict.kind + "\n" + verdict.message);
  ::_exit(0);
}

} // namespace

CheckProcess::CheckProcess(const std::function<Verdict(const Phase&)>& check, int seconds) {
  int ends[2];
  FIRN_CHECK(::pipe(ends) == 0, "cannot make a pipe");
  std::fflush(nullptr);
  child_ = ::fork();
  FIRN_CHECK(child_ >= 0, "cannot fork");
  if (child_ == 0) run_child(check, seconds, ends[1]);
  ::close(ends[1]);
  output_ = ends[0];
}

CheckProcess::CheckProcess(CheckProcess&& other) noexcept
    : child_(std::exchange(other.child_, -1)), output_(std::exchange(other.output_, -1)),
      status_(other.status_), text_(std::move(other.text_)) {}

CheckProcess::~CheckProcess() {
  if (output_ >= 0) ::close(output_);
}

bool CheckProcess::read() {
  char buffer[4096];
  ssize_t got = ::read(output_, buffer, sizeof buffer);
  if (got > 0) return text_.append(buffer, static_cast<size_t>(got)), false;
  ::waitpid(child_, &status_, 0);
  return true;
}

Verdict CheckProcess::verdict() const {
  if (size_t at = text_.rfind(kVerdict); at != std::string::npos && WIFEXITED(status_)) {
    size_t line = text_.find('\n', at);
    return {text_.substr(at + 1, line - at - 1), text_.substr(line + 1)};
  }
  size_t at = text_.rfind(kPhase);
  std::string phase = "generate", printed = text_;
  if (at != std::string::npos) {
    size_t line = text_.find('\n', at);
    phase = text_.substr(at + 1, line - at - 1), printed = text_.substr(line + 1);
  }
  bool hung = WIFSIGNALED(status_) && (WTERMSIG(status_) == SIGXCPU || WTERMSIG(status_) == SIGALRM);
  std::string how = WIFSIGNALED(status_) ? "signal " + std::to_string(WTERMSIG(status_))
                                         : "exit code " + std::to_string(WEXITSTATUS(status_));
  return {hung ? "hang" : "crash",
          "in phase '" + phase + "', " + how + (printed.empty() ? "" : ": " + printed.substr(0, 600))};
}

Verdict CheckProcess::wait() {
  while (!read()) {
  }
  return verdict();
}

} // namespace firn::test
