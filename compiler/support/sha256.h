// SHA-256 (FIPS 180-4): the identity of models in headers and manifests, and of literals in dumps.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace firn {

// The digest as 64 lower-case hex digits.
std::string sha256_hex(std::span<const std::byte> bytes);

} // namespace firn
