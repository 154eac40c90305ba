// A warp: 32 lanes with their registers and program counters. Lanes at the lowest program counter run first,
// so that branches meet again where control flow does.
#pragma once

#include "compiler/ptx/program.h"

#include <array>
#include <bit>
#include <string>
#include <vector>

namespace firn::ptx {

class Block;

// An asynchronous copy that its lane has not waited for.
struct PendingCopy {
  int lane;
  uint64_t group; // number of the commit that follows it
  uint64_t to;    // offset in shared memory
  uint64_t from;  // global address
  uint32_t bytes, source_bytes;
  const Op* op;
};

template <class F> inline void each_lane(uint32_t mask, F&& body) {
  if (mask == ~0u) {
    for (int lane = 0; lane < 32; ++lane) body(lane);
  } else {
    for (; mask != 0; mask &= mask - 1) body(std::countr_zero(mask));
  }
}

class Warp {
public:
  Warp(Block& block, uint32_t index, uint32_t lanes);

  uint64_t* row(uint32_t index) { return &rows_[size_t{index} * 32]; }
  uint32_t& mask_row(uint32_t index) { return *reinterpret_cast<uint32_t*>(row(index)); }

  enum class State { Ended, Blocked, Running, Failed };
  // Runs up to `budget` instructions; Running: there are more.
  State run(uint64_t budget);

  // For operations: where lanes go on. Lanes that are not named go on behind the operation.
  void branch(uint32_t mask, uint32_t target);
  void end_lanes(uint32_t mask);
  // False if lanes that `members` names are still to come: those of `mask` then wait here for them.
  bool meet(const Op& op, uint32_t mask, uint32_t members);
  void wait_at_barrier(uint32_t mask, uint32_t barrier);
  void leave_barrier(uint32_t mask);

  void fail(const Op& op, int lane, const std::string& text);
  const std::vector<uint32_t>& kernel_lists() const;

  uint32_t thread(int lane) const { return index * 32 + static_cast<uint32_t>(lane); }
  uint32_t alive() const { return alive_; }
  uint32_t at_barrier() const { return at_barrier_; }
  uint32_t waits_in_warp() const { return waiting_; }
  uint32_t lane_pc(int lane) const { return lane_pc_[lane]; }
  uint32_t lane_barrier(int lane) const { return barrier_[lane]; }

  Block& block;
  uint32_t index;
  uint32_t existing;                         // lanes that have threads
  std::vector<uint8_t> local, local_written; // memory of all lanes, one after the other
  std::vector<PendingCopy> copies;
  std::array<uint64_t, 32> groups{}; // commits of each lane

private:
  bool select(); // the lanes that run next; false: none can
  void park();   // writes the program counters of the lanes that run

  std::vector<uint64_t> rows_;
  uint32_t pc_ = 0, join_ = ~0u;
  uint32_t active_ = 0, alive_, at_barrier_ = 0, waiting_ = 0;
  bool is_interrupted_ = false; // the lanes that run are no longer those of `active_`
  std::array<uint32_t, 32> lane_pc_{};
  std::array<uint8_t, 32> barrier_{};
};

std::string name_thread(const Block& block, uint32_t thread);

} // namespace firn::ptx
