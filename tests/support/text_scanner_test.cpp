// The parsers' cursor: which text it takes as a word, number or string, and where it says an error is.
#include "compiler/support/text_scanner.h"

#include <catch2/catch.hpp>

#include <cmath>

namespace firn {
namespace {

TextScanner scan(std::string_view text) {
  return TextScanner("file.hlo", text);
}

TEST_CASE("blanks and comments are skipped") {
  auto s = scan("  // a comment\n\tadd // another\n");
  CHECK(s.word() == "add");
  CHECK(s.at_end());
}

TEST_CASE("a word token is taken whole only") {
  auto s = scan("return_value return");
  CHECK_FALSE(s.accept("return"));
  CHECK(s.word() == "return_value");
  CHECK(s.accept("return"));
}

TEST_CASE("words hold dots, dashes and dollars but no arrows") {
  auto s = scan("x86-64-v3 a->b a.b$c 3x3 bf01_oi01->bf01");
  CHECK(s.word() == "x86-64-v3");
  CHECK(s.word() == "a");
  CHECK(s.accept("->"));
  CHECK(s.word() == "b");
  CHECK(s.word() == "a.b$c");
  CHECK(s.word().empty());
  CHECK(s.word_with("") == "3x3");
  CHECK(s.word_with("->") == "bf01_oi01->bf01");
}

TEST_CASE("integers cover the signed and unsigned 64-bit range") {
  auto s = scan("-9223372036854775808 9223372036854775807 18446744073709551615 -1");
  int64_t value = 0;
  CHECK((s.integer(value) && value == INT64_MIN));
  CHECK((s.integer(value) && value == INT64_MAX));
  CHECK((s.integer(value) && value == -1));
  CHECK((s.integer(value) && value == -1));
  for (const char* text :
       {"18446744073709551616", "-9223372036854775809", "99999999999999999999999999999999999999999999"}) {
    auto broken = scan(text);
    CHECK_FALSE(broken.integer(value));
    CHECK(broken.failed());
  }
}

TEST_CASE("numbers are decimal, hexadecimal, infinite or nan") {
  auto s = scan("1.5 -2e-3 0x1.8p+1 inf -inf nan 7");
  double value = 0;
  CHECK((s.number(value) && value == 1.5));
  CHECK((s.number(value) && value == -2e-3));
  CHECK((s.number(value) && value == 3.0));
  CHECK((s.number(value) && value == INFINITY));
  CHECK((s.number(value) && value == -INFINITY));
  CHECK((s.number(value) && std::isnan(value)));
  CHECK((s.number(value) && value == 7));
  CHECK_FALSE(s.number(value));
}

TEST_CASE("quoted strings round-trip any bytes") {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  std::string text = quote(all) + quote("");
  auto s = scan(text);
  std::string value;
  CHECK((s.quoted(value) && value == all));
  CHECK((s.quoted(value) && value.empty()));
  CHECK(s.at_end());
}

TEST_CASE("broken strings are errors") {
  std::string value;
  for (const char* text : {"\"open", "\"line\n\"", "\"\\q\"", "\"\\x4\"", "\"\\"}) {
    auto s = scan(text);
    CHECK_FALSE(s.quoted(value));
    CHECK(s.failed());
  }
}

TEST_CASE("the first error names line and column and stops everything after it") {
  auto s = scan("a\n  b c");
  CHECK(s.word() == "a");
  CHECK(s.accept("b"));
  CHECK_FALSE(s.expect("d"));
  s.fail("later");
  CHECK(s.error().message == "file.hlo:2:5: expected 'd'");
  CHECK_FALSE(s.accept("c"));
  CHECK(s.word().empty());
}

} // namespace
} // namespace firn
