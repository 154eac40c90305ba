// The loop that runs a warp, and the choice of lanes that run next.
#include "compiler/ptx/warp.h"

#include "compiler/ptx/block.h"

#include <algorithm>

namespace firn::ptx {
namespace {

constexpr uint64_t kUndefined = 0xdeadbeefdeadbeef; // registers before their first write

uint64_t special_value(const Block& block, Special special, uint32_t thread) {
  const Dim3& size = block.launch.block;
  const Dim3& grid = block.launch.grid;
  uint32_t lane = thread % 32;
  switch (special) {
  case Special::TidX: return thread % size.x;
  case Special::TidY: return thread / size.x % size.y;
  case Special::TidZ: return thread / size.x / size.y;
  case Special::NtidX: return size.x;
  case Special::NtidY: return size.y;
  case Special::NtidZ: return size.z;
  case Special::CtaidX: return block.position.x;
  case Special::CtaidY: return block.position.y;
  case Special::CtaidZ: return block.position.z;
  case Special::NctaidX: return grid.x;
  case Special::NctaidY: return grid.y;
  case Special::NctaidZ: return grid.z;
  case Special::LaneId: return lane;
  case Special::WarpId: return thread / 32;
  case Special::NwarpId: return (block.threads + 31) / 32;
  case Special::LanemaskEq: return 1u << lane;
  case Special::LanemaskLe: return (2u << lane) - 1;
  case Special::LanemaskLt: return (1u << lane) - 1;
  case Special::LanemaskGe: return ~((1u << lane) - 1);
  case Special::LanemaskGt: return ~((2u << lane) - 1);
  case Special::NsmId: return 1;
  case Special::SmId:
  case Special::GridId: return 0;
  case Special::TotalShared:
    return static_cast<uint64_t>(block.launch.kernel.shared_bytes) + block.launch.shared_bytes;
  case Special::DynamicShared: return block.launch.shared_bytes;
  case Special::Count: break;
  }
  FIRN_UNREACHABLE("a special register without a value");
}

} // namespace

Warp::Warp(Block& block, uint32_t index, uint32_t lanes)
    : block(block), index(index), existing(lanes == 32 ? ~0u : (1u << lanes) - 1), alive_(existing) {
  const Kernel& kernel = block.launch.kernel;
  rows_.assign(size_t{kernel.rows} * 32, kUndefined);
  for (auto [row_index, value] : kernel.constants) std::fill_n(row(row_index), 32, value);
  for (auto [row_index, special] : kernel.specials)
    for (int lane = 0; lane < 32; ++lane) row(row_index)[lane] = special_value(block, special, thread(lane));
  local.resize(static_cast<size_t>(kernel.local_bytes) * 32);
  local_written.resize(local.size());
}

void Warp::park() {
  each_lane(active_, [&](int lane) { lane_pc_[lane] = pc_; });
}

bool Warp::select() {
  uint32_t ready = alive_ & ~at_barrier_;
  uint32_t candidates = ready & ~waiting_;
  if (candidates == 0) return false;
  pc_ = ~0u;
  each_lane(candidates, [&](int lane) { pc_ = std::min(pc_, lane_pc_[lane]); });
  active_ = 0;
  join_ = ~0u;
  each_lane(ready, [&](int lane) {
    if (lane_pc_[lane] == pc_)
      active_ |= 1u << lane;
    else if (lane_pc_[lane] > pc_)
      join_ = std::min(join_, lane_pc_[lane]);
  });
  waiting_ &= ~active_;
  return true;
}

Warp::State Warp::run(uint64_t budget) {
  const Op* ops = block.launch.kernel.ops.data();
  uint64_t* warp_counts = block.launch.warp_counts.data();
  uint64_t* lane_counts = block.launch.lane_counts.data();
  while (budget > 0) {
    if (!select()) return alive_ == 0 ? State::Ended : State::Blocked;
    is_interrupted_ = false;
    while (budget > 0 && pc_ < join_) {
      const Op& op = ops[pc_];
      uint32_t mask = active_;
      if (op.guard >= 0) {
        uint32_t guard = mask_row(static_cast<uint32_t>(op.guard));
        mask &= op.guard_is_negated ? ~guard : guard;
      }
      ++warp_counts[pc_];
      lane_counts[pc_] += static_cast<uint64_t>(std::popcount(mask));
      ++pc_;
      --budget;
      if (mask == 0) continue;
      op.execute(*this, op, mask);
      if (is_interrupted_) break;
    }
    if (!block.launch.error.empty()) return State::Failed;
    if (!is_interrupted_) park();
  }
  return State::Running;
}

void Warp::branch(uint32_t mask, uint32_t target) {
  if (mask != active_) {
    park();
    each_lane(mask, [&](int lane) { lane_pc_[lane] = target; });
    is_interrupted_ = true;
    ++block.launch.statistics.divergent_branches;
    return;
  }
  bool is_back = target < pc_;
  pc_ = target;
  if (is_back && (alive_ & ~active_ & ~at_barrier_) != 0) {
    park();
    is_interrupted_ = true;
  }
}

void Warp::end_lanes(uint32_t mask) {
  park();
  alive_ &= ~mask;
  is_interrupted_ = true;
}

bool Warp::meet(const Op& op, uint32_t mask, uint32_t members) {
  if (mask & ~members) {
    fail(op, std::countr_zero(mask & ~members),
         "the mask of this operation leaves out a lane that executes it");
    return false;
  }
  if ((members & alive_ & ~mask) == 0) return true;
  park();
  each_lane(mask, [&](int lane) { lane_pc_[lane] = pc_ - 1; });
  waiting_ |= mask;
  is_interrupted_ = true;
  return false;
}

void Warp::wait_at_barrier(uint32_t mask, uint32_t barrier) {
  park();
  each_lane(mask, [&](int lane) { barrier_[lane] = static_cast<uint8_t>(barrier); });
  at_barrier_ |= mask;
  is_interrupted_ = true;
}

void Warp::leave_barrier(uint32_t mask) {
  at_barrier_ &= ~mask;
}

const std::vector<uint32_t>& Warp::kernel_lists() const {
  return block.launch.kernel.lists;
}

std::string name_thread(const Block& block, uint32_t thread) {
  const Dim3& size = block.launch.block;
  return "thread (" + std::to_string(thread % size.x) + ", " + std::to_string(thread / size.x % size.y) +
         ", " + std::to_string(thread / size.x / size.y) + ")";
}

void Warp::fail(const Op& op, int lane, const std::string& text) {
  is_interrupted_ = true;
  if (!block.launch.error.empty()) return;
  const Dim3& at = block.position;
  block.launch.error = "kernel '" + block.launch.kernel.name + "', block (" + std::to_string(at.x) + ", " +
                       std::to_string(at.y) + ", " + std::to_string(at.z) + "), " +
                       name_thread(block, thread(lane)) + ", line " + std::to_string(op.line) + ": " + text;
}

} // namespace firn::ptx
