// One block of a running launch: its warps, shared memory, barriers.
#pragma once

#include "compiler/ptx/module.h"
#include "compiler/ptx/shadow.h"
#include "compiler/ptx/warp.h"

#include <array>
#include <deque>
#include <random>

namespace firn::ptx {

struct Program {
  std::vector<Kernel> kernels;
  std::vector<std::pair<std::string, uint64_t>> variables; // addresses in `memory`
  Memory memory{kFirstVariable};
};

// The state that all blocks of a launch share.
struct Launch {
  const Kernel& kernel;
  Memory& memory;
  Memory& variables;
  const Options& options;
  Dim3 grid, block;
  uint64_t shared_bytes; // dynamic
  std::vector<uint8_t> parameters;
  GlobalShadow shadow, variable_shadow;
  std::mt19937_64 random;
  Statistics statistics;
  std::vector<uint64_t> lane_counts, warp_counts; // per operation
  uint64_t instructions = 0;
  std::string error; // empty: none yet
};

struct Barrier {
  uint32_t arrived = 0, expected = 0, waiting = 0; // threads
  bool is_partial = false;                         // not all threads of the block, or some only arrive
  Clocks::Knowledge knowledge;                     // known by those that arrived, for partial barriers
  uint32_t set = 0;                                // threads whose predicate is true
  const Op* op = nullptr;
};

class Block {
public:
  Block(Launch& launch, uint32_t index, Dim3 position);
  bool run(); // false: launch.error says why

  // Takes the lanes of a warp to a barrier; releases them and the others if they are the last.
  void arrive(Warp& warp, const Op& op, uint32_t mask, uint32_t barrier, uint32_t expected);

  Launch& launch;
  uint32_t index; // from 1
  Dim3 position;
  uint32_t threads;
  Clocks clocks;
  RaceChecker races;
  std::vector<uint8_t> shared;
  std::vector<uint8_t> shared_written;
  std::vector<Cell> shared_cells;
  std::deque<Warp> warps;
  uint64_t pending_copies = 0;

private:
  void release(Barrier& barrier, uint32_t id);
  bool is_aligned(const Barrier& barrier, uint32_t id);
  void report_deadlock();

  std::array<Barrier, 16> barriers_;
};

} // namespace firn::ptx
