// `firn bench`: how fast a model runs, kernel by kernel, against what the machine can do.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

struct BenchOptions {
  CompileOptions compile;
  double seconds = 2; // time to measure for
  bool json = false;
  std::map<std::string, int64_t> at; // values of dims that vary; others are at their bounds
  bool simulate = false;             // time the tasks of compile.threads threads one after the other
  std::string build_folder;          // --build: folder with model.onnx and test_data_set_*
  std::string output;                // --build: the worker program
};

// Times runs of the compiled code on random inputs. Returns the table; nothing, with the reasons in
// `diagnostics`, if that failed.
std::optional<std::string> bench(const BenchOptions& options, DiagnosticList& diagnostics);

// Writes a linked program that checks and times the model of `build_folder` (tools/bench/worker.cpp has the
// protocol). False, with the reasons in `diagnostics`, if that failed.
bool build_worker(const BenchOptions& options, DiagnosticList& diagnostics);

} // namespace firn::driver
