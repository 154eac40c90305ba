// NumPy's .npz: a zip archive without compression, with the date that zip has for none.
#include "compiler/driver/run.h"
#include "compiler/driver/train/tensor_file.h"

#include <array>

namespace firn::driver {
namespace {

constexpr uint32_t kLocalMark = 0x04034b50, kEntryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr int kVersion = 20, kUtf8Names = 1 << 11, kFirstDate = 1 << 5 | 1; // 1 January 1980
constexpr uint64_t kLargest = 0xfffffffe;                                   // size or offset

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? 0xedb88320U : 0);
    table[byte] = rest;
  }
  return table;
}

uint32_t crc_of(std::string_view bytes) {
  static constexpr auto table = crc_table();
  uint32_t crc = ~0U;
  for (char byte : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(byte)) & 255];
  return ~crc;
}

void add(std::string& to, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) to += static_cast<char>(value >> 8 * i & 255);
}

// The fields that local headers and entries of the directory have in common.
std::string facts_of(const std::string& name, std::string_view content) {
  std::string facts;
  for (int number : {kVersion, kUtf8Names, /*stored*/ 0, /*time*/ 0, kFirstDate})
    add(facts, static_cast<uint64_t>(number), 2);
  add(facts, crc_of(content), 4);
  add(facts, content.size(), 4);
  add(facts, content.size(), 4);
  add(facts, name.size(), 2);
  add(facts, 0, 2); // extra field
  return facts;
}

} // namespace

Expected<std::string> npz_bytes(const std::string& path, const NamedTensors& tensors) {
  std::string bytes, directory;
  for (const auto& [tensor_name, tensor] : tensors) {
    auto content = driver::npy_bytes(path, *tensor);
    if (!content) return content.error();
    const std::string name = tensor_name + ".npy";
    if (name.size() > 0xffff) return usage_error("'" + path + "': a name of a tensor is too long for it");
    if (content->size() > kLargest || bytes.size() > kLargest)
      return usage_error("'" + path +
                         "': .npz files of more than 4 GiB are not written; wanted .safetensors");
    const std::string facts = facts_of(name, *content);
    add(directory, kEntryMark, 4);
    add(directory, kVersion, 2);
    directory += facts;
    directory.append(2 + 2 + 2 + 4, '\0'); // comment, disk, attributes
    add(directory, bytes.size(), 4);
    directory += name;
    add(bytes, kLocalMark, 4);
    bytes += facts + name + *content;
  }
  const uint64_t at = bytes.size();
  if (at > kLargest || tensors.size() > 0xfffe)
    return usage_error("'" + path + "': .npz files of more than 4 GiB or 65534 tensors are not written");
  bytes += directory;
  add(bytes, kEndMark, 4);
  add(bytes, 0, 2 + 2);
  add(bytes, tensors.size(), 2);
  add(bytes, tensors.size(), 2);
  add(bytes, directory.size(), 4);
  add(bytes, at, 4);
  add(bytes, 0, 2);
  return bytes;
}

} // namespace firn::driver
