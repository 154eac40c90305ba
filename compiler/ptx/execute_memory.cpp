// Loads, stores and atomic operations.
#include "compiler/ptx/block.h"
#include "compiler/ptx/execute.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace firn::ptx {
namespace {

uint64_t address_of(Warp& warp, const Op& op, int lane) {
  uint64_t address = warp.row(op.a)[lane] + static_cast<uint64_t>(op.value);
  return op.is_short ? static_cast<uint32_t>(address) : address;
}

template <class T, class Wide> void load(Warp& warp, const Op& op, uint32_t mask) {
  uint64_t addresses[32];
  const uint32_t* list = &warp.kernel_lists()[op.list];
  int width = static_cast<int>(sizeof(T)) * op.count;
  Space space = op.space;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    space = op.space;
    addresses[lane] = address_of(warp, op, lane);
    const uint8_t* from = access(warp, op, lane, space, addresses[lane], width, Use::Read);
    if (!from) return;
    for (int i = 0; i < op.count; ++i) {
      T value;
      std::memcpy(&value, from + sizeof(T) * static_cast<size_t>(i), sizeof(T));
      warp.row(list[i])[lane] = static_cast<uint64_t>(static_cast<Wide>(value));
    }
  }
  count_traffic(warp, op, space, addresses, mask, width, false);
}

template <class T> void store(Warp& warp, const Op& op, uint32_t mask) {
  uint64_t addresses[32];
  const uint32_t* list = &warp.kernel_lists()[op.list];
  int width = static_cast<int>(sizeof(T)) * op.count;
  Space space = op.space;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    space = op.space;
    addresses[lane] = address_of(warp, op, lane);
    uint8_t* to = access(warp, op, lane, space, addresses[lane], width, Use::Write);
    if (!to) return;
    for (int i = 0; i < op.count; ++i) {
      auto value = static_cast<T>(warp.row(list[i])[lane]);
      std::memcpy(to + sizeof(T) * static_cast<size_t>(i), &value, sizeof(T));
    }
  }
  count_traffic(warp, op, space, addresses, mask, width, true);
}

template <AtomicOp kOp, class T> T updated(T old, T b, T c) {
  using Unsigned = std::make_unsigned_t<T>;
  switch (kOp) {
  case AtomicOp::Add: return static_cast<T>(static_cast<Unsigned>(old) + static_cast<Unsigned>(b));
  case AtomicOp::Min: return std::min(old, b);
  case AtomicOp::Max: return std::max(old, b);
  case AtomicOp::Inc: return old >= b ? T{0} : static_cast<T>(old + 1);
  case AtomicOp::Dec: return old == 0 || old > b ? b : static_cast<T>(old - 1);
  case AtomicOp::Cas: return old == b ? c : old;
  case AtomicOp::Exch: return b;
  case AtomicOp::And: return old & b;
  case AtomicOp::Or: return old | b;
  case AtomicOp::Xor: return old ^ b;
  }
  return old;
}

template <AtomicOp kOp, class T> void atomic(Warp& warp, const Op& op, uint32_t mask) {
  uint64_t addresses[32];
  Space space = op.space;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    space = op.space;
    addresses[lane] = address_of(warp, op, lane);
    uint8_t* at = access(warp, op, lane, space, addresses[lane], sizeof(T), Use::Update);
    if (!at) return;
    T old;
    std::memcpy(&old, at, sizeof(T));
    T made = updated<kOp, T>(old, static_cast<T>(warp.row(op.b)[lane]), static_cast<T>(warp.row(op.c)[lane]));
    std::memcpy(at, &made, sizeof(T));
    if (op.form == 0) warp.row(op.d)[lane] = static_cast<uint64_t>(old);
  }
  count_traffic(warp, op, space, addresses, mask, sizeof(T), true);
}

template <AtomicOp kOp> Execute atomic_of(Type type) {
  switch (type) {
  case Type::S32: return atomic<kOp, int32_t>;
  case Type::S64: return atomic<kOp, int64_t>;
  case Type::U32:
  case Type::B32: return atomic<kOp, uint32_t>;
  case Type::U64:
  case Type::B64: return atomic<kOp, uint64_t>;
  case Type::B16:
    if constexpr (kOp == AtomicOp::Cas) return atomic<kOp, uint16_t>;
    return nullptr;
  default: return nullptr;
  }
}

// Words of one bank that differ cost a pass each; accesses of 8 and 16 bytes are served in halves and
// quarters.
uint64_t bank_passes(const uint64_t* addresses, uint32_t mask, int width) {
  int lanes = width <= 4 ? 32 : width == 8 ? 16 : 8;
  uint64_t passes = 0;
  for (int begin = 0; begin < 32; begin += lanes) {
    uint32_t part = mask & (lanes == 32 ? ~0u : ((1u << lanes) - 1) << begin);
    std::array<uint64_t, 64> words;
    size_t count = 0;
    each_lane(part, [&](int lane) {
      for (int byte = 0; byte < std::max(width, 4); byte += 4)
        words[count++] = (addresses[lane] + static_cast<uint64_t>(byte)) / 4;
    });
    if (!std::is_sorted(words.begin(), words.begin() + count))
      std::sort(words.begin(), words.begin() + count);
    std::array<uint8_t, 32> banks{};
    uint8_t largest = 0;
    for (size_t i = 0; i < count; ++i)
      if (i == 0 || words[i] != words[i - 1]) largest = std::max(largest, ++banks[words[i] % 32]);
    passes += largest;
  }
  return passes;
}

uint64_t fewest_passes(uint32_t mask, int width) {
  int lanes = width <= 4 ? 32 : width == 8 ? 16 : 8;
  uint64_t passes = 0;
  for (int begin = 0; begin < 32; begin += lanes)
    passes += (mask & (lanes == 32 ? ~0u : ((1u << lanes) - 1) << begin)) != 0;
  return passes;
}

uint64_t sectors_of(const uint64_t* addresses, uint32_t mask) {
  std::array<uint64_t, 32> sectors;
  size_t count = 0;
  each_lane(mask, [&](int lane) {
    uint64_t sector = addresses[lane] / 32;
    if (count == 0 || sectors[count - 1] != sector) sectors[count++] = sector;
  });
  if (!std::is_sorted(sectors.begin(), sectors.begin() + count))
    std::sort(sectors.begin(), sectors.begin() + count);
  return static_cast<uint64_t>(std::unique(sectors.begin(), sectors.begin() + count) - sectors.begin());
}

// Lanes that ask for the same address need its bytes once.
uint64_t distinct_bytes(const uint64_t* addresses, uint32_t mask, int width) {
  std::array<uint64_t, 32> sorted;
  size_t count = 0;
  each_lane(mask, [&](int lane) {
    if (count == 0 || sorted[count - 1] != addresses[lane]) sorted[count++] = addresses[lane];
  });
  if (!std::is_sorted(sorted.begin(), sorted.begin() + count))
    std::sort(sorted.begin(), sorted.begin() + count);
  return static_cast<uint64_t>(std::unique(sorted.begin(), sorted.begin() + count) - sorted.begin()) *
         static_cast<uint64_t>(width);
}

} // namespace

void count_traffic(Warp& warp, const Op&, Space space, const uint64_t* addresses, uint32_t mask, int width,
                   bool is_write) {
  Statistics& statistics = warp.block.launch.statistics;
  uint64_t bytes = static_cast<uint64_t>(std::popcount(mask)) * static_cast<uint64_t>(width);
  if (space == Space::Shared) {
    (is_write ? statistics.shared_bytes_written : statistics.shared_bytes_read) += bytes;
    statistics.bank_conflicts += bank_passes(addresses, mask, width) - fewest_passes(mask, width);
  } else if (space == Space::Global) {
    (is_write ? statistics.global_bytes_written : statistics.global_bytes_read) += bytes;
    uint64_t sectors = sectors_of(addresses, mask);
    statistics.sectors += sectors;
    statistics.excess_sectors +=
        sectors - std::min(sectors, (distinct_bytes(addresses, mask, width) + 31) / 32);
  }
}

Execute load_op(int bytes, bool is_signed) {
  switch (bytes) {
  case 1: return is_signed ? load<int8_t, int64_t> : load<uint8_t, uint64_t>;
  case 2: return is_signed ? load<int16_t, int64_t> : load<uint16_t, uint64_t>;
  case 4: return is_signed ? load<int32_t, int64_t> : load<uint32_t, uint64_t>;
  default: return load<uint64_t, uint64_t>;
  }
}

Execute store_op(int bytes) {
  return bytes == 1   ? store<uint8_t>
         : bytes == 2 ? store<uint16_t>
         : bytes == 4 ? store<uint32_t>
                      : store<uint64_t>;
}

Execute atomic_op(AtomicOp op, Type type) {
  switch (op) {
  case AtomicOp::Add: return atomic_of<AtomicOp::Add>(type);
  case AtomicOp::Min: return atomic_of<AtomicOp::Min>(type);
  case AtomicOp::Max: return atomic_of<AtomicOp::Max>(type);
  case AtomicOp::Inc: return atomic_of<AtomicOp::Inc>(type);
  case AtomicOp::Dec: return atomic_of<AtomicOp::Dec>(type);
  case AtomicOp::Cas: return atomic_of<AtomicOp::Cas>(type);
  case AtomicOp::Exch: return atomic_of<AtomicOp::Exch>(type);
  case AtomicOp::And: return atomic_of<AtomicOp::And>(type);
  case AtomicOp::Or: return atomic_of<AtomicOp::Or>(type);
  case AtomicOp::Xor: return atomic_of<AtomicOp::Xor>(type);
  }
  return nullptr;
}

} // namespace firn::ptx
