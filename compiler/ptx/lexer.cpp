// Tokens of PTX: comments are left out, numbers are read in all their forms.
#include "compiler/ptx/lexer.h"

#include <bit>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>

namespace firn::ptx {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool begins_word(char c) {
  return is_letter(c) || c == '$' || c == '%';
}
bool continues_word(char c) {
  return is_letter(c) || is_digit(c) || c == '$';
}

class Lexer {
public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Expected<std::vector<Token>> run() {
    while (skip_blanks()) {
      Token token;
      token.line = line_;
      if (!read(token))
        return error_at(line_, "no token of PTX begins with '" + std::string(1, text_[at_]) + "'");
      tokens_.push_back(token);
    }
    if (open_comment_) return error_at(line_, "a comment has no end");
    tokens_.push_back({Token::Kind::End, "", 0, line_});
    return std::move(tokens_);
  }

private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  // True if a token follows.
  bool skip_blanks() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '\n') ++line_;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '/' && peek(1) == '*') {
        size_t end = text_.find("*/", at_ + 2);
        open_comment_ = end == std::string_view::npos;
        if (open_comment_) return false;
        for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n';
      } else {
        return true;
      }
    }
    return false;
  }

  bool read(Token& token) {
    char c = text_[at_];
    if (begins_word(c)) return read_word(token, Token::Kind::Word);
    if (c == '.' && is_letter(peek(1))) return read_word(token, Token::Kind::Directive);
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return read_number(token);
    if (c == '"') return read_string(token);
    if (std::string_view("{}()[],;@!|+-=<>:*").find(c) == std::string_view::npos) return false;
    token.kind = Token::Kind::Sign;
    token.text = text_.substr(at_++, 1);
    return true;
  }

  // Dots and double colons belong to a word if a letter or digit follows: "shared::cta", "%tid.x". Directives
  // may follow each other without a blank (".reg.b32").
  bool read_word(Token& token, Token::Kind kind) {
    size_t begin = at_++;
    while (at_ < text_.size()) {
      if (continues_word(peek()) || (kind == Token::Kind::Word && peek() == '.' && continues_word(peek(1))))
        ++at_;
      else if (peek() == ':' && peek(1) == ':' && is_letter(peek(2)))
        at_ += 2;
      else
        break;
    }
    token.kind = kind;
    token.text = text_.substr(begin, at_ - begin);
    return true;
  }

  bool read_string(Token& token) {
    size_t end = text_.find('"', at_ + 1);
    if (end == std::string_view::npos) return false;
    token.kind = Token::Kind::String;
    token.text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }

  bool read_number(Token& token) {
    size_t begin = at_;
    while (is_letter(peek()) || is_digit(peek()) || peek() == '.' ||
           ((peek() == '+' || peek() == '-') && is_exponent(begin)))
      ++at_;
    token.text = text_.substr(begin, at_ - begin);
    bool known = value_of(token);
    if (!known) at_ = begin;
    return known;
  }

  // True after the e of a decimal float: "1.5e-3" holds its sign, "0x1e-3" does not.
  bool is_exponent(size_t begin) const {
    std::string_view read = text_.substr(begin, at_ - begin);
    return !read.empty() && (read.back() == 'e' || read.back() == 'E') &&
           read.find('.') != std::string_view::npos;
  }

  static bool value_of(Token& token) {
    std::string_view text = token.text;
    char mark = text.size() > 1 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : ' ';
    if ((mark == 'f' && text.size() == 10) || (mark == 'd' && text.size() == 18)) {
      token.kind = mark == 'f' ? Token::Kind::Float32 : Token::Kind::Float64;
      return parse(text.substr(2), 16, token.value);
    }
    if (text.find('.') != std::string_view::npos) {
      token.kind = Token::Kind::Float64;
      std::string copy(text);
      char* end = nullptr;
      token.value = std::bit_cast<uint64_t>(std::strtod(copy.c_str(), &end));
      return *end == '\0';
    }
    token.kind = Token::Kind::Integer;
    if (text.back() == 'U' || text.back() == 'u') text.remove_suffix(1);
    if (mark == 'x') return parse(text.substr(2), 16, token.value);
    if (mark == 'b') return parse(text.substr(2), 2, token.value);
    return text[0] == '0' && text.size() > 1 ? parse(text, 8, token.value) : parse(text, 10, token.value);
  }

  static bool parse(std::string_view digits, int base, uint64_t& value) {
    auto [end, error] = std::from_chars(digits.begin(), digits.end(), value, base);
    return error == std::errc() && end == digits.end();
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool open_comment_ = false;
  std::vector<Token> tokens_;
};

} // namespace

Expected<std::vector<Token>> tokenize(std::string_view text) {
  return Lexer(text).run();
}

Diagnostic error_at(int line, const std::string& message) {
  return model_error("line " + std::to_string(line) + ": " + message);
}

Diagnostic unsupported_at(int line, const std::string& message) {
  return unsupported_error("line " + std::to_string(line) + ": " + message);
}

} // namespace firn::ptx
