// Strings in upper and lower case. Linked if the model changes the case of strings.
#include "firn/letter_case.h"
#include "firn/text.h"

namespace {

// The bytes of the character that a text begins with: 0 if it begins with none.
unsigned read_character(const unsigned char* bytes, std::uint64_t left, std::uint32_t& character) noexcept {
  const unsigned char lead = bytes[0];
  const unsigned size = lead < 0x80   ? 1
                        : lead < 0xc2 ? 0
                        : lead < 0xe0 ? 2
                        : lead < 0xf0 ? 3
                        : lead < 0xf5 ? 4
                                      : 0;
  if (size == 0 || size > left) return 0;
  character = size == 1 ? lead : lead & (0x7fu >> size);
  for (unsigned i = 1; i < size; ++i) {
    if ((bytes[i] & 0xc0u) != 0x80u) return 0;
    character = character << 6 | (bytes[i] & 0x3fu);
  }
  const bool overlong = (size == 3 && character < 0x800) || (size == 4 && character < 0x10000);
  return overlong || character > 0x10ffff ? 0 : size;
}

unsigned write_character(std::uint32_t character, unsigned char* bytes) noexcept {
  const unsigned size = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  for (unsigned i = size; i-- > 1; character >>= 6)
    bytes[i] = static_cast<unsigned char>(0x80u | (character & 0x3fu));
  bytes[0] = static_cast<unsigned char>(size == 1 ? character : (0xf00u >> size & 0xf0u) | character);
  return size;
}

} // namespace

extern "C" {

void firn_rt2_text_case(const firn_text* x, firn_text* out, firn_rt2_text_room* room, std::int32_t* status,
                        std::size_t count, std::size_t capacity, std::size_t upper) FIRN_NOEXCEPT {
  for (std::size_t i = 0; i < count; ++i) {
    const firn_text from = x[i];
    const auto* bytes = reinterpret_cast<const unsigned char*>(from.data);
    auto* const to = reinterpret_cast<unsigned char*>(room->bytes + room->used);
    std::uint64_t left = capacity - room->used, written = 0;
    for (std::uint64_t at = 0; at < from.size;) {
      unsigned char changed[4] = {bytes[at]};
      std::uint32_t character = 0;
      const unsigned size = read_character(bytes + at, from.size - at, character);
      const unsigned changed_size =
          size == 0 ? 1 : write_character(firn::detail::in_case(character, upper != 0), changed);
      if (changed_size > left) {
        *status = FIRN_STATUS_OUT_OF_RANGE | 2 << 8;
        return;
      }
      for (unsigned b = 0; b < changed_size; ++b) to[written++] = changed[b];
      left -= changed_size;
      at += size == 0 ? 1 : size;
    }
    room->used += written;
    firn_text text{};
    text.data = reinterpret_cast<const char*>(to);
    text.size = written;
    out[i] = text;
  }
}
}
