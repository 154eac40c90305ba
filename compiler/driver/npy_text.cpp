// Strings in .npy files.
#include "compiler/driver/npy_text.h"

#include "compiler/support/utf8.h"

#include <algorithm>

namespace firn::driver {

namespace {

constexpr size_t kMaxLength = size_t{1} << 28;

std::string without_zeros(std::string text) {
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

std::optional<std::string> from_characters(std::string_view data) {
  std::string text;
  for (size_t at = 0; at + 4 <= data.size(); at += 4) {
    uint32_t character = 0;
    for (size_t i = 4; i-- > 0;) character = character << 8 | static_cast<unsigned char>(data[at + i]);
    if (character > 0x10ffff) return std::nullopt;
    append_utf8(character, text);
  }
  return without_zeros(std::move(text));
}

std::optional<std::string> to_characters(const std::string& text) {
  std::string data;
  for (size_t at = 0; at < text.size();) {
    auto character = decode_utf8(text, at);
    if (!character) return std::nullopt;
    for (int shift = 0; shift < 32; shift += 8) data += static_cast<char>(*character >> shift & 0xff);
  }
  return data;
}

} // namespace

std::optional<size_t> npy_text_bytes(std::string_view descriptor) {
  // "'<U5'", with its quotes.
  if (descriptor.size() < 5 || (descriptor[2] != 'U' && descriptor[2] != 'S')) return std::nullopt;
  size_t length = 0;
  for (char c : descriptor.substr(3, descriptor.size() - 4)) {
    if (c < '0' || c > '9' || length > kMaxLength) return std::nullopt;
    length = length * 10 + static_cast<size_t>(c - '0');
  }
  return descriptor[2] == 'U' ? 4 * length : length;
}

LiteralRef read_npy_text(std::string_view descriptor, std::vector<int64_t> dims, std::string_view data) {
  size_t size = npy_text_bytes(descriptor).value_or(0);
  std::vector<std::string> strings;
  for (int64_t i = checked_num_elements(dims).value_or(0); i > 0; --i) {
    std::string_view element = data.substr(strings.size() * size, size);
    auto text = descriptor[2] == 'U' ? from_characters(element) : without_zeros(std::string(element));
    if (!text) return nullptr;
    strings.push_back(std::move(*text));
  }
  return Literal::strings(std::move(dims), std::move(strings));
}

Expected<NpyText> write_npy_text(const Literal& literal) {
  std::vector<std::string> elements = literal.string_values();
  for (const std::string& each : elements)
    if (!each.empty() && each.back() == '\0') return usage_error("a string ends with a zero");
  std::vector<std::string> wide;
  for (const std::string& each : elements)
    if (auto characters = to_characters(each)) wide.push_back(std::move(*characters));
  bool all_characters = wide.size() == elements.size();
  if (all_characters) elements = std::move(wide);
  size_t longest = all_characters ? 4 : 1; // NumPy has no strings of length 0
  for (const std::string& each : elements) longest = std::max(longest, each.size());
  NpyText text{all_characters ? "<U" + std::to_string(longest / 4) : "|S" + std::to_string(longest), ""};
  for (std::string& each : elements) {
    each.resize(longest, '\0');
    text.data += each;
  }
  return text;
}

} // namespace firn::driver
