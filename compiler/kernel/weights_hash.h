// The hash of a program's packed weights that headers name, for programs that check a copy of them:
// firn_rt2_hash_weights() of include/firn/abi.h over the same bytes.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::kernel {

// Hashes constants in the order of their offsets; bytes between them count as zeros.
class WeightsHash {
public:
  // Adds bytes at an offset that is a multiple of 8.
  void add(int64_t offset, std::span<const std::byte> bytes);
  // Returns the hash of `bytes` bytes in all; those behind the last constant count as zeros.
  uint64_t finish(int64_t bytes);

private:
  void add_word(uint64_t word);
  int64_t at_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325u;
};

// Hashes all weights of a program whose weights have offsets.
uint64_t hash_weights(const Program& program);

// The constants in the order of their offsets.
std::vector<const Constant*> constants_by_offset(const Program& program);

} // namespace firn::kernel
