// A compilation that Python waits for: Ctrl-C ends it, and its progress is reported on the thread that waits.
#pragma once

#include "firn/jit.h"

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace firn::python {

// Runs one request on a thread of its own.
class Compilation {
public:
  Compilation(std::shared_ptr<firn_jit_compiler> compiler, std::string model, nanobind::object data,
              std::vector<std::string> options, std::vector<std::pair<std::string, uintptr_t>> symbols);
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;
  ~Compilation(); // with the interpreter's lock; waits for the thread

  // Compiles, with the interpreter's lock, which others may have meanwhile. Signals that arrive and
  // exceptions of `progress` stop the compilation and are thrown. A thread that does not stop at once is left
  // to end on its own, and keeps all that it reads.
  static void run(std::unique_ptr<Compilation>& compilation, const nanobind::object& progress);

  int32_t code() const { return code_; } // the kind of the first error; FIRN_JIT_OK: there is none
  firn_jit_model* take_model() { return std::exchange(model_, nullptr); }
  std::vector<std::pair<int32_t, std::string>> messages() const;

private:
  void compile();
  void watch(const nanobind::object& progress);
  // Waits until the compilation ends, a phase begins or the time has passed. Whether it has ended.
  bool wait(std::chrono::milliseconds time, std::vector<std::string>& phases);
  bool ends_within(std::chrono::milliseconds time);

  const std::shared_ptr<firn_jit_compiler> compiler_;
  const std::string name_;
  const nanobind::object data_; // bytes or None
  const std::vector<std::string> options_;
  const std::vector<std::pair<std::string, uintptr_t>> symbols_;
  firn_jit_stop* const stop_;
  firn_jit_model* model_ = nullptr;
  firn_jit_messages* messages_ = nullptr;
  int32_t code_ = FIRN_JIT_INTERNAL;

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> phases_; // phases that have begun and were not yet reported
  bool has_ended_ = false;
};

} // namespace firn::python
