// Dims that vary: how texts name them, and how generated headers compute the extents of tensors from them.
#pragma once

#include "compiler/artifact/model_description.h"

#include <string>

namespace firn::artifact {

// "1..8", "32..512:32", "1|4|8": as --dim takes it.
std::string range_text(const DimDescription& dim);
// "batch=1..8, seq=1..512"; empty if none varies.
std::string dims_text(const ModelDescription& model);

// The value of an expression over the model's dims as an int64_t, in words that C and C++ share; `table` is
// what run() is given (firn_rt2_call::extents).
std::string extent_code(const IntExpr& extent, const ModelDescription& model, const std::string& table);

} // namespace firn::artifact
