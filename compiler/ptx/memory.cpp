// Buffers by the upper half of their addresses.
#include "compiler/ptx/memory.h"

#include "compiler/ptx/program.h"

#include <algorithm>
#include <cstring>

namespace firn::ptx {

uint64_t Memory::allocate(const std::string& name, uint64_t bytes, Contents contents) {
  FIRN_CHECK(bytes <= kBufferStride, "a buffer of the interpreter is larger than 4 GiB");
  auto buffer = std::make_unique<Buffer>();
  buffer->name = name;
  buffer->data.resize(bytes);
  if (contents == Contents::Poisoned) buffer->written.resize(bytes);
  buffers_.push_back(std::move(buffer));
  return (first_ + buffers_.size() - 1) * kBufferStride;
}

size_t Memory::index_of(uint64_t address) const {
  return address / kBufferStride - first_;
}

Memory::Buffer* Memory::find(uint64_t address) {
  size_t index = index_of(address);
  return index < buffers_.size() ? buffers_[index].get() : nullptr;
}

const Memory::Buffer* Memory::find(uint64_t address) const {
  return const_cast<Memory*>(this)->find(address);
}

Result Memory::release(uint64_t address) {
  if (!find(address) || address % kBufferStride != 0) return usage_error("no buffer begins at this address");
  buffers_[index_of(address)].reset();
  return {};
}

namespace {

Result check_range(const Memory::Buffer* buffer, uint64_t address, uint64_t bytes) {
  if (!buffer) return usage_error("the address lies in no buffer");
  uint64_t size = buffer->data.size(), offset = address % kBufferStride;
  if (offset > size || bytes > size - offset)
    return usage_error("bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                       " of buffer '" + buffer->name + "', which has " + std::to_string(size));
  return {};
}

} // namespace

Result Memory::write(uint64_t address, const void* data, uint64_t bytes) {
  Buffer* buffer = find(address);
  if (auto checked = check_range(buffer, address, bytes); !checked) return checked;
  if (bytes == 0) return {};
  std::memcpy(buffer->data.data() + address % kBufferStride, data, bytes);
  if (!buffer->written.empty()) std::memset(buffer->written.data() + address % kBufferStride, 1, bytes);
  return {};
}

Result Memory::read(uint64_t address, void* data, uint64_t bytes) const {
  const Buffer* buffer = find(address);
  if (auto checked = check_range(buffer, address, bytes); !checked) return checked;
  if (bytes > 0) std::memcpy(data, buffer->data.data() + address % kBufferStride, bytes);
  return {};
}

bool Memory::is_written(uint64_t address, uint64_t bytes) const {
  const Buffer* buffer = find(address);
  if (!check_range(buffer, address, bytes)) return false;
  if (buffer->written.empty()) return true;
  auto begin = buffer->written.begin() + static_cast<int64_t>(address % kBufferStride);
  return std::all_of(begin, begin + static_cast<int64_t>(bytes), [](uint8_t flag) { return flag != 0; });
}

} // namespace firn::ptx
