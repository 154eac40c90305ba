// Floats between the integers of shape arithmetic: exporters write ceil(height / 2.0) * 2.0 and int(width *
// 0.5).
#pragma once

#include "compiler/frontend/onnx/import_state.h"

namespace firn::onnx {

// A float as a quotient. A run computes it with at most one rounding, and the numerator is so small that this
// changes neither floor nor ceiling.
struct Ratio {
  IntExpr numerator;
  int64_t denominator; // above 0
};

// The elements of a value of f32 or f64 made of known integers; nothing if they may be rounded twice.
std::optional<std::vector<Ratio>> known_ratios(const KnownInts& known, Value value);

// The ratios rounded towards 0; nothing if a sign may differ from run to run.
std::optional<std::vector<IntExpr>> truncated(const std::vector<Ratio>& ratios);

} // namespace firn::onnx
