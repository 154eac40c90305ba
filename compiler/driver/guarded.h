// The border of the library: what goes wrong inside the compiler is a diagnostic outside.
#pragma once

#include "compiler/support/diagnostic.h"

namespace firn::driver {

// The fault of the compiler as a diagnostic (exit code 4) that names the model.
inline Diagnostic failure_diagnostic(const std::string& model, const InternalFailure& failure) {
  return internal_error(model + ": " + failure.message() +
                        "\nPlease report this with the model that caused it.");
}

// Runs an entry point of the library, whose result can hold a diagnostic.
template <class Body> auto guarded(const std::string& model, Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const InternalFailure& failure) {
    return failure_diagnostic(model, failure);
  }
}

// Runs an entry point that adds to a list of diagnostics; after a failure the result is `failed`.
template <class Body, class Failed>
auto guarded(const std::string& model, DiagnosticList& diagnostics, Failed failed, Body body)
    -> decltype(body()) {
  try {
    return body();
  } catch (const InternalFailure& failure) {
    diagnostics.add(failure_diagnostic(model, failure));
    return failed;
  }
}

} // namespace firn::driver
