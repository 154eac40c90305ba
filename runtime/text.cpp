// Compares, looks up, matches and joins strings. Linked if the model does one of these.
#include "firn/text.h"

#include <cstring>

namespace {

// Less than, equal to or greater than 0, like std::memcmp's result; a prefix is less than the whole.
int order(const char* lhs, std::uint64_t lhs_size, const char* rhs, std::uint64_t rhs_size) noexcept {
  const std::uint64_t shared = lhs_size < rhs_size ? lhs_size : rhs_size;
  const int found = shared == 0 ? 0 : std::memcmp(lhs, rhs, static_cast<std::size_t>(shared));
  if (found != 0) return found;
  return lhs_size < rhs_size ? -1 : lhs_size > rhs_size ? 1 : 0;
}

firn_text text_of(const char* data, std::uint64_t size) noexcept {
  firn_text text{};
  text.data = data;
  text.size = size;
  return text;
}

} // namespace

extern "C" {

void firn_rt2_text_constants(const std::uint32_t* places, const char* bytes, firn_text* out,
                             std::size_t count) FIRN_NOEXCEPT {
  for (std::size_t i = 0; i < count; ++i) out[i] = text_of(bytes + places[2 * i], places[2 * i + 1]);
}

void firn_rt2_text_compare(const firn_text* lhs, const firn_text* rhs, unsigned char* out, std::size_t count,
                           std::size_t wanted) FIRN_NOEXCEPT {
  const bool equality = (wanted == 2 || wanted == 5); // sizes that differ decide
  for (std::size_t i = 0; i < count; ++i) {
    const bool decided = equality && lhs[i].size != rhs[i].size;
    const int found = decided ? 1 : order(lhs[i].data, lhs[i].size, rhs[i].data, rhs[i].size);
    out[i] = static_cast<unsigned char>(wanted >> (found < 0 ? 0 : found == 0 ? 1 : 2) & 1);
  }
}

void firn_rt2_text_find(const firn_text* x, const std::uint32_t* places, const char* bytes,
                        const std::int64_t* positions, std::int64_t* out, std::size_t count,
                        std::size_t keys) FIRN_NOEXCEPT {
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t first = 0, last = keys; // the range of keys that may be equal
    out[i] = -1;
    while (first < last) {
      const std::size_t middle = first + (last - first) / 2;
      const int found = order(x[i].data, x[i].size, bytes + places[2 * middle], places[2 * middle + 1]);
      if (found == 0) {
        out[i] = positions[middle];
        break;
      }
      if (found < 0)
        last = middle;
      else
        first = middle + 1;
    }
  }
}

void firn_rt2_text_match(const firn_text* x, const unsigned char* class_of, const std::uint16_t* next,
                         const unsigned char* accepts, unsigned char* out, std::size_t count,
                         std::size_t classes) FIRN_NOEXCEPT {
  for (std::size_t i = 0; i < count; ++i) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(x[i].data);
    std::size_t state = 1;
    for (std::uint64_t at = 0; at < x[i].size && state != 0; ++at)
      state = next[state * classes + class_of[bytes[at]]];
    out[i] = accepts[state];
  }
}

void firn_rt2_text_concatenate(const firn_text* lhs, const firn_text* rhs, firn_text* out,
                               firn_rt2_text_room* room, std::int32_t* status, std::size_t count,
                               std::size_t capacity) FIRN_NOEXCEPT {
  for (std::size_t i = 0; i < count; ++i) {
    const firn_text first = lhs[i], second = rhs[i];
    const std::uint64_t left = capacity - room->used;
    if (first.size > left || second.size > left - first.size) {
      *status = FIRN_STATUS_OUT_OF_RANGE | 2 << 8;
      return;
    }
    char* const to = room->bytes + room->used;
    if (first.size != 0) std::memcpy(to, first.data, static_cast<std::size_t>(first.size));
    if (second.size != 0) std::memcpy(to + first.size, second.data, static_cast<std::size_t>(second.size));
    room->used += first.size + second.size;
    out[i] = text_of(to, first.size + second.size);
  }
}
}
