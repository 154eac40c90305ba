// Branches, ends, barriers.
#include "compiler/ptx/block.h"
#include "compiler/ptx/execute.h"

namespace firn::ptx {
namespace {

void branch(Warp& warp, const Op& op, uint32_t mask) {
  warp.branch(mask, static_cast<uint32_t>(op.value));
}

void end(Warp& warp, const Op&, uint32_t mask) {
  warp.end_lanes(mask);
}

void trap(Warp& warp, const Op& op, uint32_t mask) {
  warp.fail(op, std::countr_zero(mask), "the kernel traps");
}

void nothing(Warp&, const Op&, uint32_t) {}

void clock(Warp& warp, const Op& op, uint32_t mask) {
  uint64_t now = warp.block.launch.instructions;
  each_lane(mask, [&](int lane) { warp.row(op.d)[lane] = now; });
}

void barrier(Warp& warp, const Op& op, uint32_t mask) {
  int first = std::countr_zero(mask);
  auto id = static_cast<uint32_t>(warp.row(op.a)[first]);
  auto expected = static_cast<uint32_t>(warp.row(op.b)[first]);
  bool is_uniform = true;
  each_lane(mask, [&](int lane) {
    is_uniform &= static_cast<uint32_t>(warp.row(op.a)[lane]) == id &&
                  static_cast<uint32_t>(warp.row(op.b)[lane]) == expected;
  });
  if (!is_uniform)
    return warp.fail(op, first, "the lanes of a warp come to barriers of different numbers or sizes");
  warp.block.arrive(warp, op, mask, id, expected);
}

void sync_warp(Warp& warp, const Op& op, uint32_t mask) {
  int first = std::countr_zero(mask);
  auto members = static_cast<uint32_t>(warp.row(op.a)[first]);
  if (!warp.meet(op, mask, members)) return;
  Clocks& clocks = warp.block.clocks;
  if (mask == warp.existing) return clocks.join_warp(warp.index);
  Clocks::Knowledge knowledge;
  each_lane(mask, [&](int lane) { clocks.contribute(knowledge, warp.thread(lane)); });
  each_lane(mask, [&](int lane) { clocks.learn(knowledge, warp.thread(lane)); });
}

void active_mask(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask, [&](int lane) { warp.row(op.d)[lane] = mask; });
}

} // namespace

Execute branch_op() {
  return branch;
}
Execute exit_op() {
  return end;
}
Execute trap_op() {
  return trap;
}
Execute no_op() {
  return nothing;
}
Execute clock_op() {
  return clock;
}
Execute barrier_op() {
  return barrier;
}
Execute warp_sync_op() {
  return sync_warp;
}
Execute active_mask_op() {
  return active_mask;
}

} // namespace firn::ptx
