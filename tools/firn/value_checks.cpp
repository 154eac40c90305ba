// Checks of values. Each gives an empty text, or what is wrong with the word.
#include "tools/firn/value_checks.h"

#include "compiler/driver/compile_text.h"
#include "compiler/support/nearest.h"

#include <cmath>
#include <cstdlib>

namespace firn::tool {
namespace {

std::string shown(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

} // namespace

CLI::Validator one_of(std::vector<std::string> words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  auto check = [words, list](const std::string& word) -> std::string {
    for (const std::string& known : words)
      if (word == known) return "";
    std::string nearest = nearest_words(word, words);
    return "'" + word + "' is none of " + list + (nearest.empty() ? "" : "; did you mean " + nearest + "?");
  };
  return CLI::Validator(check, "");
}

CLI::Validator number_between(double min, double max, bool above) {
  auto check = [=](const std::string& word) -> std::string {
    char* end = nullptr;
    double value = std::strtod(word.c_str(), &end);
    bool is_number = end != word.c_str() && *end == 0 && std::isfinite(value);
    if (is_number && (above ? value > min : value >= min) && value <= max) return "";
    return "'" + word + "' is no number " + (above ? "above " : "from ") + shown(min) + " to " + shown(max);
  };
  return CLI::Validator(check, "");
}

CLI::Validator whole_between(long long min, long long max) {
  auto check = [=](const std::string& word) -> std::string {
    char* end = nullptr;
    errno = 0;
    long long value = std::strtoll(word.c_str(), &end, 10);
    if (end != word.c_str() && *end == 0 && errno == 0 && value >= min && value <= max) return "";
    return "'" + word + "' is no whole number from " + std::to_string(min) + " to " + std::to_string(max);
  };
  return CLI::Validator(check, "");
}

CLI::Validator not_empty() {
  return CLI::Validator([](const std::string& word) { return word.empty() ? "the value is empty" : ""; }, "");
}

Result read_size(const char* option, const std::string& text, std::optional<int64_t>& bytes) {
  if (text.empty()) return {};
  bytes = driver::parse_size(text);
  if (bytes) return {};
  return usage_error(std::string(option) + ": '" + text + "' is no size such as 20000, 64K, 1.5M or 1G");
}

} // namespace firn::tool
