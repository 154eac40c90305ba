// The quantiser: a model in floats and calibration data in, a model with QuantizeLinear and DequantizeLinear
// and a report out. Nothing is trained.
#pragma once

#include "compiler/quantize/options.h"

namespace firn::quantize {

// A layer's outcome, for the report.
struct LayerReport {
  std::string name, op, rules;             // rules: those for the ranges of its activations
  Precision precision = Precision::Narrow; // Wide also where 16-bit activations are what was asked for
  double local_error = 0, harm = 0;        // relative errors; harm: of the outputs when it alone is quantised
  bool has_harm = false;
  std::optional<double> gain; // predicted cycles of a run that it saves, or would save, in 8 bits
  std::string reason;         // why it is not narrow
};

struct Report {
  std::string model, output;
  size_t samples = 0;
  std::optional<double> budget;
  double error = 0; // relative, of the worst output, on the calibration data
  std::string worst_output;
  std::vector<LayerReport> layers;
  int64_t float_bytes = 0, quantized_bytes = 0;  // bytes of constants
  double float_cycles = 0, quantized_cycles = 0; // predicted for a run
  std::string machine;                           // the machine that cycles are predicted for
  bool size = false;                             // Options::size
  bool misses_budget() const { return budget && !(error <= *budget); }
  bool is_faster() const { return quantized_cycles < float_cycles; }
};

// Quantises `model_path` and writes `output_path`; `folder` holds what is tried on the way.
Expected<Report> quantize(const std::string& model_path, const std::string& output_path,
                          const std::string& folder, const std::vector<Sample>& samples,
                          const Options& options, const Engine& engine, const Progress& progress);

std::string report_text(const Report& report);
std::string report_html(const Report& report);
// Messages about a budget that is missed, and about a model that is not faster.
std::string missed_budget_text(const Report& report);
std::string not_faster_text(const Report& report);

} // namespace firn::quantize
