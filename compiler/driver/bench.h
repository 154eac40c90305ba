// `firn bench`: how fast a model runs, kernel by kernel, against what the machine can do.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

struct BenchOptions {
  CompileOptions compile;
  double seconds = 2; // of measuring
  bool json = false;
  std::string build_folder; // --build: folder with model.onnx and test_data_set_0
  std::string output;       // of --build: the worker program
};

// Times runs on random inputs of the compiled code and prints the table.
Expected<std::string> bench(const BenchOptions& options);

// Writes a linked program that checks and times the model of `build_folder` (tools/bench/worker.cpp has the
// protocol).
Result build_worker(const BenchOptions& options);

} // namespace firn::driver
