// The errors of a compilation in fewer digits: its outputs against those of the model at its own precision.
#pragma once

#include "compiler/driver/tensor_error.h"
#include "compiler/driver/verify.h"

namespace firn::driver {

// Whether the options have a model computed in fewer digits than its own.
bool narrows(const CompileOptions& options);

// Errors of all outputs, and the data that they were measured on: "2 data sets", "4 seeded inputs".
struct StatedErrors {
  std::string data;
  std::vector<OutputError> outputs;
};

// Compiles options.model twice for this machine, as the options say and by --math=strict without what
// narrows, and runs both on the data sets beside a model.onnx, else on seeded inputs; dims that vary are at
// their bounds in these.
Expected<StatedErrors> state_errors(const CompileOptions& options);

// A line for each output below a line of titles; without a line for the data.
std::string errors_text(const StatedErrors& errors);
// The last part of `firn compile --report`: the errors with their data, or why there are none to be had.
// Empty where the options narrow nothing.
std::string stated_text(const CompileOptions& options);

// A case of `firn verify --against f32`.
CaseResult state_case(const VerifyOptions& options, const std::string& path);

} // namespace firn::driver
