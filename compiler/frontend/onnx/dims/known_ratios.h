// Floats that shape arithmetic passes through on its way between integers made of dims, as exporters write
// ceil(height / 2.0) * 2.0 and int(width * 0.5).
#pragma once

#include "compiler/frontend/onnx/import_state.h"

namespace firn::onnx {

// A float as a quotient. The value in a run is it rounded once, where the numerator is small enough that this
// changes neither its floor nor its ceiling.
struct Ratio {
  IntExpr numerator;
  int64_t denominator; // above 0
};

// The elements of a value of f32 or f64 made of known integers; nothing where they may be rounded twice.
std::optional<std::vector<Ratio>> known_ratios(const KnownInts& known, Value value);

// What they are as integers, rounded towards 0; nothing where signs differ from run to run.
std::optional<std::vector<IntExpr>> truncated(const std::vector<Ratio>& ratios);

} // namespace firn::onnx
