// `firn opt`: runs passes on a graph or on kernels in text form, and lowers a graph to kernels.
#pragma once

#include "compiler/support/diagnostic.h"
#include "compiler/support/goals.h"

#include <cstdint>
#include <optional>
#include <string>

namespace firn::driver {

struct OptOptions {
  std::string input;                 // an .hlo or .kir file, or - for standard input
  std::string passes;                // comma-separated; "default" for what compile runs
  std::string weights_in;            // graphs: side file with literals, optional
  std::string weights_out;           // graphs: where to write the result's literals, optional
  std::string triple, cpu, features; // with a cpu, target-dependent passes see it
  std::string gpu;                   // instead of a CPU: what find_gpu() takes
  Goals goals;
  int rewrite_limit = -1;
  std::optional<int64_t> memory_budget; // bytes, for rematerialize
  bool verify_only = false;
  bool lower = false; // graphs: the kernels of @main by its plans, for the target that the options name
};

// The module or program after the passes, as text; with `lower` the kernels of the module.
Expected<std::string> opt(const OptOptions& options);

} // namespace firn::driver
