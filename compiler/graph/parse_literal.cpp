// Constants from text. Floats are decimal, or 0x and the element's bits where decimals do not say them (NaN
// payloads).
#include "compiler/graph/parse_literal.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace firn {
namespace {

constexpr size_t kMaxElementsInPlace = 1 << 16;

// One element as text: a string's content, "(" real " " imaginary for complex, else a word.
std::string scan_element(TextScanner& scanner) {
  std::string text;
  if (scanner.quoted(text)) return text;
  if (!scanner.accept("(")) {
    text = scanner.word_with("+-");
    if (text.empty()) scanner.fail("expected an element");
    return text;
  }
  text = "(" + std::string(scanner.word_with("+-")) + " ";
  scanner.expect(",");
  text += scanner.word_with("+-");
  scanner.expect(")");
  return text;
}

template <class T> bool read_all(std::string_view text, T& value, int base) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

template <class T> bool read_float(std::string_view text, T& value) {
  if (text == "nan" || text == "inf" || text == "-inf") {
    value = static_cast<T>(text == "nan" ? NAN : text == "inf" ? INFINITY : -INFINITY);
    return true;
  }
  if (text.find_first_of("ni") != text.npos) return false; // other spellings of nan and infinity
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Writes `bytes` bytes of an element at byte offset `at` from "0x...".
bool set_bits(Literal& literal, size_t at, size_t bytes, std::string_view text) {
  uint64_t bits = 0;
  if (!read_all(text.substr(2), bits, 16) || (bytes < 8 && bits >> (8 * bytes) != 0)) return false;
  std::memcpy(literal.mutable_bytes().data() + at, &bits, bytes);
  return true;
}

bool set_integer(Literal& literal, int64_t i, std::string_view text) {
  int bits = bit_width(literal.dtype());
  if (is_signed(literal.dtype())) {
    int64_t value = 0, limit = bits == 64 ? INT64_MAX : (int64_t(1) << (bits - 1)) - 1;
    if (!read_all(text, value, 10) || value > limit || value < -limit - 1) return false;
    literal.set_int(i, value);
    return true;
  }
  uint64_t value = 0;
  if (!read_all(text, value, 10) || (bits < 64 && value >> bits != 0)) return false;
  literal.set_int(i, static_cast<int64_t>(value));
  return true;
}

// A part of a complex number, or an element of F32 or F64: T is how it is stored.
template <class T> bool set_stored(Literal& literal, size_t index, std::string_view text) {
  if (text.starts_with("0x")) return set_bits(literal, index * sizeof(T), sizeof(T), text);
  return read_float(text, literal.mutable_data<T>()[index]);
}

bool set_float(Literal& literal, int64_t i, std::string_view text) {
  auto index = static_cast<size_t>(i);
  if (literal.dtype() == DType::F64) return set_stored<double>(literal, index, text);
  if (literal.dtype() == DType::F32) return set_stored<float>(literal, index, text);
  if (text.starts_with("0x")) {
    auto bytes = static_cast<size_t>(bit_width(literal.dtype())) / 8;
    return bytes > 0 && set_bits(literal, index * bytes, bytes, text);
  }
  double value = 0;
  if (!read_float(text, value)) return false;
  literal.set_double(i, value);
  return true;
}

bool set_complex(Literal& literal, int64_t i, std::string_view text) {
  size_t split = text.find(' ');
  if (!text.starts_with("(") || split == text.npos) return false;
  std::string_view real = text.substr(1, split - 1), imaginary = text.substr(split + 1);
  auto at = static_cast<size_t>(2 * i);
  if (literal.dtype() == DType::C128)
    return set_stored<double>(literal, at, real) && set_stored<double>(literal, at + 1, imaginary);
  return set_stored<float>(literal, at, real) && set_stored<float>(literal, at + 1, imaginary);
}

bool set_element(Literal& literal, int64_t i, std::string_view text) {
  if (literal.dtype() == DType::Bool) {
    literal.set_int(i, text == "true");
    return text == "true" || text == "false";
  }
  if (is_integer(literal.dtype())) return set_integer(literal, i, text);
  return is_complex(literal.dtype()) ? set_complex(literal, i, text) : set_float(literal, i, text);
}

} // namespace

LiteralText parse_literal_text(TextScanner& scanner) {
  LiteralText text;
  if (scanner.accept("<")) {
    if (!scanner.next_is("#") && !scanner.quoted(text.name)) text.name = scanner.word_with("");
    scanner.expect("#");
    text.hash = scanner.word_with("");
    if (text.hash.empty()) scanner.fail("expected a literal's hash");
    scanner.expect(">");
    return text;
  }
  text.in_place = true;
  scanner.expect("[");
  if (scanner.failed() || scanner.accept("]")) return text;
  do {
    text.elements.push_back(scan_element(scanner));
    if (text.elements.size() > kMaxElementsInPlace) scanner.fail("too many elements in place");
  } while (!scanner.failed() && scanner.accept(","));
  scanner.expect("]");
  return text;
}

LiteralRef make_literal(TextScanner& scanner, const LiteralText& text, const Type& type,
                        const LiteralTable& literals) {
  auto refuse = [&](const std::string& what) {
    scanner.fail(what);
    return LiteralRef();
  };
  if (!type.is_static()) return refuse("constant of type " + type.to_string() + ", wants static dims");
  std::vector<int64_t> dims = type.static_dims();
  if (!text.in_place) {
    auto found = literals.find(text.hash);
    if (found == literals.end()) return Literal::opaque(type.dtype, dims, text.hash);
    if (found->second->dtype() == type.dtype && found->second->dims() == dims) return found->second;
    return refuse("literal " + text.hash + " is " + found->second->type().to_string() + ", its constant " +
                  type.to_string());
  }
  if (type.num_elements() != static_cast<int64_t>(text.elements.size()))
    return refuse("constant has " + std::to_string(text.elements.size()) + " elements, its type wants " +
                  std::to_string(type.num_elements()));
  if (type.dtype == DType::String) return Literal::strings(dims, text.elements);
  auto literal = std::make_shared<Literal>(type.dtype, dims);
  for (size_t i = 0; i < text.elements.size(); ++i)
    if (!set_element(*literal, static_cast<int64_t>(i), text.elements[i]))
      return refuse("element '" + text.elements[i] + "' is no " + std::string(dtype_name(type.dtype)));
  return literal;
}

} // namespace firn
