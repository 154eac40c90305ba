// Files of tensors by name: NumPy's .npz and safetensors.
#pragma once

#include "compiler/graph/literal.h"

#include <map>
#include <string>

namespace firn::driver {

using NamedTensors = std::map<std::string, LiteralRef>;

// The bytes of an archive of arrays that are stored, not deflated (read_npz() reads it back), and of a file
// of safetensors. A usage error where the form cannot hold a tensor; `path` is for messages.
Expected<std::string> npz_bytes(const std::string& path, const NamedTensors& tensors);
Expected<std::string> safetensors_bytes(const std::string& path, const NamedTensors& tensors);

} // namespace firn::driver
