// Checked accesses to every space: bounds, alignment, unwritten bytes, races.
#include "compiler/ptx/block.h"
#include "compiler/ptx/execute.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

namespace firn::ptx {
namespace {

std::string hexadecimal(uint64_t value) {
  std::string text;
  do text.insert(text.begin(), "0123456789abcdef"[value % 16]);
  while (value /= 16);
  return "0x" + text;
}

const char* verb(Use use) {
  return use == Use::Read ? "reads" : use == Use::Write ? "writes" : "updates";
}

std::string range(int bytes, uint64_t offset) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes") + " at " + std::to_string(offset);
}

// Fails if an access lies outside of a space of the block or thread.
bool is_inside(Warp& warp, const Op& op, int lane, Use use, const char* space, uint64_t offset, int bytes,
               uint64_t size) {
  auto wide = static_cast<uint64_t>(bytes);
  if ((offset & (wide - 1)) != 0)
    warp.fail(op, lane,
              std::string(verb(use)) + " " + range(bytes, offset) + " of " + space + ", which is misaligned");
  else if (offset > size || size - offset < wide)
    warp.fail(op, lane,
              std::string(verb(use)) + " " + range(bytes, offset) + " of " + space + ", which has " +
                  std::to_string(size) + " bytes");
  else
    return true;
  return false;
}

bool are_written(const uint8_t* flags, int bytes) {
  constexpr uint8_t kAll[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  switch (bytes) { // sizes that the compiler knows make one comparison
  case 2: return std::memcmp(flags, kAll, 2) == 0;
  case 4: return std::memcmp(flags, kAll, 4) == 0;
  case 8: return std::memcmp(flags, kAll, 8) == 0;
  case 16: return std::memcmp(flags, kAll, 16) == 0;
  default: return std::memcmp(flags, kAll, static_cast<size_t>(bytes)) == 0;
  }
}

bool check_written(Warp& warp, const Op& op, int lane, Use use, std::string_view space, uint8_t* flags,
                   uint64_t offset, int bytes) {
  if (use == Use::Write) {
    std::memset(flags, 1, static_cast<size_t>(bytes));
    return true;
  }
  if (are_written(flags, bytes)) return true;
  warp.fail(op, lane,
            std::string(verb(use)) + " " + range(bytes, offset) + " of " + std::string(space) +
                ", never written");
  return false;
}

void report(Warp& warp, const Op& op, int lane, Use use, std::string_view space, uint64_t offset, int bytes,
            const Conflict& conflict) {
  const Stamp& earlier = conflict.earlier;
  std::string who = earlier.block == warp.block.index
                        ? name_thread(warp.block, earlier.thread)
                        : "another block (" + std::to_string(earlier.block - 1) + ")";
  std::string what = std::string(verb(use)) + " " + range(bytes, offset) + " of " + std::string(space);
  if (conflict.kind == Conflict::Kind::Pending)
    return warp.fail(op, lane, what + " before " + who + " has waited for its asynchronous copy");
  warp.fail(op, lane,
            "a race: it " + what + ", which " + who +
                (conflict.kind == Conflict::Kind::ReadThenWrite ? " read" : " wrote") +
                ", and nothing orders the two");
}

bool check_races(Warp& warp, const Op& op, int lane, Use use, std::string_view space, Cell* cells,
                 int granule, uint64_t offset, int bytes) {
  int count = (bytes + granule - 1) >> std::countr_zero(static_cast<unsigned>(granule));
  const RaceChecker& races = warp.block.races;
  Conflict conflict = use == Use::Read ? races.read(cells, count, warp.thread(lane), op.access)
                                       : races.write(cells, count, warp.thread(lane), op.access);
  if (conflict.kind == Conflict::Kind::None) return true;
  report(warp, op, lane, use, space, offset, bytes, conflict);
  return false;
}

uint8_t* access_shared(Warp& warp, const Op& op, int lane, uint64_t offset, int bytes, Use use) {
  Block& block = warp.block;
  if (!is_inside(warp, op, lane, use, "shared memory", offset, bytes, block.shared.size())) return nullptr;
  int granule = block.launch.kernel.shared_granule;
  if (block.launch.options.check_races &&
      !check_races(warp, op, lane, use, "shared memory",
                   &block.shared_cells[offset >> std::countr_zero(static_cast<unsigned>(granule))], granule,
                   offset, bytes))
    return nullptr;
  if (!check_written(warp, op, lane, use, "shared memory", &block.shared_written[offset], offset, bytes))
    return nullptr;
  return &block.shared[offset];
}

uint8_t* access_local(Warp& warp, const Op& op, int lane, uint64_t offset, int bytes, Use use) {
  auto size = static_cast<uint64_t>(warp.block.launch.kernel.local_bytes);
  if (!is_inside(warp, op, lane, use, "local memory", offset, bytes, size)) return nullptr;
  uint64_t at = size * static_cast<uint64_t>(lane) + offset;
  if (!check_written(warp, op, lane, use, "local memory", &warp.local_written[at], offset, bytes))
    return nullptr;
  return &warp.local[at];
}

// Copies that read their source when they are waited for must find it unchanged.
bool is_source_of_copy(Warp& warp, const Op& op, int lane, uint64_t address, int bytes) {
  for (const Warp& other : warp.block.warps)
    for (const PendingCopy& copy : other.copies)
      if (address < copy.from + copy.source_bytes && copy.from < address + static_cast<uint64_t>(bytes)) {
        warp.fail(op, lane,
                  "writes the source of the asynchronous copy in line " + std::to_string(copy.op->line) +
                      ", which " + name_thread(warp.block, other.thread(copy.lane)) + " has not waited for");
        return true;
      }
  return false;
}

uint8_t* access_global(Warp& warp, const Op& op, int lane, uint64_t address, int bytes, Use use) {
  Launch& launch = warp.block.launch;
  bool is_variable = address / kBufferStride >= kFirstVariable;
  Memory& memory = is_variable ? launch.variables : launch.memory;
  Memory::Buffer* buffer = memory.find(address);
  if (!buffer) {
    warp.fail(op, lane, std::string(verb(use)) + " at " + hexadecimal(address) + ", where no buffer lies");
    return nullptr;
  }
  uint64_t offset = address % kBufferStride;
  auto wide = static_cast<uint64_t>(bytes);
  if ((offset & (wide - 1)) != 0 || offset > buffer->data.size() || buffer->data.size() - offset < wide) {
    is_inside(warp, op, lane, use, ("buffer '" + buffer->name + "'").c_str(), offset, bytes,
              buffer->data.size());
    return nullptr;
  }
  if (use != Use::Read && buffer->is_constant) {
    warp.fail(op, lane, "writes buffer '" + buffer->name + "', which is constant");
    return nullptr;
  }
  if (launch.options.check_races && !(use == Use::Read && buffer->is_constant)) {
    GlobalShadow& shadow = is_variable ? launch.variable_shadow : launch.shadow;
    Cell* cells = shadow.cells(memory.index_of(address), offset);
    int count = (bytes + shadow.granule() - 1) >> std::countr_zero(static_cast<unsigned>(shadow.granule()));
    const RaceChecker& races = warp.block.races;
    Conflict conflict = use == Use::Read ? races.read(cells, count, warp.thread(lane), op.access)
                                         : races.write(cells, count, warp.thread(lane), op.access);
    if (conflict.kind != Conflict::Kind::None) {
      report(warp, op, lane, use, "buffer '" + buffer->name + "'", offset, bytes, conflict);
      return nullptr;
    }
  }
  if (use != Use::Read && warp.block.pending_copies != 0 && is_source_of_copy(warp, op, lane, address, bytes))
    return nullptr;
  if (!buffer->written.empty()) {
    uint8_t* flags = &buffer->written[offset];
    if (use == Use::Write)
      std::memset(flags, 1, wide);
    else if (!are_written(flags, bytes)) {
      check_written(warp, op, lane, use, "buffer '" + buffer->name + "'", flags, offset, bytes);
      return nullptr;
    }
  }
  return &buffer->data[offset];
}

uint8_t* access_parameters(Warp& warp, const Op& op, int lane, uint64_t offset, int bytes, Use use) {
  std::vector<uint8_t>& parameters = warp.block.launch.parameters;
  if (use != Use::Read) {
    warp.fail(op, lane, "writes a parameter of the kernel");
    return nullptr;
  }
  if (!is_inside(warp, op, lane, use, "the parameters", offset, bytes, parameters.size())) return nullptr;
  return &parameters[offset];
}

} // namespace

uint8_t* access(Warp& warp, const Op& op, int lane, Space& space, uint64_t& address, int bytes, Use use) {
  if (space == Space::Generic) {
    space = Space::Global;
    for (auto [window, of] : {std::pair{kParamWindow, Space::Param}, std::pair{kSharedWindow, Space::Shared},
                              std::pair{kLocalWindow, Space::Local}})
      if (address >= window && address - window < 0x1000'0000'0000) {
        space = of;
        address -= window;
        break;
      }
  }
  switch (space) {
  case Space::Shared: return access_shared(warp, op, lane, address, bytes, use);
  case Space::Local: return access_local(warp, op, lane, address, bytes, use);
  case Space::Param: return access_parameters(warp, op, lane, address, bytes, use);
  default: return access_global(warp, op, lane, address, bytes, use);
  }
}

} // namespace firn::ptx
