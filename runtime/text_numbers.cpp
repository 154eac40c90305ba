// Reads numbers from strings and writes them, correctly rounded by integers of many words. Linked if the
// model casts between the two.
#include "firn/text.h"

#include <cstring>

namespace {

constexpr int kMostDigits = 800; // a number halfway between two doubles has at most 767 digits

// An integer of up to 6720 bits: 801 digits times 2^3900, or a mantissa times 10^340.
class Integer {
public:
  explicit Integer(std::uint64_t value) noexcept {
    words_[0] = static_cast<std::uint32_t>(value);
    words_[1] = static_cast<std::uint32_t>(value >> 32);
    size_ = words_[1] != 0 ? 2 : words_[0] != 0 ? 1 : 0;
  }

  void multiply_add(std::uint32_t factor, std::uint32_t term) noexcept {
    std::uint64_t carry = term;
    for (int i = 0; i < size_; ++i) {
      carry += static_cast<std::uint64_t>(words_[i]) * factor;
      words_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) words_[size_++] = static_cast<std::uint32_t>(carry);
  }

  // Divides, and tells whether there is a remainder.
  bool divide(std::uint32_t divisor) noexcept {
    std::uint64_t rest = 0;
    for (int i = size_; i-- > 0;) {
      rest = rest << 32 | words_[i];
      words_[i] = static_cast<std::uint32_t>(rest / divisor);
      rest %= divisor;
    }
    while (size_ > 0 && words_[size_ - 1] == 0) --size_;
    return rest != 0;
  }

  // Multiplies by 10^power, or divides by 10^-power; tells whether there is a remainder.
  bool scale(int power) noexcept {
    bool rest = false;
    for (; power > 0; power -= power < 9 ? power : 9) multiply_add(power_of_ten(power), 0);
    for (; power<0; power += power> - 9 ? -power : 9) rest |= divide(power_of_ten(-power));
    return rest;
  }

  void shift_up(int bits) noexcept {
    const int words = bits / 32, rest = bits % 32;
    std::memmove(words_ + words, words_, sizeof words_[0] * static_cast<std::size_t>(size_));
    for (int i = 0; i < words; ++i) words_[i] = 0;
    size_ = size_ == 0 ? 0 : size_ + words;
    if (rest != 0) multiply_add(std::uint32_t{1} << rest, 0);
  }

  int bits() const noexcept {
    int bits = 32 * size_;
    for (std::uint32_t mask = 0x80000000u; size_ > 0 && (words_[size_ - 1] & mask) == 0; mask >>= 1) --bits;
    return bits;
  }
  bool bit(int number) const noexcept {
    return number >= 0 && number < 32 * size_ && (words_[number / 32] >> number % 32 & 1) != 0;
  }
  bool any_below(int number) const noexcept {
    for (int i = 0; i < number && i < 32 * size_; ++i)
      if (bit(i)) return true;
    return false;
  }
  // The 64 bits from bit `number` on.
  std::uint64_t from(int number) const noexcept {
    std::uint64_t value = 0;
    for (int i = 0; i < 64; ++i) value |= static_cast<std::uint64_t>(bit(number + i)) << i;
    return value;
  }

private:
  static std::uint32_t power_of_ten(int power) noexcept {
    std::uint32_t value = 10;
    for (int i = 1; i < (power < 9 ? power : 9); ++i) value *= 10;
    return value;
  }

  int size_;
  std::uint32_t words_[210] = {};
};

// A number in decimal digits: 0.d1d2d3... * 10^point.
struct Decimal {
  enum Kind { None, Finite, Infinite, NotANumber } kind;
  bool negative, is_cut; // is_cut: digits that are not zero follow
  int count, point;
  unsigned char digits[kMostDigits];
};

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

bool is_word(const char* at, const char* end, const char* word) noexcept {
  for (; at != end && *word != 0; ++at, ++word)
    if ((*at | 0x20) != *word) return false;
  return at == end && *word == 0;
}

void add_digit(Decimal& number, char c) noexcept {
  if (c == '0' && number.count == 0) return;
  if (number.count < kMostDigits)
    number.digits[number.count++] = static_cast<unsigned char>(c - '0');
  else
    number.is_cut |= c != '0';
}

// Reads digits and at most one point; returns their end, or null if there is no digit.
const char* read_digits(const char* at, const char* end, Decimal& number) noexcept {
  constexpr int kFar = 1 << 20; // places beyond which a number is 0 or infinite
  bool any = false, behind = false;
  for (; at != end && (is_digit(*at) || (*at == '.' && !behind)); ++at) {
    if (*at == '.') {
      behind = true;
      continue;
    }
    any = true;
    add_digit(number, *at);
    if (!behind && number.count > 0 && number.point < kFar) ++number.point;
    if (behind && number.count == 0 && number.point > -kFar) --number.point;
  }
  return any ? at : nullptr;
}

void read_number(const firn_text& text, Decimal& number) noexcept {
  const char *at = text.data, *end = text.data + text.size;
  number.kind = Decimal::None;
  number.negative = number.is_cut = false;
  number.count = number.point = 0;
  while (at != end && firn::detail::is_blank(*at)) ++at;
  while (at != end && firn::detail::is_blank(end[-1])) --end;
  if (at != end && (*at == '+' || *at == '-')) number.negative = *at++ == '-';
  if (is_word(at, end, "inf") || is_word(at, end, "infinity")) {
    number.kind = Decimal::Infinite;
  } else if (is_word(at, end, "nan")) {
    number.kind = Decimal::NotANumber;
  } else if ((at = read_digits(at, end, number)) != nullptr) {
    int power = 0;
    if (at != end && (*at == 'e' || *at == 'E')) {
      ++at;
      const bool negative = at != end && *at == '-';
      if (at != end && (*at == '+' || *at == '-')) ++at;
      if (at == end) return;
      for (; at != end && is_digit(*at); ++at)
        if (power < 1 << 24) power = power * 10 + (*at - '0');
      if (negative) power = -power;
    }
    if (at != end) return;
    number.point += power;
    number.kind = Decimal::Finite;
  }
}

// A format of floats.
struct Format {
  int digits, lowest; // bits of a mantissa; the power of two of the smallest number
  std::uint64_t infinity;
};
constexpr Format kSingle = {24, -149, 0x7f800000u}, kDouble = {53, -1074, 0x7ff0000000000000u};

// The bits of the format's nearest number, without its sign; ties go to the even one.
std::uint64_t nearest(const Decimal& number, const Format& format) noexcept {
  if (number.count == 0 || number.point < -330) return 0;
  if (number.point > 310) return format.infinity;
  Integer value(0);
  for (int i = 0; i < number.count; ++i) value.multiply_add(10, number.digits[i]);
  int power = number.point - number.count, below = 0; // the value has `below` bits behind its point
  if (number.is_cut) {
    value.multiply_add(10, 1);
    --power;
  }
  if (power < 0) {
    // The quotient keeps 64 bits and more.
    below = 64 - power * 10 / 3;
    value.shift_up(below);
  }
  const bool rest = value.scale(power);
  const int highest = value.bits() - format.digits - below; // the power of two of a mantissa's last bit
  const int unit = highest < format.lowest ? format.lowest : highest, dropped = unit + below;
  std::uint64_t mantissa;
  if (dropped > 0) {
    const bool half = value.bit(dropped - 1), more = rest || value.any_below(dropped - 1);
    mantissa = value.from(dropped);
    if (half && (more || (mantissa & 1) != 0)) ++mantissa;
  } else {
    mantissa = value.from(0) << -dropped;
  }
  const auto hidden = std::uint64_t{1} << (format.digits - 1);
  if (mantissa < hidden) return mantissa;
  // A mantissa that was rounded up to twice the hidden bit raises the exponent.
  const std::uint64_t bits =
      (static_cast<std::uint64_t>(unit - format.lowest + 1) << (format.digits - 1)) + (mantissa - hidden);
  return bits < format.infinity ? bits : format.infinity;
}

// Rounds a number towards zero; false if it needs more than 64 bits.
bool whole(const Decimal& number, std::uint64_t& value) noexcept {
  value = 0;
  if (number.count == 0) return true;
  if (number.point > 20) return false;
  for (int i = 0; i < number.point; ++i) {
    const unsigned digit = i < number.count ? number.digits[i] : 0;
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  if (!number.negative) return true;
  if (value > std::uint64_t{1} << 63) return false;
  value = 0 - value;
  return true;
}

// The room for the digits of a number, sign and exponent included.
constexpr int kLongest = 25;

int write_word(const char* word, char* to) noexcept {
  int size = 0;
  for (; word[size] != 0; ++size) to[size] = word[size];
  return size;
}

int write_integer(std::uint64_t value, char* to) noexcept {
  char digits[kLongest];
  int count = 0, size = 0;
  do digits[count++] = static_cast<char>('0' + value % 10);
  while ((value /= 10) != 0);
  while (count > 0) to[size++] = digits[--count];
  return size;
}

// A positive value mantissa * 2^power as `places` decimal digits, rounded to nearest; the first stands for
// 10^exponent. `is_below`: they are less than the value.
std::uint64_t leading_digits(std::uint64_t mantissa, int power, int places, int& exponent,
                             bool& is_below) noexcept {
  std::uint64_t limit = 1;
  for (int i = 0; i < places; ++i) limit *= 10;
  exponent = (Integer(mantissa).bits() - 1 + power) * 1233 / 4096; // may be off by one
  for (;;) {
    // The value is twice the digits, so that its last bit is a half.
    Integer value(mantissa);
    bool rest = false;
    const int tens = places - 1 - exponent, twos = power + 1;
    if (tens > 0) rest |= value.scale(tens);
    if (twos > 0) value.shift_up(twos);
    if (tens < 0) rest |= value.scale(tens);
    const int dropped = twos < 0 ? -twos : 0;
    rest |= value.any_below(dropped);
    const std::uint64_t twice = value.bits() - dropped > 62 ? 2 * limit : value.from(dropped);
    if (twice >= 2 * limit) {
      ++exponent;
    } else if (twice < 2 * limit / 10) {
      --exponent;
    } else {
      std::uint64_t digits = twice / 2;
      const bool up = (twice & 1) != 0 && (rest || (digits & 1) != 0);
      is_below = !up && (rest || (twice & 1) != 0);
      digits += up;
      if (digits < limit) return digits;
      ++exponent;
      return digits / 10;
    }
  }
}

// Whether the digits, the first of which stands for 10^exponent, are read as the number.
bool reads_as(std::uint64_t digits, int exponent, std::uint64_t bits, const Format& format) noexcept {
  Decimal number{};
  char text[kLongest];
  const int size = write_integer(digits, text);
  for (int i = 0; i < size; ++i) add_digit(number, text[i]);
  number.point = exponent + 1;
  return nearest(number, format) == bits;
}

// The digits of the shortest decimal that is read as the number, without zeros at its end.
std::uint64_t shortest_digits(std::uint64_t bits, const Format& format, int& exponent) noexcept {
  const auto hidden = std::uint64_t{1} << (format.digits - 1);
  const auto field = static_cast<int>(bits >> (format.digits - 1));
  const std::uint64_t mantissa = field == 0 ? bits : (bits & (hidden - 1)) | hidden;
  const int power = format.lowest + (field == 0 ? 0 : field - 1);
  std::uint64_t digits = 0;
  for (int places = 1; places <= 17; ++places) {
    bool is_below = false;
    digits = leading_digits(mantissa, power, places, exponent, is_below);
    if (reads_as(digits, exponent, bits, format)) break;
    // Above a power of two numbers are twice as far apart as below.
    if (is_below && reads_as(digits + 1, exponent, bits, format)) {
      ++digits;
      break;
    }
  }
  while (digits % 10 == 0) digits /= 10;
  return digits;
}

// Writes a number like numpy: 0.1, 1.0, 1e-05, nan.
int write_real(std::uint64_t bits, const Format& format, char* to) noexcept {
  const std::uint64_t sign = ((format.infinity >> (format.digits - 1)) + 1) << (format.digits - 1);
  int size = 0;
  if ((bits & (sign - 1)) > format.infinity) return write_word("nan", to);
  if ((bits & sign) != 0) to[size++] = '-';
  bits &= sign - 1;
  if (bits == format.infinity) return size + write_word("inf", to + size);
  if (bits == 0) return size + write_word("0.0", to + size);
  int exponent;
  char digits[kLongest];
  const int count = write_integer(shortest_digits(bits, format, exponent), digits);
  const bool plain = exponent >= -4 && exponent < 16;
  const int before = !plain ? 1 : exponent < 0 ? 0 : exponent + 1; // digits before the point
  if (before == 0) to[size++] = '0';
  for (int i = 0; i < before; ++i) to[size++] = i < count ? digits[i] : '0';
  if (plain || count > before) to[size++] = '.';
  for (int i = exponent + 1; plain && i < 0; ++i) to[size++] = '0';
  for (int i = before; i < count; ++i) to[size++] = digits[i];
  if (plain && count <= before) to[size++] = '0';
  if (plain) return size;
  to[size++] = 'e';
  to[size++] = exponent < 0 ? '-' : '+';
  if (exponent < 0) exponent = -exponent;
  if (exponent < 10) to[size++] = '0';
  return size + write_integer(static_cast<std::uint64_t>(exponent), to + size);
}

// Appends a text to the room; false if it does not fit.
bool add_text(const char* bytes, int size, firn_text* out, firn_rt2_text_room* room, std::int32_t* status,
              std::size_t capacity) noexcept {
  const auto needed = static_cast<std::uint64_t>(size);
  if (needed > capacity - room->used) {
    *status = FIRN_STATUS_OUT_OF_RANGE | 2 << 8;
    return false;
  }
  *out = firn_text{};
  out->data = room->bytes + room->used;
  out->size = needed;
  std::memcpy(room->bytes + room->used, bytes, static_cast<std::size_t>(size));
  room->used += needed;
  return true;
}

constexpr std::int32_t kNoNumber = FIRN_STATUS_OUT_OF_RANGE | 4 << 8;

} // namespace

extern "C" {

void firn_rt2_text_to_reals(const firn_text* x, void* out, std::int32_t* status, std::size_t count,
                            std::size_t bytes) FIRN_NOEXCEPT {
  const Format& format = bytes == 4 ? kSingle : kDouble;
  Decimal number;
  for (std::size_t i = 0; i < count; ++i) {
    read_number(x[i], number);
    std::uint64_t bits = number.kind == Decimal::Finite     ? nearest(number, format)
                         : number.kind == Decimal::Infinite ? format.infinity
                                                            : format.infinity | format.infinity >> 1;
    if (number.negative) bits |= std::uint64_t{1} << (8 * bytes - 1);
    if (number.kind == Decimal::None) *status = kNoNumber;
    const auto single = static_cast<std::uint32_t>(bits);
    auto* const to = static_cast<unsigned char*>(out) + i * bytes;
    bytes == 4 ? std::memcpy(to, &single, 4) : std::memcpy(to, &bits, 8);
  }
}

void firn_rt2_text_to_integers(const firn_text* x, std::int64_t* out, std::int32_t* status,
                               std::size_t count) FIRN_NOEXCEPT {
  Decimal number;
  for (std::size_t i = 0; i < count; ++i) {
    read_number(x[i], number);
    std::uint64_t value = 0;
    if (number.kind != Decimal::Finite || !whole(number, value)) *status = kNoNumber;
    out[i] = static_cast<std::int64_t>(value);
  }
}

void firn_rt2_text_of_reals(const void* x, firn_text* out, firn_rt2_text_room* room, std::int32_t* status,
                            std::size_t count, std::size_t capacity, std::size_t bytes) FIRN_NOEXCEPT {
  char text[kLongest];
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t single = 0;
    std::uint64_t bits = 0;
    const auto* const from = static_cast<const unsigned char*>(x) + i * bytes;
    bytes == 4 ? std::memcpy(&single, from, 4) : std::memcpy(&bits, from, 8);
    const int size = bytes == 4 ? write_real(single, kSingle, text) : write_real(bits, kDouble, text);
    if (!add_text(text, size, &out[i], room, status, capacity)) return;
  }
}

void firn_rt2_text_of_integers(const std::int64_t* x, firn_text* out, firn_rt2_text_room* room,
                               std::int32_t* status, std::size_t count, std::size_t capacity,
                               std::size_t is_signed) FIRN_NOEXCEPT {
  char bytes[kLongest];
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<std::uint64_t>(x[i]);
    const bool negative = is_signed != 0 && x[i] < 0;
    bytes[0] = '-';
    const int size = negative + write_integer(negative ? 0 - value : value, bytes + negative);
    if (!add_text(bytes, size, &out[i], room, status, capacity)) return;
  }
}
}
