// UTF-8, strictly: no overlong forms, nothing beyond the last character.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firn {

// The character at `at`, which moves behind it; nothing, and `at` stays, where the bytes are none.
inline std::optional<uint32_t> decode_utf8(std::string_view text, size_t& at) {
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  uint32_t lead = byte(at);
  size_t more = lead < 0x80 ? 0 : lead < 0xc2 ? 4 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf5 ? 3 : 4;
  if (more == 4 || more >= text.size() - at) return std::nullopt;
  uint32_t character = more == 0 ? lead : lead & (0x3fu >> more);
  for (size_t i = 1; i <= more; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return std::nullopt;
    character = character << 6 | (byte(at + i) & 0x3f);
  }
  static constexpr uint32_t kMin[] = {0, 0x80, 0x800, 0x10000};
  if (character < kMin[more] || character > 0x10ffff) return std::nullopt;
  at += more + 1;
  return character;
}

inline void append_utf8(uint32_t character, std::string& text) {
  auto add = [&](uint32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  int more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  static constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  add(kLead[more] | character >> 6 * more);
  for (int i = more; i-- > 0;) add(0x80 | (character >> 6 * i & 0x3f));
}

} // namespace firn
