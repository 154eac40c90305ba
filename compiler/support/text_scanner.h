// A cursor over text for the parsers of `.hlo` and `.kir` files: skips blanks and `//` comments, reads words,
// numbers and quoted strings, and turns a position into line and column for messages.
#pragma once

#include "compiler/support/diagnostic.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace firn {

class TextScanner {
public:
  TextScanner(std::string name, std::string_view text) : name_(std::move(name)), text_(text) {}

  bool at_end();
  // Consumes `token` (punctuation or a whole word) if it is next.
  bool accept(std::string_view token);
  // Looks without consuming.
  bool next_is(std::string_view token);
  // Consumes `token` or records "expected 'token'".
  bool expect(std::string_view token);
  // A word of letters, digits, '_', '.', '-' or '$' that starts with a letter, '_' or '$'; empty if none is
  // next.
  std::string_view word();
  // Like word(), but may start with a digit and holds any of `extra` too (for dims such as `3x3` or
  // `bf01_oi01->bf01`).
  std::string_view word_with(std::string_view extra);
  bool integer(int64_t& value);
  // A decimal or hexadecimal float, `inf`, `-inf` or `nan`.
  bool number(double& value);
  // A double-quoted string with \" \\ \n \xHH escapes.
  bool quoted(std::string& value);

  // Records the first error at the current position; later ones are dropped. Always returns false.
  bool fail(const std::string& message);
  bool failed() const { return failed_; }
  // The recorded error as "name:line:column: message".
  Diagnostic error() const;

private:
  void skip_blanks();
  std::string name_;
  std::string_view text_;
  size_t at_ = 0;
  bool failed_ = false;
  std::string message_;
};

// `text` in double quotes with the escapes that TextScanner::quoted reads.
std::string quote(std::string_view text);
// `text` as it is when TextScanner::word reads all of it and no '-' is in it, else quoted.
std::string word_or_quoted(std::string_view text);

} // namespace firn
