// The places of graph values in the buffers of a program: a value has a stretch of a buffer, or it lies
// within another value.
#pragma once

#include "compiler/graph/module.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace firn::memory {

// The place of a value: a stretch of a buffer, as long as the value's type as laid out.
struct BufferSlice {
  int buffer = -1;
  int64_t byte_offset = 0;
  bool operator==(const BufferSlice&) const = default;
};

// Bytes of a value as laid out, at the bounds of its dims.
inline int64_t bytes_at_bound(const Type& type) {
  return static_cast<int64_t>(type.at_bound().physical_byte_size());
}

class Places {
public:
  // `value` lies `byte_offset` into `base`.
  void set_view(Value value, Value base, int64_t byte_offset = 0);
  void set_place(Value value, BufferSlice place);
  bool is_placed(Value value) const { return views_.count(key(value)) || slices_.count(key(value)); }
  // The place of a value that is no view, if it has got one.
  std::optional<BufferSlice> find(Value root) const;
  // The value that a chain of views starts from, and the offset from it.
  std::pair<Value, int64_t> root_of(Value value) const;
  // Whether the instruction's one result is a stretch of its operand, so that nothing is computed. A value
  // that lies in the buffer of one of its users, such as a concatenation, is not.
  bool is_view_of_operand(const Instruction& instruction) const;

  // A concatenation that may be computed over a state, whose last entries its first operand keeps: that
  // operand is moved before others are written, and read where it lies if it is `slice`.
  void set_rolling(const Instruction& concatenate, const Instruction* slice);
  bool is_rolling(const Instruction& concatenate) const { return rolling_.count(&concatenate) != 0; }
  bool is_read_in_place(const Instruction& slice) const { return read_in_place_.count(&slice) != 0; }

private:
  using Key = std::pair<const Instruction*, int>;
  static Key key(Value value) { return {value.def, value.index}; }

  std::map<Key, std::pair<Value, int64_t>> views_;
  std::map<Key, BufferSlice> slices_;
  std::set<const Instruction*> rolling_, read_in_place_;
};

} // namespace firn::memory
