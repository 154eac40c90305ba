// The cursor over text that the parsers share.
#include "compiler/support/text_scanner.h"

#include <cctype>
#include <cmath>
#include <cstdlib>

namespace firn {
namespace {

bool is_word_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$';
}
// A dash belongs to a word only between letters or digits, so that `a->b` and `x -1` read as expected.
bool dash_in_word(std::string_view text, size_t at) {
  return text[at] == '-' && at + 1 < text.size() && std::isalnum(static_cast<unsigned char>(text[at + 1]));
}
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

} // namespace

void TextScanner::skip_blanks() {
  while (at_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else {
      return;
    }
  }
}

bool TextScanner::at_end() {
  skip_blanks();
  return at_ == text_.size();
}

bool TextScanner::next_is(std::string_view token) {
  skip_blanks();
  if (text_.substr(at_, token.size()) != token) return false;
  size_t end = at_ + token.size();
  bool cut = end < text_.size() && is_word(token.back()) && (is_word(text_[end]) || dash_in_word(text_, end));
  return !cut;
}

bool TextScanner::accept(std::string_view token) {
  if (failed_ || !next_is(token)) return false;
  at_ += token.size();
  return true;
}

bool TextScanner::expect(std::string_view token) {
  return accept(token) || fail("expected '" + std::string(token) + "'");
}

std::string_view TextScanner::word() {
  skip_blanks();
  if (failed_ || at_ == text_.size() || !is_word_start(text_[at_])) return {};
  size_t start = at_++;
  while (at_ < text_.size() && (is_word(text_[at_]) || dash_in_word(text_, at_))) ++at_;
  return text_.substr(start, at_ - start);
}

std::string_view TextScanner::word_with(std::string_view extra) {
  skip_blanks();
  if (failed_) return {};
  size_t start = at_;
  while (at_ < text_.size() && (is_word(text_[at_]) || extra.find(text_[at_]) != extra.npos)) ++at_;
  return text_.substr(start, at_ - start);
}

bool TextScanner::integer(int64_t& value) {
  skip_blanks();
  size_t at = at_;
  bool negative = at < text_.size() && text_[at] == '-';
  if (negative) ++at;
  if (failed_ || at == text_.size() || !std::isdigit(static_cast<unsigned char>(text_[at]))) return false;
  unsigned __int128 magnitude = 0;
  while (at < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at]))) {
    magnitude = magnitude * 10 + static_cast<unsigned>(text_[at++] - '0');
    if (magnitude > (static_cast<unsigned __int128>(1) << 64)) return fail("integer out of range");
  }
  // Unsigned 64-bit values keep their bits.
  if (negative && magnitude > (static_cast<unsigned __int128>(1) << 63)) return fail("integer out of range");
  if (magnitude > UINT64_MAX) return fail("integer out of range");
  auto bits = static_cast<uint64_t>(magnitude);
  value = static_cast<int64_t>(negative ? 0 - bits : bits);
  at_ = at;
  return true;
}

bool TextScanner::number(double& value) {
  skip_blanks();
  if (failed_ || at_ == text_.size()) return false;
  for (auto [token, meaning] :
       {std::pair<std::string_view, double>{"inf", INFINITY}, {"-inf", -INFINITY}, {"nan", NAN}})
    if (accept(token)) {
      value = meaning;
      return true;
    }
  size_t end = at_;
  while (end < text_.size() && (is_word(text_[end]) || ((text_[end] == '-' || text_[end] == '+') &&
                                                        (end == at_ || std::tolower(text_[end - 1]) == 'e' ||
                                                         std::tolower(text_[end - 1]) == 'p'))))
    ++end;
  std::string digits(text_.substr(at_, end - at_));
  if (digits.empty() || is_word_start(digits[0])) return false;
  char* stop = nullptr;
  value = std::strtod(digits.c_str(), &stop);
  if (stop == digits.c_str()) return false;
  at_ += static_cast<size_t>(stop - digits.c_str());
  return true;
}

bool TextScanner::quoted(std::string& value) {
  skip_blanks();
  if (failed_ || at_ == text_.size() || text_[at_] != '"') return false;
  value.clear();
  for (size_t at = at_ + 1; at < text_.size(); ++at) {
    char c = text_[at];
    if (c == '"') {
      at_ = at + 1;
      return true;
    }
    if (c == '\n') break;
    if (c != '\\') {
      value += c;
      continue;
    }
    if (++at == text_.size()) break;
    if (text_[at] == 'n') {
      value += '\n';
    } else if (text_[at] == 'x') {
      int high = at + 1 < text_.size() ? hex_digit(text_[at + 1]) : -1;
      int low = at + 2 < text_.size() ? hex_digit(text_[at + 2]) : -1;
      if (high < 0 || low < 0) return fail("broken \\x escape in a string");
      value += static_cast<char>(high * 16 + low);
      at += 2;
    } else if (text_[at] == '"' || text_[at] == '\\') {
      value += text_[at];
    } else {
      return fail("unknown escape in a string");
    }
  }
  return fail("string without end");
}

bool TextScanner::fail(const std::string& message) {
  if (!failed_) {
    failed_ = true;
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_; ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n';
    }
    message_ = name_ + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + message;
  }
  return false;
}

Diagnostic TextScanner::error() const {
  return model_error(message_);
}

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (byte < 32 || byte == 127) {
      quoted += "\\x";
      quoted += "0123456789abcdef"[byte >> 4];
      quoted += "0123456789abcdef"[byte & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string word_or_quoted(std::string_view text) {
  bool plain = !text.empty() && is_word_start(text[0]);
  for (char c : text) plain &= is_word(c);
  return plain ? std::string(text) : quote(text);
}

} // namespace firn
