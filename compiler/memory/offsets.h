// Offsets for intervals: the packing problem of the arena by itself.
#pragma once

#include <cstdint>
#include <vector>

namespace firn::memory {

struct Item {
  int64_t bytes;   // a multiple of the alignment
  int first, last; // life, inclusive
};

struct Packing {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;       // highest end
  int64_t lower_bound = 0; // most bytes alive at once
};

// The first step at which most bytes are alive, and how many: no placement needs fewer.
struct Peak {
  int step = 0;
  int64_t bytes = 0;
};
Peak peak_of(const std::vector<Item>& items);

// Tries several greedy orders with first and best fit, then improves the best of them by moving the items
// that end highest, until the lower bound is met or the effort is spent. Tens of thousands of
// items that are alive at one time are placed in the order of their lives. Deterministic.
Packing pack_items(const std::vector<Item>& items);

} // namespace firn::memory
