// Diagnostics and failed checks: making them.
#include "compiler/support/diagnostic.h"

namespace firn {

Diagnostic::Diagnostic(Fault fault, std::string message) : fault(fault), message(std::move(message)) {}
Diagnostic::Diagnostic(const Diagnostic&) = default;
Diagnostic::Diagnostic(Diagnostic&&) noexcept = default;
Diagnostic& Diagnostic::operator=(const Diagnostic&) = default;
Diagnostic& Diagnostic::operator=(Diagnostic&&) noexcept = default;
Diagnostic::~Diagnostic() = default;

Diagnostic model_error(std::string message) {
  return {Fault::Model, std::move(message)};
}
Diagnostic usage_error(std::string message) {
  return {Fault::Usage, std::move(message)};
}
Diagnostic unsupported_error(std::string message) {
  return {Fault::Unsupported, std::move(message)};
}
Diagnostic internal_error(std::string message) {
  return {Fault::Internal, std::move(message)};
}
Diagnostic stopped_error() {
  return {Fault::Stopped, "the compilation was stopped"};
}

void internal_failure(const char* file, int line, const std::string& text) {
  throw InternalFailure("at " + std::string(file) + ":" + std::to_string(line) + ": " + text);
}
void internal_failure(const char* file, int line, const char* text) {
  internal_failure(file, line, std::string(text));
}

} // namespace firn
