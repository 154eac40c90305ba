// Errors as values. A Diagnostic is a message for the user; Expected<T> carries a value or a Diagnostic; a
// DiagnosticList collects several.
//
// Faults of Firn itself end the program at a FIRN_CHECK where code finds its own invariant broken. What is
// found in data that another part has made (by the verifiers of graph and kernels and the check of objects)
// or refused by LLVM is a diagnostic of Fault::Internal: callers say which pass it was, and remove files.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace firn {

// Whose fault a failure is; the values are the exit codes of the command line.
enum class Fault { None = 0, Model = 1, Usage = 2, Unsupported = 3, Internal = 4, Stopped = 5 };

// One message. Text is lower case, without full stop, and names the node, what was found and what was wanted.
struct Diagnostic {
  Diagnostic(Fault fault, std::string message);
  // Copies, moves and destruction are compiled once, not in every file that holds one.
  Diagnostic(const Diagnostic& other);
  Diagnostic(Diagnostic&& other) noexcept;
  Diagnostic& operator=(const Diagnostic& other);
  Diagnostic& operator=(Diagnostic&& other) noexcept;
  ~Diagnostic();

  Fault fault;
  std::string message;
  std::vector<std::string> unknown_inputs; // the model compiles once their values are known
};

Diagnostic model_error(std::string message);
Diagnostic usage_error(std::string message);
Diagnostic unsupported_error(std::string message);
Diagnostic internal_error(std::string message);
Diagnostic stopped_error(); // the end of a compilation that was asked to stop

// A value or the reason why there is none. Test with `if (!x)`, read with `*x` / `x->`, report with
// `x.error()`.
template <class T> class [[nodiscard]] Expected {
public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Expected(Diagnostic error) : state_(std::in_place_index<1>, std::move(error)) {}
  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return *std::get_if<0>(&state_); }
  const T& operator*() const { return *std::get_if<0>(&state_); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  const Diagnostic& error() const { return *std::get_if<1>(&state_); }

private:
  std::variant<T, Diagnostic> state_;
};

// Expected without a value: success, or the reason of failure.
class [[nodiscard]] Result {
public:
  Result() = default;
  Result(Diagnostic error) : error_(std::move(error)) {}
  explicit operator bool() const { return !error_; }
  const Diagnostic& error() const { return *error_; }

private:
  std::optional<Diagnostic> error_;
};

// Collects up to `limit` messages and counts the rest, so that one run reports all that is wrong with a
// model.
class DiagnosticList {
public:
  static constexpr size_t limit = 20;
  void add(Diagnostic diagnostic) {
    if (messages_.size() < limit) messages_.push_back(std::move(diagnostic));
    ++count_;
  }
  void append(DiagnosticList other) {
    count_ += other.count_ - other.messages_.size();
    for (Diagnostic& diagnostic : other.messages_) add(std::move(diagnostic));
  }
  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; } // including those beyond the limit
  const std::vector<Diagnostic>& messages() const { return messages_; }

private:
  std::vector<Diagnostic> messages_;
  size_t count_ = 0;
};

// The exception of a failed FIRN_CHECK. Entry points of the driver turn it into a diagnostic
// (driver/guarded.h), so that a fault of the compiler does not end the process that it runs in.
class InternalFailure {
public:
  explicit InternalFailure(std::string message) : message_(std::move(message)) {}
  const std::string& message() const { return message_; }

private:
  std::string message_;
};

[[noreturn]] void internal_failure(const char* file, int line, const std::string& text);
[[noreturn]] void internal_failure(const char* file, int line, const char* text);

} // namespace firn

// Asserts an invariant of the compiler, in every build. `text` (std::string or literal) says what is broken.
#define FIRN_CHECK(condition, text)                                                                          \
  do {                                                                                                       \
    if (!(condition)) ::firn::internal_failure(__FILE__, __LINE__, text);                                    \
  } while (false)
// Marks a place that no valid input reaches.
#define FIRN_UNREACHABLE(text) ::firn::internal_failure(__FILE__, __LINE__, text)
