// Thousands of random changes to valid text: parsing, printing and verifying end in a value or a message.
#include "compiler/graph/verify.h"
#include "tests/graph/text_files.h"

#include <random>

namespace firn {
namespace {

class Mutator {
public:
  Mutator(unsigned seed, const std::vector<TextFile>& files) : random_(seed), files_(files) {
    constexpr std::string_view others = "{}[]()<>,:;#%@=\"\\*+-./x \n";
    for (const TextFile& file : files) collect_tokens(file.text);
    for (char c : others) tokens_.emplace_back(1, c);
    for (const char* text : {"18446744073709551615", "-9223372036854775808", "99999999999999999999",
                             "4611686018427387904", "1099511627776", "2147483648", "-1", "0", "1e999", "nan",
                             "floordiv", "mod", "min(", "region", "<=", "[.]", "0x", "\x80\xff"})
      tokens_.emplace_back(text);
  }

  std::string mutate() {
    std::string text = files_[pick(files_.size())].text;
    for (size_t changes = 1 + pick(3); changes-- > 0 && !text.empty();) change(text);
    return text;
  }

private:
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }

  void collect_tokens(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
        ++end;
      if (end > at) tokens_.push_back(text.substr(at, end - at));
      at = std::max(end, at + 1);
    }
  }

  void change(std::string& text) {
    size_t at = pick(text.size());
    switch (pick(10)) {
    case 0: text[at] = static_cast<char>(pick(256)); break;
    case 1: text.erase(at, 1 + pick(8)); break;
    case 2: text.insert(at, tokens_[pick(tokens_.size())]); break;
    case 3: replace_word(text, at, tokens_[pick(tokens_.size())]); break;
    case 4: text.resize(at); break;
    case 5: { // a stretch of one place copied to another
      std::string piece = text.substr(at, 1 + pick(60));
      text.insert(pick(text.size()), piece);
      break;
    }
    case 6: swap_lines(text); break;
    default: change_number(text, at); break;
    }
  }

  void replace_word(std::string& text, size_t at, const std::string& with) {
    auto in_word = [&](size_t i) {
      return std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_';
    };
    while (at < text.size() && !in_word(at)) ++at;
    size_t end = at;
    while (at > 0 && in_word(at - 1)) --at;
    while (end < text.size() && in_word(end)) ++end;
    text.replace(at, end - at, with);
  }

  // Puts another number in place of the next one: this is what gets furthest into parser and verifier.
  void change_number(std::string& text, size_t at) {
    constexpr std::string_view numbers[] = {"0",
                                            "1",
                                            "2",
                                            "3",
                                            "4",
                                            "-1",
                                            "7",
                                            "16",
                                            "1000000007",
                                            "2147483648",
                                            "1099511627776",
                                            "4611686018427387904",
                                            "-9223372036854775808"};
    auto is_digit = [&](size_t i) { return std::isdigit(static_cast<unsigned char>(text[i])) != 0; };
    while (at < text.size() && !is_digit(at)) ++at;
    size_t end = at;
    while (end < text.size() && is_digit(end)) ++end;
    text.replace(at, end - at, numbers[pick(std::size(numbers))]);
  }

  void swap_lines(std::string& text) {
    size_t first = text.find('\n', pick(text.size()));
    if (first == text.npos) return;
    size_t second = text.find('\n', first + 1);
    if (second == text.npos) return;
    std::string line = text.substr(first, second - first);
    text.erase(first, second - first);
    size_t to = text.find('\n', text.empty() ? 0 : pick(text.size()));
    text.insert(to == text.npos ? text.size() : to, line);
  }

  std::mt19937 random_;
  const std::vector<TextFile>& files_;
  std::vector<std::string> tokens_;
};

TEST_CASE("mutated text never crashes the parser, printer or verifier") {
  std::vector<TextFile> files = read_text_files();
  size_t parsed = 0, verified = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    Mutator mutator(seed, files);
    for (int i = 0; i < 1000; ++i) {
      std::string text = mutator.mutate();
      auto module = parse_module("m", text);
      if (!module) {
        REQUIRE_FALSE(module.error().message.empty());
        continue;
      }
      ++parsed;
      std::string printed = print_module(**module);
      if (!verify(**module)) continue;
      ++verified;
      auto again = parse_module("again", printed);
      if (!again) FAIL(again.error().message + "\n" + printed);
      REQUIRE(print_module(**again) == printed);
    }
  }
  // The test means nothing unless many mutants get past the parser, and many of those past the verifier.
  CHECK(parsed > 1000);
  CHECK(verified > 300);
}

} // namespace
} // namespace firn
