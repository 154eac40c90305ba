// `firn gradcheck`: the gradients that Firn derives of a model, against finite differences.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

struct GradcheckOptions {
  CompileOptions compile;
  std::vector<std::string> wrt; // inputs and initializers; empty: all that are floats
  uint32_t seed = 0;
  int samples = 3; // elements of each tensor that are moved alone, besides all of them at once
  std::function<Result(const std::string&)> print;
};

struct GradcheckResult {
  int checked = 0, wrong = 0;
};

// Prints a line per wrong derivative and "N derivatives checked, M wrong". Both sides are evaluated in f64;
// nothing is compiled. Null with the reasons in `diagnostics` if the model cannot be imported, differentiated
// or evaluated.
std::optional<GradcheckResult> gradcheck(const GradcheckOptions& options, DiagnosticList& diagnostics);

} // namespace firn::driver
