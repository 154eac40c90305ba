// One graph, compiled, linked, run and compared with the evaluator's results for the module as it was
// imported.
#pragma once

#include "tests/random/generate.h"

#include <functional>

namespace firn::test {

struct Verdict {
  std::string kind; // "" if all is well; else one word: "wrong", "refused", "crash" ...
  std::string message;
  bool passed() const { return kind.empty(); }
  // The importer takes more forms of varying dims than there are kernels for. A message about that is no
  // failure.
  bool is_limit() const { return kind == "limit"; }
};

// Compiles and runs in this process, which a wrong program may end. `phase` is told what comes next. Checks
// besides the values: inputs survive, what an arena held before a run does not matter, nothing is touched
// outside of the arena, the weights, inputs and outputs.
Verdict check_case(const TestCase& test, const std::function<void(const std::string&)>& phase);

// Writes the case in ONNX's layout: FOLDER/model.onnx and FOLDER/test_data_set_0, which `firn verify` reads.
Result write_case(const TestCase& test, const std::string& folder);

} // namespace firn::test
