// NumPy's .npz: a zip archive of .npy files, read through its central directory.
#include "compiler/driver/calibration_data.h"
#include "compiler/driver/run.h"

namespace firn::driver {
namespace {

using Bytes = std::span<const std::byte>;

uint64_t number_at(Bytes bytes, size_t at, int width) {
  uint64_t value = 0;
  for (int i = width; i-- > 0;)
    value = value << 8 | static_cast<uint64_t>(bytes[at + static_cast<size_t>(i)]);
  return value;
}

constexpr uint32_t kEndMark = 0x06054b50, kEntryMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;
constexpr size_t kMaxComment = 65535;

// Finds the record at the end of the central directory; nothing if there is none.
std::optional<size_t> find_end(Bytes bytes) {
  if (bytes.size() < kEndBytes) return std::nullopt;
  for (size_t back = kEndBytes; back <= std::min(bytes.size(), kEndBytes + kMaxComment); ++back)
    if (number_at(bytes, bytes.size() - back, 4) == kEndMark) return bytes.size() - back;
  return std::nullopt;
}

struct Entry {
  std::string name;
  uint64_t method = 0, size = 0, header = 0; // header: offset of the local header
  size_t next = 0;
};

// Numbers beyond 4 GiB stand in an extra field, which has only those whose own fields are full.
void read_wide(Bytes extra, Entry& entry, uint64_t packed, uint64_t size) {
  constexpr uint64_t kFull = 0xffffffff;
  constexpr uint64_t kWideField = 1;
  for (size_t at = 0; at + 4 <= extra.size();) {
    uint64_t kind = number_at(extra, at, 2), length = number_at(extra, at + 2, 2);
    at += 4;
    if (length > extra.size() - at) return;
    size_t from = at, end = at + length;
    auto take = [&](uint64_t& value) {
      if (from + 8 <= end) value = number_at(extra, from, 8), from += 8;
    };
    if (kind == kWideField) {
      if (size == kFull) take(entry.size);
      if (packed == kFull) take(packed);
      if (entry.header == kFull) take(entry.header);
    }
    at = end;
  }
}

std::optional<Entry> read_entry(Bytes bytes, size_t at) {
  if (at > bytes.size() || bytes.size() - at < kEntryBytes || number_at(bytes, at, 4) != kEntryMark)
    return std::nullopt;
  size_t name = number_at(bytes, at + 28, 2), extra = number_at(bytes, at + 30, 2),
         comment = number_at(bytes, at + 32, 2);
  if (name + extra + comment > bytes.size() - at - kEntryBytes) return std::nullopt;
  Entry entry;
  entry.name.assign(reinterpret_cast<const char*>(bytes.data()) + at + kEntryBytes, name);
  entry.method = number_at(bytes, at + 10, 2);
  uint64_t packed = number_at(bytes, at + 20, 4);
  entry.size = number_at(bytes, at + 24, 4);
  entry.header = number_at(bytes, at + 42, 4);
  entry.next = at + kEntryBytes + name + extra + comment;
  read_wide(bytes.subspan(at + kEntryBytes + name, extra), entry, packed, entry.size);
  return entry;
}

} // namespace

Expected<std::map<std::string, LiteralRef>> read_npz(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  Bytes bytes = (*file)->bytes();
  Diagnostic broken = usage_error("'" + path + "' is not a .npz file that can be read");
  auto end = find_end(bytes);
  if (!end) return broken;
  std::map<std::string, LiteralRef> arrays;
  uint64_t count = number_at(bytes, *end + 10, 2), at = number_at(bytes, *end + 16, 4);
  for (uint64_t i = 0; i < count; ++i) {
    auto entry = read_entry(bytes, at);
    if (!entry) return broken;
    at = entry->next;
    if (entry->method != 0)
      return usage_error("'" + path + "' holds '" + entry->name +
                         "' compressed: write it with numpy.savez, not numpy.savez_compressed");
    if (entry->header > bytes.size() || bytes.size() - entry->header < kLocalBytes ||
        number_at(bytes, entry->header, 4) != kLocalMark)
      return broken;
    size_t start = entry->header + kLocalBytes + number_at(bytes, entry->header + 26, 2) +
                   number_at(bytes, entry->header + 28, 2);
    if (start > bytes.size() || entry->size > bytes.size() - start) return broken;
    auto array = read_npy(*file, start, entry->size, path + ":" + entry->name, DType::F32);
    if (!array) return array.error();
    std::string name =
        entry->name.ends_with(".npy") ? entry->name.substr(0, entry->name.size() - 4) : entry->name;
    arrays[name] = *array;
  }
  return arrays;
}

} // namespace firn::driver
