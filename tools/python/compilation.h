// A compilation that Python waits for: Ctrl-C ends it, and what it reports is told on the thread that waits.
#pragma once

#include "firn/jit.h"

#include <nanobind/nanobind.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace firn::python {

// Runs one request on a thread of its own. Its words and symbols are copies; the bytes of the model are the
// caller's.
class Compilation {
public:
  Compilation(std::string model, std::vector<std::string> options,
              std::vector<std::pair<std::string, uintptr_t>> symbols);
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;
  ~Compilation();

  // Returns the kind of the first error, FIRN_JIT_OK if there is none. Called with the interpreter's lock,
  // which others may have meanwhile. Signals that arrive and exceptions of `progress` stop the compilation
  // and are thrown.
  int32_t run(firn_jit_compiler* compiler, const void* bytes, size_t count, const nanobind::object& progress);

  firn_jit_model* take_model() { return std::exchange(model_, nullptr); }
  std::vector<std::pair<int32_t, std::string>> messages() const;

private:
  void compile(firn_jit_compiler* compiler, const void* bytes, size_t count);
  // Waits until the compilation ends, a phase begins or a moment has passed. Whether it has ended.
  bool wait(std::vector<std::string>& phases);
  void watch(const nanobind::object& progress);

  const std::string name_;
  const std::vector<std::string> options_;
  const std::vector<std::pair<std::string, uintptr_t>> symbols_;
  firn_jit_stop* const stop_;
  firn_jit_model* model_ = nullptr;
  firn_jit_messages* messages_ = nullptr;
  int32_t code_ = FIRN_JIT_INTERNAL;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> phases_; // that have begun and were not yet told
  bool has_ended_ = false;
};

} // namespace firn::python
