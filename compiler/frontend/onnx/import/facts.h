// What a model file says of itself, and which of its operators Firn lacks. Internal to the frontend.
#pragma once

#include "compiler/frontend/onnx/wire/load.h"

namespace firn::onnx {

struct UnsupportedOperators {
  std::vector<UnsupportedOperator> operators; // sorted by domain and name
  bool certain = false; // one stands outside every If, whose branches may turn out not to be taken
};

// None of those that `options` give to the program.
UnsupportedOperators find_unsupported(const LoadedModel& model, const ImportOptions& options);

// Everything that facts say of a model without importing it.
ModelFacts read_facts(const LoadedModel& model, const ImportOptions& options);

} // namespace firn::onnx
