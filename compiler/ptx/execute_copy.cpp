// Asynchronous copies to shared memory (cp.async), done at the earliest or the latest moment.
#include "compiler/ptx/block.h"
#include "compiler/ptx/execute.h"

#include <algorithm>
#include <cstring>

namespace firn::ptx {
namespace {

// Reads the source, checked once more when the copy ends: nobody may have written it meanwhile.
bool copy_bytes(Warp& warp, const PendingCopy& copy, bool move) {
  uint8_t bytes[16] = {};
  const Op& op = *copy.op;
  for (uint32_t done = 0; done < copy.source_bytes;) { // the bytes of the source may be no power of two
    uint32_t part = std::bit_floor(copy.source_bytes - done);
    Space space = Space::Global;
    uint64_t from = copy.from + done;
    const uint8_t* source = access(warp, op, copy.lane, space, from, static_cast<int>(part), Use::Read);
    if (!source) return false;
    std::memcpy(bytes + done, source, part);
    done += part;
  }
  if (move) std::memcpy(&warp.block.shared[copy.to], bytes, copy.bytes);
  return true;
}

void mark_cells(Warp& warp, const PendingCopy& copy, bool is_pending) {
  Block& block = warp.block;
  if (!block.launch.options.check_races) return;
  auto granule = static_cast<uint64_t>(block.launch.kernel.shared_granule);
  for (uint64_t at = copy.to / granule; at * granule < copy.to + copy.bytes; ++at) {
    Stamp& write = block.shared_cells[at].write;
    write.is_pending = is_pending;
    write.time = block.clocks.now(warp.thread(copy.lane));
  }
}

bool finish(Warp& warp, const PendingCopy& copy) {
  bool is_late = warp.block.launch.options.copies == Options::Copies::Latest;
  --warp.block.pending_copies;
  mark_cells(warp, copy, false);
  return copy_bytes(warp, copy, is_late);
}

// Ends the copies of a lane whose group is below a number.
void finish_groups(Warp& warp, int lane, uint64_t below) {
  std::vector<PendingCopy> ready;
  std::erase_if(warp.copies, [&](const PendingCopy& copy) {
    if (copy.lane != lane || copy.group >= below) return false;
    ready.push_back(copy);
    return true;
  });
  for (const PendingCopy& copy : ready)
    if (!finish(warp, copy)) return;
}

void start(Warp& warp, const Op& op, uint32_t mask) {
  uint64_t to_addresses[32], from_addresses[32];
  auto bytes = static_cast<uint32_t>(op.bytes);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    uint64_t to = static_cast<uint32_t>(warp.row(op.d)[lane] + static_cast<uint64_t>(op.value));
    uint64_t from = warp.row(op.a)[lane] + static_cast<uint64_t>(static_cast<int64_t>(op.form));
    auto source_bytes = static_cast<uint32_t>(warp.row(op.b)[lane]);
    if (source_bytes > bytes)
      return warp.fail(op, lane,
                       "copies " + std::to_string(source_bytes) + " bytes to " + std::to_string(bytes));
    if (from % bytes != 0) return warp.fail(op, lane, "the source of an asynchronous copy is misaligned");
    Space space = Space::Shared;
    if (!access(warp, op, lane, space, to, op.bytes, Use::Write)) return;
    PendingCopy copy{lane, warp.groups[lane], to, from, bytes, source_bytes, &op};
    if (!copy_bytes(warp, copy, warp.block.launch.options.copies == Options::Copies::Earliest)) return;
    mark_cells(warp, copy, true);
    warp.copies.push_back(copy);
    ++warp.block.pending_copies;
    to_addresses[lane] = to;
    from_addresses[lane] = from;
  }
  warp.block.launch.statistics.async_bytes += bytes * static_cast<uint64_t>(std::popcount(mask));
  count_traffic(warp, op, Space::Shared, to_addresses, mask, op.bytes, true);
  count_traffic(warp, op, Space::Global, from_addresses, mask, op.bytes, false);
}

void commit(Warp& warp, const Op&, uint32_t mask) {
  each_lane(mask, [&](int lane) { ++warp.groups[lane]; });
}

void wait(Warp& warp, const Op& op, uint32_t mask) {
  if (warp.copies.empty()) return;
  each_lane(mask, [&](int lane) {
    uint64_t groups = warp.groups[lane], pending = static_cast<uint64_t>(op.value);
    finish_groups(warp, lane, op.value < 0 ? ~uint64_t{0} : groups - std::min(groups, pending));
  });
}

} // namespace

void finish_copies(Warp& warp) {
  for (int lane = 0; lane < 32 && !warp.copies.empty(); ++lane) finish_groups(warp, lane, ~uint64_t{0});
}

Execute copy_async_op() {
  return start;
}
Execute copy_commit_op() {
  return commit;
}
Execute copy_wait_op() {
  return wait;
}

} // namespace firn::ptx
