// See weights_hash.h.
#include "compiler/kernel/weights_hash.h"

#include <algorithm>
#include <cstring>

namespace firn::kernel {

void WeightsHash::add_word(uint64_t word) {
  hash_ = (hash_ ^ word) * 0x100000001b3u;
  hash_ ^= hash_ >> 32;
  at_ += 8;
}

void WeightsHash::add(int64_t offset, std::span<const std::byte> bytes) {
  while (at_ < offset) add_word(0);
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    add_word(word);
  }
  if (i == bytes.size()) return;
  uint64_t word = 0; // little-endian, as hosts and targets are
  std::memcpy(&word, bytes.data() + i, bytes.size() - i);
  add_word(word);
}

uint64_t WeightsHash::finish(int64_t bytes) {
  while (at_ < bytes) add_word(0);
  return hash_;
}

std::vector<const Constant*> constants_by_offset(const Program& program) {
  std::vector<const Constant*> order;
  for (const Constant& constant : program.constants) order.push_back(&constant);
  auto offset = [&](const Constant* c) { return program.buffers[static_cast<size_t>(c->buffer)].offset; };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Constant* a, const Constant* b) { return offset(a) < offset(b); });
  return order;
}

uint64_t hash_weights(const Program& program) {
  WeightsHash hash;
  for (const Constant* constant : constants_by_offset(program)) {
    const Buffer& memory = program.buffers[static_cast<size_t>(constant->buffer)];
    std::vector<std::byte> bytes(static_cast<size_t>(memory.bytes));
    write_constant(*constant, bytes);
    hash.add(memory.offset, bytes);
  }
  return hash.finish(program.weight_bytes);
}

} // namespace firn::kernel
