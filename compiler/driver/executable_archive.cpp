// The layout of archives: a list of texts, each behind its size, then the object, then the weights, both at
// multiples of kAlignment.
#include "compiler/driver/executable_archive.h"

#include "compiler/artifact/description_archive.h"

#include <sys/stat.h>

#include <cstring>

namespace firn::driver {
namespace {

constexpr size_t kAlignment = 64; // object and weights begin at multiples of it

void add(std::string& bytes, std::string_view text) {
  const uint64_t size = text.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += text;
}

class TextReader {
public:
  explicit TextReader(std::string_view bytes) : rest_(bytes) {}

  std::string_view next() {
    uint64_t size = 0;
    if (rest_.size() < sizeof size) return fail();
    std::memcpy(&size, rest_.data(), sizeof size);
    rest_.remove_prefix(sizeof size);
    if (size > rest_.size()) return fail();
    std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }
  // A number, as the text of its bytes.
  uint64_t number() {
    std::string_view text = next();
    uint64_t value = 0;
    if (text.size() == sizeof value)
      std::memcpy(&value, text.data(), sizeof value);
    else
      fail();
    return value;
  }
  std::string_view rest() const { return rest_; }
  bool is_whole() const { return is_whole_; }

private:
  std::string_view fail() {
    is_whole_ = false;
    return rest_ = {};
  }
  std::string_view rest_;
  bool is_whole_ = true;
};

std::string text_of(uint64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

size_t padding_behind(size_t size) {
  return (kAlignment - size % kAlignment) % kAlignment;
}

} // namespace

std::vector<std::string_view> pieces_of(const ExecutableArchive& archive, std::string& storage) {
  static constexpr char zeros[kAlignment] = {};
  storage.clear();
  add(storage, artifact::write_description(archive.description));
  for (const std::string* text :
       {&archive.manifest, &archive.run_symbol, &archive.weights_symbol, &archive.prepare_symbol})
    add(storage, *text);
  add(storage, text_of(archive.variant));
  add(storage, text_of(archive.files.size()));
  for (const auto& [path, identity] : archive.files) {
    add(storage, path);
    add(storage, identity);
  }
  add(storage, text_of(archive.weights.size()));
  add(storage, text_of(archive.object.size()));
  const size_t before = padding_behind(storage.size()), behind = padding_behind(archive.object.size());
  return {storage,
          {zeros, before},
          archive.object,
          {zeros, behind},
          {reinterpret_cast<const char*>(archive.weights.data()), archive.weights.size()}};
}

Expected<ExecutableArchive> read_archive(std::span<const std::byte> bytes) {
  const Diagnostic broken = usage_error("the archive of the model is not whole");
  std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  TextReader texts(all);
  auto description = artifact::read_description(texts.next());
  if (!description) return description.error();
  ExecutableArchive archive;
  archive.description = std::move(*description);
  for (std::string* text :
       {&archive.manifest, &archive.run_symbol, &archive.weights_symbol, &archive.prepare_symbol})
    *text = texts.next();
  archive.variant = texts.number();
  for (uint64_t count = texts.number(); count > 0 && texts.is_whole(); --count) {
    std::string path(texts.next());
    archive.files.emplace_back(std::move(path), texts.next());
  }
  const uint64_t weight_bytes = texts.number(), object_bytes = texts.number();
  const size_t texts_end = all.size() - texts.rest().size(),
               object_at = texts_end + padding_behind(texts_end);
  if (!texts.is_whole() || object_at > all.size() || object_bytes > all.size() - object_at) return broken;
  archive.object = all.substr(object_at, object_bytes);
  const size_t weights_at = object_at + object_bytes + padding_behind(object_bytes);
  if (weights_at > all.size() || all.size() - weights_at != weight_bytes) return broken;
  archive.weights = bytes.subspan(weights_at);
  return archive;
}

std::string file_identity(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return "";
  std::string identity;
  for (auto number : {static_cast<int64_t>(file.st_dev), static_cast<int64_t>(file.st_ino),
                      static_cast<int64_t>(file.st_size), static_cast<int64_t>(file.st_mtim.tv_sec),
                      static_cast<int64_t>(file.st_mtim.tv_nsec)})
    identity += std::to_string(number) + " ";
  return identity;
}

SourceFiles file_identities(const std::vector<std::string>& paths) {
  SourceFiles all;
  for (const std::string& path : paths) all.emplace_back(path, file_identity(path));
  return all;
}

} // namespace firn::driver
