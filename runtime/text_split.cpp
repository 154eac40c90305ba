// Splits strings into pieces. Linked if the model splits strings.
#include "firn/text.h"

#include <cstring>

namespace {

// Takes pieces of a text from its beginning. An empty text has one empty piece if there is a delimiter, and
// none if blanks divide it.
class Cutter {
public:
  Cutter(firn_text text, const char* delimiter, std::size_t delimiter_size) noexcept
      : at_(text.data), end_(text.data + text.size), delimiter_(delimiter), size_(delimiter_size),
        more_(delimiter_size != 0) {
    if (size_ == 0) skip_blanks();
  }
  bool more() const noexcept { return more_; }

  // The next piece; with `whole`, the rest of the text.
  firn_text next(bool whole) noexcept {
    const char* const stop = whole ? end_ : find();
    firn_text piece{};
    piece.data = at_;
    piece.size = static_cast<std::uint64_t>(stop - at_);
    more_ = stop != end_;
    at_ = more_ && size_ != 0 ? stop + size_ : stop;
    if (size_ == 0) skip_blanks();
    return piece;
  }

private:
  void skip_blanks() noexcept {
    while (at_ != end_ && firn::detail::is_blank(*at_)) ++at_;
    more_ = at_ != end_;
  }
  // The start of the next delimiter, or the end.
  const char* find() const noexcept {
    const char* at = at_;
    if (size_ == 0) {
      while (at != end_ && !firn::detail::is_blank(*at)) ++at;
      return at;
    }
    for (; static_cast<std::size_t>(end_ - at) >= size_; ++at)
      if (std::memcmp(at, delimiter_, size_) == 0) return at;
    return end_;
  }

  const char *at_, *end_;
  const char* delimiter_;
  std::size_t size_;
  bool more_;
};

} // namespace

extern "C" {

void firn_rt2_text_split(const firn_text* x, const char* delimiter, firn_text* pieces, std::int64_t* counts,
                         std::int32_t* status, std::size_t count, std::size_t delimiter_size,
                         std::size_t splits, std::size_t most) FIRN_NOEXCEPT {
  for (std::size_t i = 0; i < count; ++i) {
    firn_text* const row = pieces + i * most;
    std::size_t found = 0;
    for (Cutter cutter(x[i], delimiter, delimiter_size); cutter.more(); ++found) {
      if (found == most) {
        *status = FIRN_STATUS_OUT_OF_RANGE | 3 << 8;
        return;
      }
      row[found] = cutter.next(found == splits);
    }
    counts[i] = static_cast<std::int64_t>(found);
    for (; found < most; ++found) row[found] = firn_text{};
  }
}
}
