// Elements of tensors of strings, as C11 and C++17: where the bytes of one lie, and how many they are. They
// may hold any values, zeros too, and need not end with a zero.
#ifndef FIRN_TEXT_H
#define FIRN_TEXT_H

#include "firn/abi.h"

#ifdef __cplusplus
#include <string_view>
#include <type_traits>
extern "C" {
#endif

// 16 bytes on every CPU. Data of size 0 may be null.
typedef struct firn_text {
  const char* data;
#if UINTPTR_MAX <= 0xffffffffu
  uint32_t unused; // may have any value
#endif
  uint64_t size;
} firn_text;

// Objects call the functions that begin with firn_rt2_; the rest is for programs. Numbers of elements are
// those of each tensor of strings.

// The room in which texts are made: a counter of the bytes in use, and bytes.
typedef struct firn_rt2_text_room {
  uint64_t used;
  char bytes[1];
} firn_rt2_text_room;

// Strings of an object: of each its offset and size within `bytes`.
FIRN_HIDDEN void firn_rt2_text_constants(const uint32_t* places, const char* bytes, firn_text* out,
                                         size_t count) FIRN_NOEXCEPT;
// How lhs compares with rhs, byte by byte: bit 0 of `wanted` asks for less, bit 1 for equal, bit 2 for
// greater.
FIRN_HIDDEN void firn_rt2_text_compare(const firn_text* lhs, const firn_text* rhs, unsigned char* out,
                                       size_t count, size_t wanted) FIRN_NOEXCEPT;
// Positions of texts among `keys` strings of an object in rising order; positions[i] is that of the i-th. -1:
// none.
FIRN_HIDDEN void firn_rt2_text_find(const firn_text* x, const uint32_t* places, const char* bytes,
                                    const int64_t* positions, int64_t* out, size_t count,
                                    size_t keys) FIRN_NOEXCEPT;
// The bytes of lhs, then those of rhs. FIRN_STATUS_OUT_OF_RANGE where the room of `capacity` bytes is full.
FIRN_HIDDEN void firn_rt2_text_concatenate(const firn_text* lhs, const firn_text* rhs, firn_text* out,
                                           firn_rt2_text_room* room, int32_t* status, size_t count,
                                           size_t capacity) FIRN_NOEXCEPT;
// Letters in lower case, or with `upper` 1 in upper case. The room as above.
FIRN_HIDDEN void firn_rt2_text_case(const firn_text* x, firn_text* out, firn_rt2_text_room* room,
                                    int32_t* status, size_t count, size_t capacity,
                                    size_t upper) FIRN_NOEXCEPT;
// Whether texts match: byte b leads from state s to next[s * classes + class_of[b]]. It begins in state 1;
// state 0 leads nowhere else.
FIRN_HIDDEN void firn_rt2_text_match(const firn_text* x, const unsigned char* class_of, const uint16_t* next,
                                     const unsigned char* accepts, unsigned char* out, size_t count,
                                     size_t classes) FIRN_NOEXCEPT;
// Texts cut at the delimiter, or at blanks if its size is 0, `splits` times at most; the pieces lie in x.
// Room for `most` of each text, of which `splits + 1` may be less. FIRN_STATUS_OUT_OF_RANGE where there are
// more.
FIRN_HIDDEN void firn_rt2_text_split(const firn_text* x, const char* delimiter, firn_text* pieces,
                                     int64_t* counts, int32_t* status, size_t count, size_t delimiter_size,
                                     size_t splits, size_t most) FIRN_NOEXCEPT;
// Numbers in decimal, and NaN and INF in any case; floats of 4 or 8 `bytes`. FIRN_STATUS_OUT_OF_RANGE where a
// text is no number, or none of 64 bits.
FIRN_HIDDEN void firn_rt2_text_to_reals(const firn_text* x, void* out, int32_t* status, size_t count,
                                        size_t bytes) FIRN_NOEXCEPT;
FIRN_HIDDEN void firn_rt2_text_to_integers(const firn_text* x, int64_t* out, int32_t* status,
                                           size_t count) FIRN_NOEXCEPT;
// The other way, of floats the shortest decimals that are read as the same. The room as above.
FIRN_HIDDEN void firn_rt2_text_of_reals(const void* x, firn_text* out, firn_rt2_text_room* room,
                                        int32_t* status, size_t count, size_t capacity,
                                        size_t bytes) FIRN_NOEXCEPT;
FIRN_HIDDEN void firn_rt2_text_of_integers(const int64_t* x, firn_text* out, firn_rt2_text_room* room,
                                           int32_t* status, size_t count, size_t capacity,
                                           size_t is_signed) FIRN_NOEXCEPT;

#ifdef __cplusplus
}

namespace firn {
inline namespace rt2 {

// One element. It owns nothing: inputs refer to the program's bytes, outputs to those of inputs, of the
// model's constants and of the arena.
class Text {
public:
  FIRN_HIDDEN constexpr Text() noexcept = default;
  FIRN_HIDDEN constexpr Text(const char* data, std::size_t size) noexcept : data_(data), size_(size) {}
  // Takes all that converts to std::string_view: strings, which have to outlive the element, and
  // zero-terminated bytes.
  template <class String, class = std::enable_if_t<std::is_convertible_v<const String&, std::string_view> &&
                                                   !std::is_same_v<String, Text>>>
  FIRN_HIDDEN_TEMPLATE constexpr Text(const String& string) noexcept
      : Text(std::string_view(string).data(), std::string_view(string).size()) {}
  FIRN_HIDDEN constexpr const char* data() const noexcept { return data_; }
  FIRN_HIDDEN constexpr std::size_t size() const noexcept { return static_cast<std::size_t>(size_); }
  FIRN_HIDDEN constexpr bool empty() const noexcept { return size_ == 0; }
  FIRN_HIDDEN constexpr const char* begin() const noexcept { return data_; }
  FIRN_HIDDEN constexpr const char* end() const noexcept { return data_ + size(); }
  FIRN_HIDDEN constexpr operator std::string_view() const noexcept { return {data_, size()}; }
  FIRN_HIDDEN friend constexpr bool operator==(Text lhs, Text rhs) noexcept {
    return std::string_view(lhs) == std::string_view(rhs);
  }
  FIRN_HIDDEN friend constexpr bool operator!=(Text lhs, Text rhs) noexcept { return !(lhs == rhs); }

private:
  const char* data_ = nullptr;
#if UINTPTR_MAX <= 0xffffffffu
  std::uint32_t unused_ = 0;
#endif
  std::uint64_t size_ = 0;
};
static_assert(sizeof(Text) == 16 && sizeof(firn_text) == 16, "objects count on it");

namespace detail {
// Blanks separate the pieces of a text and may surround a number.
FIRN_HIDDEN constexpr bool is_blank(char c) noexcept {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
} // namespace detail

} // namespace rt2
} // namespace firn
#endif

#endif
