// The manifest: what a compilation produced, as JSON for build systems and tools.
#pragma once

#include "compiler/artifact/model_description.h"

#include <string>
#include <string_view>

namespace firn::artifact {

// One JSON object; keys in a fixed order, two spaces of indentation, no time or path of this machine.
std::string write_manifest(const ModelDescription& model);

// A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

} // namespace firn::artifact
