// `firn quantize`: a model in floats to one that computes in 8-bit integers, by calibration data.
#pragma once

#include "compiler/driver/compile.h"
#include "compiler/quantize/options.h"

namespace firn::driver {

struct QuantizeOptions {
  CompileOptions compile;   // for the code that is run on the data
  std::string data, output; // output empty: MODEL.int8.onnx
  std::string report;       // HTML page; empty: beside the output
  quantize::Options quantize;
  std::function<void(const std::string& phase)> progress;
};

// Writes the model and the page. The report as text; nothing, with the reasons in `diagnostics`, if that
// failed.
std::optional<std::string> quantize_model(const QuantizeOptions& options, DiagnosticList& diagnostics);

} // namespace firn::driver
