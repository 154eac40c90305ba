// SHA-256 (FIPS 180-4): the identity of models in headers and manifests, and of literals in dumps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace firn {

// The digest of bytes that come in pieces.
class Sha256 {
public:
  Sha256();
  void add(std::span<const std::byte> bytes);
  // The digest as 64 lower-case hex digits. Nothing is added afterwards.
  std::string hex();

private:
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 128> rest_{}; // bytes of the last block, which is not complete; room for the padding
  size_t rest_bytes_ = 0;
  uint64_t bytes_ = 0;
};

// The digest as 64 lower-case hex digits.
std::string sha256_hex(std::span<const std::byte> bytes);
// The digest of the digests of the bytes' pieces, which all cores compute: another one than sha256_hex()'s.
std::string sha256_tree_hex(std::span<const std::byte> bytes);

} // namespace firn
