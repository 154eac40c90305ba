// `firn reduce`: a model that fails in some way, made small by leaving out what the failure does not need.
#pragma once

#include "compiler/support/diagnostic.h"

#include <functional>
#include <string>

namespace firn::driver {

struct ReduceOptions {
  std::string model;
  std::string check;         // a command for the shell; {} stands for the path of a model
  std::string message;       // text that the check prints when it fails; empty: anything
  std::string output;        // empty: MODEL.reduced.onnx
  int timeout_seconds = 300; // per check; one that takes longer fails by that
  std::function<void(const std::string& line)> progress; // called with each smaller part; may be empty
  // Called with a text about the part that was found, before it is written; may be empty.
  std::function<Result(const std::string& text)> announce;
};

// Writes the smallest part of the model that was found on which the check ends as it does on the whole, with
// the same exit code other than 0.
Result reduce(const ReduceOptions& options);

} // namespace firn::driver
