// Writes which dim is refused, its value and its condition, into the caller's memory, as there may be no
// other.
#include "firn/abi.h"

#include <cstddef>

namespace {

// Appends to a buffer, and counts the bytes that a large enough buffer would hold.
class Text {
public:
  Text(char* to, std::size_t size) noexcept : to_(to), size_(size) {}

  Text& operator<<(const char* text) noexcept {
    for (; *text; ++text) put(*text);
    return *this;
  }
  Text& operator<<(std::ptrdiff_t value) noexcept {
    char digits[24];
    std::size_t count = 0;
    // Negation is unsigned, since the smallest number has no positive counterpart.
    std::size_t rest =
        value < 0 ? std::size_t{0} - static_cast<std::size_t>(value) : static_cast<std::size_t>(value);
    do digits[count++] = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (value < 0) put('-');
    while (count > 0) put(digits[--count]);
    return *this;
  }
  std::size_t end() noexcept {
    if (size_ > 0) to_[length_ < size_ ? length_ : size_ - 1] = 0;
    return length_;
  }

private:
  void put(char c) noexcept {
    if (length_ + 1 < size_) to_[length_] = c;
    ++length_;
  }
  char* to_;
  std::size_t size_, length_ = 0;
};

void add_wanted(Text& text, const firn_rt2_dim& dim) noexcept {
  if (dim.allowed_count > 0) {
    for (std::size_t i = 0; i < dim.allowed_count; ++i)
      text << (i == 0 ? "" : i + 1 == dim.allowed_count ? " or " : ", ") << dim.allowed[i];
    return;
  }
  if (dim.multiple > 1) text << "a multiple of " << dim.multiple << " from ";
  text << dim.lower << " to " << dim.upper;
}

} // namespace

extern "C" std::size_t firn_rt2_refusal(const firn_rt2_dim* dims, std::size_t count,
                                        const std::ptrdiff_t* values, char* to,
                                        std::size_t size) FIRN_NOEXCEPT {
  Text text(to, size);
  for (std::size_t i = 0; i < count; ++i) {
    if (firn_rt2_allows(&dims[i], values[i])) continue;
    text << dims[i].name << " is " << values[i] << ", wants ";
    add_wanted(text, dims[i]);
    break;
  }
  return text.end();
}
