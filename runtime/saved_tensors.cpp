// Files of safetensors in memory. Nothing of a file is trusted before it has been compared.
#include "firn/saved_tensors.h"

#include <cstdint>
#include <cstring>

namespace {

// Texts without the zero at the end.
constexpr char kMetadata[] = "{\"__metadata__\":{\"firn\":\"1\"}";
constexpr char kMetadataBegin[] = "{\"__metadata__\":{";
constexpr char kVersion[] = "\"firn\":";
constexpr char kOwnVersion[] = "\"1\"";
constexpr std::size_t kNumberBytes = 8; // bytes of the header's length

struct Tensors {
  const firn_rt2_saved_tensor* all;
  std::size_t count;

  std::size_t data_bytes() const noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) bytes += all[i].bytes;
    return bytes;
  }
  // Bytes of the header behind the metadata, without the spaces at its end.
  std::size_t entry_bytes() const noexcept {
    std::size_t bytes = 1; // the last brace
    for (std::size_t i = 0; i < count; ++i) bytes += all[i].entry_bytes + (i > 0 ? 1 : 0);
    return bytes;
  }
  std::size_t header_bytes() const noexcept {
    const std::size_t text = sizeof kMetadata - 1 + (count > 0 ? 1 : 0) + entry_bytes();
    return (text + 7) / 8 * 8;
  }
};

// Reads a text from front to back.
class Reader {
public:
  Reader(const char* text, std::size_t size) noexcept : text_(text), size_(size) {}

  bool is_at_end() const noexcept { return size_ == 0; }
  template <std::size_t size> bool take(const char (&wanted)[size]) noexcept {
    return take(wanted, size - 1);
  }
  bool take(const char* wanted, std::size_t length) noexcept {
    if (length > size_ || std::memcmp(text_, wanted, length) != 0) return false;
    skip(length);
    return true;
  }
  // Goes behind the brace that ends the metadata; false if there is none, or if they name another version.
  bool skip_metadata() noexcept {
    for (bool in_string = false; size_ > 0;) {
      if (!in_string && take(kVersion)) {
        if (!take(kOwnVersion)) return false;
        continue;
      }
      const char c = *text_;
      skip(in_string && c == '\\' && size_ > 1 ? 2 : 1);
      if (c == '"') in_string = !in_string;
      if (c == '}' && !in_string) return true;
    }
    return false;
  }

private:
  void skip(std::size_t bytes) noexcept {
    text_ += bytes;
    size_ -= bytes;
  }
  const char* text_;
  std::size_t size_;
};

bool is_header_of(const Tensors& tensors, Reader text) noexcept {
  if (text.take(kMetadataBegin)) {
    if (!text.skip_metadata() || (tensors.count > 0 && !text.take(","))) return false;
  } else if (!text.take("{")) {
    return false;
  }
  for (std::size_t i = 0; i < tensors.count; ++i)
    if ((i > 0 && !text.take(",")) || !text.take(tensors.all[i].entry, tensors.all[i].entry_bytes))
      return false;
  if (!text.take("}")) return false;
  while (text.take(" ")) continue;
  return text.is_at_end();
}

// Copies to growing addresses.
class Writer {
public:
  explicit Writer(void* to) noexcept : to_(static_cast<unsigned char*>(to)) {}
  void write(const void* from, std::size_t bytes) noexcept {
    if (bytes > 0) std::memcpy(to_, from, bytes);
    to_ += bytes;
  }
  template <std::size_t size> void write(const char (&text)[size]) noexcept { write(text, size - 1); }
  unsigned char* end() const noexcept { return to_; }

private:
  unsigned char* to_;
};

} // namespace

extern "C" firn_status firn_rt2_save_tensors(const firn_rt2_saved_tensor* all, std::size_t count,
                                             const unsigned char* from, void* to,
                                             std::size_t bytes) FIRN_NOEXCEPT {
  const Tensors tensors = {all, count};
  const std::size_t header = tensors.header_bytes();
  if (!to || bytes < kNumberBytes + header + tensors.data_bytes()) return FIRN_STATUS_TENSORS_UNFIT;
  Writer writer(to);
  for (std::size_t i = 0; i < kNumberBytes; ++i) {
    const auto byte = static_cast<unsigned char>(static_cast<std::uint64_t>(header) >> 8 * i & 0xff);
    writer.write(&byte, 1);
  }
  const unsigned char* const data = writer.end() + header;
  writer.write(kMetadata);
  for (std::size_t i = 0; i < count; ++i) {
    writer.write(",");
    writer.write(all[i].entry, all[i].entry_bytes);
  }
  writer.write("}");
  while (writer.end() != data) writer.write(" ");
  for (std::size_t i = 0; i < count; ++i) writer.write(from + all[i].offset, all[i].bytes);
  return FIRN_STATUS_OK;
}

extern "C" firn_status firn_rt2_load_tensors(const firn_rt2_saved_tensor* all, std::size_t count,
                                             unsigned char* to, const void* from,
                                             std::size_t bytes) FIRN_NOEXCEPT {
  const Tensors tensors = {all, count};
  const auto* data = static_cast<const unsigned char*>(from);
  if (!data || bytes < kNumberBytes + tensors.data_bytes()) return FIRN_STATUS_TENSORS_UNFIT;
  std::uint64_t header = 0;
  for (std::size_t i = 0; i < kNumberBytes; ++i) header |= static_cast<std::uint64_t>(data[i]) << 8 * i;
  if (header != bytes - kNumberBytes - tensors.data_bytes()) return FIRN_STATUS_TENSORS_UNFIT;
  const auto header_bytes = static_cast<std::size_t>(header);
  data += kNumberBytes;
  if (!is_header_of(tensors, Reader(reinterpret_cast<const char*>(data), header_bytes)))
    return FIRN_STATUS_TENSORS_UNFIT;
  data += header_bytes;
  for (std::size_t i = 0; i < count; ++i) {
    if (all[i].bytes > 0) std::memcpy(to + all[i].offset, data, all[i].bytes);
    data += all[i].bytes;
  }
  return FIRN_STATUS_OK;
}
