// Runs the warps of a block, and lets them through barriers.
#include "compiler/ptx/block.h"

#include "compiler/ptx/execute.h"

#include <algorithm>
#include <numeric>

namespace firn::ptx {
namespace {

// Instructions of a warp before another one has its turn, so that warps can wait for each other in loops.
constexpr uint64_t kTurn = 20000;

} // namespace

Block::Block(Launch& launch, uint32_t index, Dim3 position)
    : launch(launch), index(index), position(position), threads(static_cast<uint32_t>(launch.block.count())),
      clocks(threads), races(index, clocks) {
  size_t bytes = static_cast<size_t>(launch.kernel.shared_bytes) + launch.shared_bytes;
  shared.resize(bytes);
  shared_written.resize(bytes);
  if (launch.options.check_races)
    shared_cells.resize((bytes + 15) / static_cast<size_t>(launch.kernel.shared_granule) + 16);
  for (uint32_t first = 0; first < threads; first += 32)
    warps.emplace_back(*this, first / 32, std::min(32u, threads - first));
}

bool Block::run() {
  std::vector<size_t> order(warps.size());
  std::iota(order.begin(), order.end(), 0);
  while (!order.empty()) {
    if (launch.options.seed != 0) std::shuffle(order.begin(), order.end(), launch.random);
    bool moved = false;
    for (size_t i : order) {
      uint64_t before = launch.instructions;
      Warp::State state = warps[i].run(kTurn);
      moved |= state == Warp::State::Running || state == Warp::State::Ended || before != launch.instructions;
      if (state == Warp::State::Failed) return false;
      if (state == Warp::State::Running) launch.instructions += kTurn;
    }
    if (launch.options.max_instructions != 0 && launch.instructions > launch.options.max_instructions) {
      launch.error = "kernel '" + launch.kernel.name + "' runs for more than " +
                     std::to_string(launch.options.max_instructions) + " instructions of warps";
      return false;
    }
    std::erase_if(order, [&](size_t i) { return warps[i].alive() == 0; });
    bool can_run = std::any_of(order.begin(), order.end(), [&](size_t i) {
      return (warps[i].alive() & ~warps[i].at_barrier() & ~warps[i].waits_in_warp()) != 0;
    });
    if (!order.empty() && !can_run) {
      report_deadlock();
      return false;
    }
  }
  for (Warp& warp : warps) finish_copies(warp);
  return launch.error.empty();
}

void Block::arrive(Warp& warp, const Op& op, uint32_t mask, uint32_t id, uint32_t expected) {
  if (id >= barriers_.size())
    return warp.fail(op, std::countr_zero(mask), "barrier " + std::to_string(id) + " of 16");
  Barrier& barrier = barriers_[id];
  uint32_t count = expected == 0 ? threads : expected;
  if (count % 32 != 0 && expected != 0)
    return warp.fail(op, std::countr_zero(mask),
                     "a barrier of " + std::to_string(count) +
                         " threads; the number has to be a multiple of 32");
  if (barrier.arrived != 0 && barrier.expected != count)
    return warp.fail(op, std::countr_zero(mask),
                     "barrier " + std::to_string(id) + " is for " + std::to_string(count) +
                         " threads here and for " + std::to_string(barrier.expected) + " threads in line " +
                         std::to_string(barrier.op->line));
  bool only_arrives = op.form == static_cast<int>(BarrierForm::Arrive);
  bool was_partial = barrier.is_partial;
  barrier.is_partial |= only_arrives || count != threads;
  if (barrier.is_partial && !was_partial) // threads that wait already have not contributed yet
    for (Warp& other : warps)
      each_lane(other.at_barrier(), [&](int lane) {
        if (other.lane_barrier(lane) == id) clocks.contribute(barrier.knowledge, other.thread(lane));
      });
  barrier.op = &op;
  barrier.expected = count;
  barrier.arrived += static_cast<uint32_t>(std::popcount(mask));
  if (op.form >= static_cast<int>(BarrierForm::Popc))
    barrier.set += static_cast<uint32_t>(std::popcount(mask & warp.mask_row(op.c)));
  if (barrier.is_partial)
    each_lane(mask, [&](int lane) { clocks.contribute(barrier.knowledge, warp.thread(lane)); });
  if (!only_arrives) warp.wait_at_barrier(mask, id);
  if (barrier.arrived > count)
    return warp.fail(op, std::countr_zero(mask),
                     "barrier " + std::to_string(id) + " is for " + std::to_string(count) + " threads, " +
                         std::to_string(barrier.arrived) + " arrived");
  if (barrier.arrived == count && is_aligned(barrier, id)) release(barrier, id);
}

// The lanes of a warp have to come to the same instruction of a barrier, unless it says otherwise.
bool Block::is_aligned(const Barrier& barrier, uint32_t id) {
  for (Warp& warp : warps) {
    const Op* first = nullptr;
    uint32_t waiting = 0;
    each_lane(warp.at_barrier(), [&](int lane) {
      if (warp.lane_barrier(lane) != id) return;
      const Op* op = &launch.kernel.ops[warp.lane_pc(lane) - 1];
      waiting |= 1u << lane;
      if (!first) first = op;
      if (first != op && (first->count != 0 || op->count != 0))
        warp.fail(*op, lane,
                  "a divergent barrier: other lanes of the warp wait at the one in line " +
                      std::to_string(first->line));
    });
    bool is_divergent = first && first->count != 0 && (warp.alive() & ~waiting) != 0;
    if (is_divergent)
      warp.fail(*first, std::countr_zero(waiting),
                "a divergent barrier: it is for " + std::to_string(barrier.expected) +
                    " threads, but comes to a part of the lanes of a warp");
  }
  return launch.error.empty();
}

void Block::release(Barrier& barrier, uint32_t id) {
  if (!barrier.is_partial) clocks.join_block();
  ++launch.statistics.barriers;
  for (Warp& warp : warps) {
    uint32_t waiting = 0;
    each_lane(warp.at_barrier(), [&](int lane) {
      if (warp.lane_barrier(lane) != id) return;
      waiting |= 1u << lane;
      if (barrier.is_partial) clocks.learn(barrier.knowledge, warp.thread(lane));
      const Op& op = launch.kernel.ops[warp.lane_pc(lane) - 1];
      bool all = barrier.set == barrier.arrived, any = barrier.set != 0;
      auto form = static_cast<BarrierForm>(op.form);
      uint32_t bit = 1u << lane;
      if (form == BarrierForm::Popc) warp.row(op.d)[lane] = barrier.set;
      if (form == BarrierForm::And) warp.mask_row(op.d) = (warp.mask_row(op.d) & ~bit) | (all ? bit : 0);
      if (form == BarrierForm::Or) warp.mask_row(op.d) = (warp.mask_row(op.d) & ~bit) | (any ? bit : 0);
    });
    warp.leave_barrier(waiting);
  }
  barrier = {};
}

void Block::report_deadlock() {
  for (Warp& warp : warps)
    if (uint32_t waiting = warp.at_barrier()) {
      int lane = std::countr_zero(waiting);
      const Barrier& barrier = barriers_[warp.lane_barrier(lane)];
      const Op& op = launch.kernel.ops[warp.lane_pc(lane) - 1];
      uint32_t ended = 0;
      for (Warp& other : warps)
        ended += static_cast<uint32_t>(std::popcount(other.existing & ~other.alive()));
      return warp.fail(op, lane,
                       "a deadlock: barrier " + std::to_string(warp.lane_barrier(lane)) + " waits for " +
                           std::to_string(barrier.expected) + " threads, " + std::to_string(barrier.arrived) +
                           " arrived; " + std::to_string(ended) + " threads of the block have ended");
    }
  for (Warp& warp : warps)
    if (uint32_t waiting = warp.waits_in_warp()) {
      int lane = std::countr_zero(waiting);
      return warp.fail(launch.kernel.ops[warp.lane_pc(lane)], lane,
                       "a deadlock: lanes that the mask of this operation names never come to it");
    }
}

} // namespace firn::ptx
