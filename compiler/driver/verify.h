// `firn verify`: models with stored inputs and outputs, compiled, run and compared.
#pragma once

#include "compiler/driver/case_engine.h"

namespace firn::driver {

struct VerifyOptions {
  std::vector<std::string> folders; // searched for cases: model.onnx with test_data_set_*
  CompileOptions compile;           // target, optimisation; the model and its dims are set per case
  Engine engine = Engine::Object;
  // Compares with the model at its own precision instead of stored outputs; folders may be files of models
  // then, and cases need no data.
  bool against_own = false;
  std::optional<double> tolerance; // nothing: default_tolerance of each output, against_own any
  bool absolute_floor = false;     // divide by max(1, largest |expected|) instead
  int jobs = 1;
  int timeout_seconds = 300; // per case
  std::string list;          // refusals that are expected: "name  reason" per line
  bool update_list = false;
  bool json = false;
  // Called with each part of the text as it comes to be known; what it fails with ends the run. May be empty.
  std::function<Result(const std::string& text)> print;
  bool quiet = false;   // print only what is not a pass
  bool verbose = false; // and which inputs were fixed to their values, as they decide shapes
};

enum class Verdict { Pass, Wrong, Refused };

struct CaseResult {
  std::string name;
  Verdict verdict = Verdict::Wrong;
  double error = 0;
  bool is_random = false; // outputs that are drawn were judged by their type, shape and statistics
  std::string message;    // if it passed: the inputs that were fixed
  std::string stated;     // against_own: the errors, as text or JSON
};

// Prints a line per case and the totals, or one JSON document. 0 if nothing is wrong and
// the refusals equal the list, else 1.
Expected<int> verify(const VerifyOptions& options);

// Runs one case in this process: a folder, or with against_own the file of a model.
CaseResult verify_case(const VerifyOptions& options, const std::string& folder);

} // namespace firn::driver
