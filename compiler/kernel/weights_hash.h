// The hash of a program's packed weights that headers name, for programs that check a copy of them:
// firn_rt2_hash_weights() of include/firn/abi.h over the same bytes.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::kernel {

// Takes the constants in the order of their offsets; what lies between them are zeros.
class WeightsHash {
public:
  // Bytes at an offset that is a multiple of 8.
  void add(int64_t offset, std::span<const std::byte> bytes);
  // Of so many bytes in all.
  uint64_t finish(int64_t bytes);

private:
  void add_word(uint64_t word);
  int64_t at_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325u;
};

// Of all weights of the program, which have their places.
uint64_t hash_weights(const Program& program);

// The constants in the order of their offsets.
std::vector<const Constant*> constants_by_offset(const Program& program);

} // namespace firn::kernel
