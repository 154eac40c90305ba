// Reads tokens one by one for the parser. The first error ends the text: all that is read later is End.
#pragma once

#include "compiler/ptx/lexer.h"

#include <optional>
#include <string>

namespace firn::ptx {

class TokenStream {
public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  Token next() {
    Token token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool is(std::string_view text, size_t ahead = 0) const {
    return peek(ahead).text == text && peek(ahead).kind != Token::Kind::String;
  }
  bool take(std::string_view text) {
    bool found = is(text);
    if (found) next();
    return found;
  }
  void expect(std::string_view text) {
    if (!take(text)) fail_here("'" + std::string(text) + "'");
  }
  std::string expect_word(const char* wanted) {
    if (peek().kind != Token::Kind::Word) fail_here(wanted);
    return std::string(next().text);
  }
  int64_t expect_integer(const char* wanted) {
    bool negative = take("-");
    if (peek().kind != Token::Kind::Integer) fail_here(wanted);
    int64_t value = static_cast<int64_t>(next().value);
    return negative ? static_cast<int64_t>(0 - static_cast<uint64_t>(value)) : value;
  }
  void skip_line() {
    int line = peek().line;
    while (ok() && peek().kind != Token::Kind::End && peek().line == line) next();
  }

  bool ok() const { return !error_; }
  const Diagnostic& error() const { return *error_; }
  void fail(Diagnostic diagnostic) {
    if (error_) return;
    error_ = std::move(diagnostic);
    tokens_ = {Token{Token::Kind::End, "", 0, peek().line}};
    at_ = 0;
  }
  void fail_here(const std::string& wanted) {
    std::string found =
        peek().kind == Token::Kind::End ? "the end of the text" : "'" + std::string(peek().text) + "'";
    fail(error_at(peek().line, "found " + found + ", wanted " + wanted));
  }

private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::optional<Diagnostic> error_;
};

} // namespace firn::ptx
