// A model file with other values for some of its constants.
#pragma once

#include "compiler/graph/literal.h"

#include <map>
#include <string>

namespace firn::quantize {

// Writes the model of `model_path` to `path` with these values for its constants of those names. A usage
// error names one that the model does not have, or not of that type.
Result write_with_constants(const std::string& model_path, const std::map<std::string, LiteralRef>& values,
                            const std::string& path);

} // namespace firn::quantize
