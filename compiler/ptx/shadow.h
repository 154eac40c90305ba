// Who touched which byte last: the records by which races and reads of unwritten memory are found.
#pragma once

#include "compiler/ptx/clocks.h"
#include "compiler/ptx/program.h"

#include <memory>
#include <vector>

namespace firn::ptx {

// One access: by whom, and when.
struct Stamp {
  uint32_t block = 0; // from 1; 0: no access yet
  uint32_t time = 0;
  uint16_t thread = 0;
  Access access = Access::Weak;
  bool is_pending = false; // an asynchronous copy that is not waited for
};

// The accesses to one granule: the last write, and since then the last read and another one that is
// concurrent with it. Of three or more concurrent readers two are kept; any write of a third thread
// conflicts with one of them, unless barriers of parts of the block order just those two before it.
struct Cell {
  Stamp write, read, other;
};

// The fault of an access, and the earlier one that it conflicts with.
struct Conflict {
  enum class Kind { None, WriteThenRead, WriteThenWrite, ReadThenWrite, Pending };
  Kind kind = Kind::None;
  Stamp earlier;
};

// Checks accesses of one block against records, and records them.
class RaceChecker {
public:
  RaceChecker(uint32_t block, const Clocks& clocks) : block_(block), clocks_(clocks) {}

  Conflict read(Cell* cells, int count, uint32_t thread, Access access) const;
  Conflict write(Cell* cells, int count, uint32_t thread, Access access, bool is_pending = false) const;

private:
  bool is_race(const Stamp& earlier, uint32_t thread, Access access) const {
    if (earlier.block == 0 || (earlier.access != Access::Weak && access != Access::Weak)) return false;
    return !is_ordered(earlier, thread);
  }
  bool is_ordered(const Stamp& earlier, uint32_t thread) const {
    return earlier.block == block_ && clocks_.is_ordered(earlier.thread, earlier.time, thread);
  }
  Stamp stamp(uint32_t thread, Access access) const {
    return {block_, clocks_.now(thread), static_cast<uint16_t>(thread), access, false};
  }

  uint32_t block_;
  const Clocks& clocks_;
};

// Records of global memory for one launch, made page by page as they are touched.
class GlobalShadow {
public:
  explicit GlobalShadow(int granule) : granule_(granule) {}
  int granule() const { return granule_; }
  // Records of an aligned access of at most 16 bytes, which lies within one page.
  Cell* cells(size_t buffer, uint64_t offset);

private:
  static constexpr size_t kPageCells = 512;
  int granule_;
  std::vector<std::vector<std::unique_ptr<Cell[]>>> pages_;
};

} // namespace firn::ptx
