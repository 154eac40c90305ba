// Facts that a model file states, and the operators in it that Firn lacks. Internal to the frontend.
#pragma once

#include "compiler/frontend/onnx/wire/load.h"

namespace firn::onnx {

struct UnsupportedOperators {
  std::vector<UnsupportedOperator> operators; // sorted by domain and name
  bool certain = false; // one of them is outside every If; branches of Ifs may not be taken
};

// Operators that Firn does not know and that no function of the program computes (`options`).
UnsupportedOperators find_unsupported(const LoadedModel& model, const ImportOptions& options);

// All facts that can be had of a model without importing it.
ModelFacts read_facts(const LoadedModel& model, const ImportOptions& options);

} // namespace firn::onnx
