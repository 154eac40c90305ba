// Global memory of the interpreter: buffers whose addresses are 4 GiB apart, so that an access beyond one
// never meets another.
#pragma once

#include "compiler/support/diagnostic.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace firn::ptx {

class Memory {
public:
  // Index of the first buffer's address in units of 4 GiB.
  explicit Memory(uint64_t first = 1) : first_(first) {}

  enum class Contents { Poisoned, Zero }; // reading what was never written is an error, or not

  // Adds a buffer of 1 byte to 4 GiB and returns its address, a multiple of 256.
  uint64_t allocate(const std::string& name, uint64_t bytes, Contents contents = Contents::Poisoned);
  // Adds a buffer that holds these values.
  template <class T> uint64_t allocate(const std::string& name, const std::vector<T>& values) {
    uint64_t address = allocate(name, values.size() * sizeof(T));
    (void)static_cast<bool>(write(address, values.data(), values.size() * sizeof(T)));
    return address;
  }
  // Ends a buffer: its address is never used again. The error is an address that no buffer begins at.
  Result release(uint64_t address);

  // Copies between the program's memory and a buffer; errors are ranges outside of one buffer. `read` gives
  // zeros for what was never written, `is_written` tells.
  Result write(uint64_t address, const void* data, uint64_t bytes);
  Result read(uint64_t address, void* data, uint64_t bytes) const;
  template <class T> std::vector<T> read(uint64_t address, size_t count) const {
    std::vector<T> values(count);
    (void)static_cast<bool>(read(address, values.data(), count * sizeof(T)));
    return values;
  }
  bool is_written(uint64_t address, uint64_t bytes) const;

  struct Buffer {
    std::string name;
    std::vector<uint8_t> data;
    std::vector<uint8_t> written; // one flag per byte; empty: all are
    bool is_constant = false;     // kernels may not write it
  };
  // The buffer that an address lies in or behind; null if there is none.
  Buffer* find(uint64_t address);
  const Buffer* find(uint64_t address) const;
  size_t index_of(uint64_t address) const; // index of the buffer that `find` gives
  size_t size() const { return buffers_.size(); }
  uint64_t first() const { return first_; }
  void mark_constant(uint64_t address) { find(address)->is_constant = true; }

private:
  uint64_t first_;
  std::vector<std::unique_ptr<Buffer>> buffers_; // null: released
};

} // namespace firn::ptx
