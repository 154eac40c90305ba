// `firn quantize`: a model in floats to one that computes in 8-bit integers, by calibration data.
#pragma once

#include "compiler/driver/compile.h"
#include "compiler/quantize/options.h"

namespace firn::driver {

struct QuantizeOptions {
  CompileOptions compile;   // for the code that is run on the data
  std::string data, output; // output empty: MODEL.int8.onnx
  std::string report;       // HTML page; empty: beside the output
  std::string depfile;      // rule for make and ninja; empty: none
  quantize::Options quantize;
  std::function<void(const std::string& phase)> progress;
  // Called with the report when all files are complete and none is in its place yet: after a failure none
  // will be.
  std::function<Result(const std::string& report)> announce;
};

struct QuantizedModel {
  std::vector<std::string> warnings; // about the model
};

// Writes the model and the page. Nothing, with the reasons in `diagnostics`, if that failed.
std::optional<QuantizedModel> quantize_model(const QuantizeOptions& options, DiagnosticList& diagnostics);

} // namespace firn::driver
