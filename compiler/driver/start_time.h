// `firn bench --start`: how long a program that compiles in process waits for its first output.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

struct StartOptions {
  CompileOptions compile;
  int repetitions = 5; // each in a process of its own
  bool json = false;
};

// Seconds from the model's file to the first output, the median of the repetitions, and where they went.
// Returns the table or JSON; nothing, with the reasons in `diagnostics`, if that failed.
std::optional<std::string> start_time(const StartOptions& options, DiagnosticList& diagnostics);

} // namespace firn::driver
