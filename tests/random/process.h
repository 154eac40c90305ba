// Checks run in a process of their own, with limits of time and memory: if it crashes or exceeds them, that
// is a verdict like others.
#pragma once

#include "tests/random/check_case.h"

#include <sys/types.h>

namespace firn::test {

using Phase = std::function<void(const std::string&)>;

class CheckProcess {
public:
  // Starts `check` in a child that computes for at most `seconds`.
  CheckProcess(const std::function<Verdict(const Phase&)>& check, int seconds);
  CheckProcess(CheckProcess&&) noexcept;
  ~CheckProcess();
  int output() const { return output_; } // readable when there is news, or when the child has ended
  // Reads what is there. True when the child has ended.
  bool read();
  Verdict verdict() const; // once it has ended
  // Waits for the end.
  Verdict wait();

private:
  pid_t child_ = -1;
  int output_ = -1, status_ = 0;
  std::string text_;
};

} // namespace firn::test
