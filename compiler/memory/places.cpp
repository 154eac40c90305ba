// See places.h.
#include "compiler/memory/places.h"

namespace firn::memory {

void Places::set_view(Value value, Value base, int64_t byte_offset) {
  FIRN_CHECK(!is_placed(value), "value placed twice");
  views_[key(value)] = {base, byte_offset};
}

void Places::set_place(Value value, BufferSlice place) {
  FIRN_CHECK(!is_placed(value), "value placed twice");
  slices_[key(value)] = place;
}

std::optional<BufferSlice> Places::find(Value root) const {
  auto found = slices_.find(key(root));
  return found == slices_.end() ? std::nullopt : std::optional(found->second);
}

std::pair<Value, int64_t> Places::root_of(Value value) const {
  int64_t offset = 0;
  for (auto view = views_.find(key(value)); view != views_.end(); view = views_.find(key(value))) {
    offset += view->second.second;
    value = view->second.first;
  }
  return {value, offset};
}

bool Places::is_view_of_operand(const Instruction& instruction) const {
  if (instruction.num_results() != 1 || instruction.num_operands() == 0) return false;
  auto view = views_.find(key(const_cast<Instruction&>(instruction).result()));
  return view != views_.end() && view->second.first == instruction.operand(0);
}

void Places::set_rolling(const Instruction& concatenate, const Instruction* slice) {
  rolling_.insert(&concatenate);
  if (slice) read_in_place_.insert(slice);
}

} // namespace firn::memory
