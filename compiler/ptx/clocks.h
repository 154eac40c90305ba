// Which accesses of a block's threads happen before which: a clock per thread that its synchronisations
// advance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace firn::ptx {

class Clocks {
public:
  explicit Clocks(uint32_t threads);

  uint32_t now(uint32_t thread) const { return now_[thread]; }

  // True if an access of a thread at a time happens before what `reader` does now.
  bool is_ordered(uint32_t thread, uint32_t time, uint32_t reader) const {
    return thread == reader || time < block_ || (thread / 32 == reader / 32 && time < warps_[reader / 32]) ||
           (!known_.empty() && time <= known_[size_t{reader} * now_.size() + thread]);
  }

  void join_block(); // all threads of the block
  void join_warp(uint32_t warp);
  // The common knowledge of some threads: it grows as they arrive, and those that wait learn it.
  using Knowledge = std::vector<uint32_t>;
  void contribute(Knowledge& knowledge, uint32_t thread); // and advances the thread's clock
  void learn(const Knowledge& knowledge, uint32_t thread);

private:
  void begin_knowledge();

  std::vector<uint32_t> now_;
  uint32_t block_ = 1;          // accesses at earlier times happen before all that follows
  std::vector<uint32_t> warps_; // likewise for the threads of each warp among themselves
  // known_[u * threads + t]: the last time of t that happens before what u does now. Empty as long as only
  // whole blocks and whole warps have met since the last barrier of the block.
  std::vector<uint32_t> known_;
};

} // namespace firn::ptx
