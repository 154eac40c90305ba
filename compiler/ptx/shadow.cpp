// Races by stamps of time.
#include "compiler/ptx/shadow.h"

#include <bit>

namespace firn::ptx {

Conflict RaceChecker::read(Cell* cells, int count, uint32_t thread, Access access) const {
  for (int i = 0; i < count; ++i) {
    Cell& cell = cells[i];
    if (cell.write.is_pending && cell.write.block == block_) return {Conflict::Kind::Pending, cell.write};
    if (is_race(cell.write, thread, access)) return {Conflict::Kind::WriteThenRead, cell.write};
    bool is_same = cell.read.block == block_ && cell.read.thread == thread;
    if (!is_same && cell.read.block != 0 && !is_ordered(cell.read, thread)) cell.other = cell.read;
    cell.read = stamp(thread, access);
  }
  return {};
}

Conflict RaceChecker::write(Cell* cells, int count, uint32_t thread, Access access, bool is_pending) const {
  for (int i = 0; i < count; ++i) {
    Cell& cell = cells[i];
    if (cell.write.is_pending && cell.write.block == block_) return {Conflict::Kind::Pending, cell.write};
    if (is_race(cell.write, thread, access)) return {Conflict::Kind::WriteThenWrite, cell.write};
    if (is_race(cell.read, thread, access)) return {Conflict::Kind::ReadThenWrite, cell.read};
    if (is_race(cell.other, thread, access)) return {Conflict::Kind::ReadThenWrite, cell.other};
    cell.write = stamp(thread, access);
    cell.write.is_pending = is_pending;
    cell.read = cell.other = {};
  }
  return {};
}

Cell* GlobalShadow::cells(size_t buffer, uint64_t offset) {
  if (buffer >= pages_.size()) pages_.resize(buffer + 1);
  auto& pages = pages_[buffer];
  uint64_t cell = offset >> std::countr_zero(static_cast<unsigned>(granule_));
  size_t page = cell / kPageCells;
  if (page >= pages.size()) pages.resize(page + 1);
  if (!pages[page]) pages[page] = std::make_unique<Cell[]>(kPageCells);
  return &pages[page][cell % kPageCells];
}

} // namespace firn::ptx
