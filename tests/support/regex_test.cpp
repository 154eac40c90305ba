// Patterns: what they match straight from their steps and as tables, which must agree, and what is refused.
#include "compiler/support/letter_case.h"
#include "compiler/support/regex.h"

#include <catch2/catch.hpp>

#include <random>

using namespace firn;

namespace {

bool walks_to_match(const RegexTable& table, std::string_view text) {
  size_t state = 1, classes = static_cast<size_t>(table.classes);
  for (char c : text) state = table.next[state * classes + table.class_of[static_cast<unsigned char>(c)]];
  return table.accepts[state] != 0;
}

struct Pattern {
  std::string text;
  std::vector<std::string> matching, other;
};

RegexTable table_of(const Regex& regex) {
  auto table = make_regex_table(regex);
  REQUIRE(table);
  return *table;
}

// Texts over pieces that patterns care for, some of them no UTF-8.
std::string random_text(std::mt19937& random) {
  static const char* const pieces[] = {
      "a",    "b", "c", "x", "foo",      "bar", "\n",  " ",   ".",    "-",    "_", "1", "K", "s",
      "\xff", "é", "ü", "€", "\xf0\x9f", "😀",   "abb", "com", "mail", "\x80", "S", "k", "@", "\xc3"};
  std::string text;
  for (size_t i = random() % 7; i > 0; --i) text += pieces[random() % std::size(pieces)];
  return text;
}

} // namespace

TEST_CASE("patterns match whole texts", "[support]") {
  const std::vector<Pattern> patterns = {
      {"", {""}, {"a", std::string(1, '\0')}},
      {"a*", {"", "a", "aaaa"}, {"b", "ab"}},
      {"(a|b)*abb", {"abb", "babaabb"}, {"ab", "abba"}},
      {"a{2,3}b?", {"aa", "aaab"}, {"a", "aaaa"}},
      {"a{2,}|x{3}", {"aa", "aaaaaa", "xxx"}, {"a", "xx"}},
      {"a{,2}", {"a{,2}"}, {"aa"}},
      {".", {"a", "é", "😀"}, {"", "\n", "ab", "\xc3", "\xff"}},
      {"(?s).", {"\n"}, {"\xed"}},
      {"[^a-c]+", {"xyz", "é\n"}, {"xa", ""}},
      {"[]a]+[^]a]", {"]a]b"}, {"b", "]"}},
      {"[\\d.\\-]+", {"1.2-3"}, {"a"}},
      {"[[:alpha:]_]\\D\\d{2}", {"a-42", "_x00"}, {"1-42", "a142"}},
      {"\\x41\\x{e9}\\t", {"Aé\t"}, {"A\xe9\t"}},
      {"[à-ü]+", {"éü"}, {"e", "\xc3"}},
      {"\\Qa.b*\\E+", {"a.b*", "a.b***"}, {"aXb*"}},
      {"(?i)hello\\s+World", {"HELLO \t wORLD"}, {"helloworld"}},
      {"(?i:k)s", {"Ks", "\u212as"}, {"KS"}},
      {"(?P<n>a)(?:b)(?i)C|c", {"abc", "abC", "C"}, {"ab"}},
      {"\\bfoo\\b.*\\bbar\\b", {"foo bar", "foo-x-bar"}, {"foobar", "foo xbar"}},
      {"a\\Bb", {"ab"}, {"a b"}},
      {"^a$", {"a"}, {"a\n"}},
      {"(?m)^x$\n^y$", {"x\ny"}, {"xy"}},
      {"a$b", {}, {"ab"}},
      {"(a*)(b|^)c", {"c", "aabc"}, {"ac"}},
      {"((((a*)*)*)*)*", {"", "aa"}, {"b"}},
      {"(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)",
       {"account@gmail.com", "@yahoo.com!"},
       {"a@hotmail.com"}},
  };
  for (const Pattern& pattern : patterns) {
    INFO(pattern.text);
    auto regex = parse_regex(pattern.text);
    REQUIRE(regex);
    RegexTable table = table_of(*regex);
    for (bool wanted : {true, false})
      for (const std::string& text : wanted ? pattern.matching : pattern.other) {
        INFO(text);
        CHECK(matches(*regex, text) == wanted);
        CHECK(walks_to_match(table, text) == wanted);
      }
  }
}

TEST_CASE("tables match what the steps of patterns do", "[support]") {
  std::mt19937 random(7);
  for (const char* pattern : {"(a|aa)*b$", "\\Bx\\B", "(?i)[k-s]+", "[^\\x00-\\x{7f}]+", "(\\b\\w+\\b ?)+",
                              "(?m)(^a|b$|\n)*", ".*(foo|bar).{2,5}", "[^€]*", "\\S*é\\S*", "(?s)(.\\b)*"}) {
    INFO(pattern);
    auto regex = parse_regex(pattern);
    REQUIRE(regex);
    RegexTable table = table_of(*regex);
    for (int i = 0; i < 3000; ++i) {
      std::string text = random_text(random);
      if (matches(*regex, text) != walks_to_match(table, text)) FAIL(text);
    }
  }
}

TEST_CASE("patterns that are wrong, not supported or too large", "[support]") {
  auto refuses = [](const std::string& pattern, Fault fault, const std::string& part) {
    INFO(pattern);
    auto regex = parse_regex(pattern);
    if (regex) {
      auto table = make_regex_table(*regex);
      REQUIRE_FALSE(table);
      CHECK(table.error().fault == fault);
      CHECK(table.error().message.find(part) != std::string::npos);
      return;
    }
    CHECK(regex.error().fault == fault);
    CHECK(regex.error().message.find(part) != std::string::npos);
  };
  refuses("(a", Fault::Model, "at byte 2: a group without an end");
  refuses("a)", Fault::Model, "unexpected ')'");
  refuses("[a", Fault::Model, "a class without an end");
  refuses("[b-a]", Fault::Model, "a range");
  refuses("[[:letter:]]", Fault::Model, "no class of characters");
  refuses("*a", Fault::Model, "nothing to repeat");
  refuses("a**", Fault::Model, "two operators");
  refuses("a{1001}", Fault::Model, "up to 1000");
  refuses("a{3,2}", Fault::Model, "rising numbers");
  refuses("\\", Fault::Model, "'\\' at the end");
  refuses("\\x{110000}", Fault::Model, "too large");
  refuses("\xff", Fault::Model, "no UTF-8");
  refuses("\\pL", Fault::Unsupported, "'\\p' is not supported");
  refuses("(a)\\1", Fault::Unsupported, "'\\1'");
  refuses("(?=a)", Fault::Unsupported, "'(?='");
  refuses("(?<=a)", Fault::Unsupported, "looks behind");
  refuses("(?i)é", Fault::Unsupported, "beyond ASCII");
  refuses("(((x{100}){100}){100})", Fault::Unsupported, "steps");
  refuses("(((){1000}){1000}){1000}", Fault::Unsupported, "steps");
  refuses(std::string(300, '(') + std::string(300, ')'), Fault::Model, "nested too deeply");
  refuses("[ab]*a[ab]{20}", Fault::Unsupported, "too many states");
}

TEST_CASE("letters in another case", "[support]") {
  CHECK(in_case("Wörld ÀÉ ΑΩ ЖЩ 1", false) == "wörld àé αω жщ 1");
  CHECK(in_case("straße ÿ ž ы", true) == "STRAßE Ÿ Ž Ы");
  CHECK(in_case(std::string("a\0b\xff\xc3z", 6), true) == std::string("A\0B\xff\xc3Z", 6));
  CHECK(in_case("Ⱥ", false) == "ⱥ"); // takes one byte more
}
