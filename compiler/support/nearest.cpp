// Distances between words by dynamic programming over two prefixes.
#include "compiler/support/nearest.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

namespace firn {
namespace {

bool same(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Edits that make `from` into `to`; no letter is edited twice.
size_t distance(std::string_view from, std::string_view to) {
  std::vector<size_t> before_last(to.size() + 1), last(to.size() + 1), row(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      size_t replaced = last[j - 1] + (same(from[i - 1], to[j - 1]) ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      bool swapped = i > 1 && j > 1 && same(from[i - 1], to[j - 2]) && same(from[i - 2], to[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[to.size()];
}

constexpr size_t kLongest = 100; // longer words were not mistyped
constexpr size_t kMinBeginning = 3;
constexpr size_t kMaxWords = 3;

// The edits between a word and a candidate; nothing if they are not near.
std::optional<size_t> edits_between(std::string_view word, std::string_view candidate) {
  if (word.size() >= kMinBeginning && candidate.starts_with(word)) return 0;
  if (candidate.size() > kLongest) return std::nullopt;
  size_t edits = distance(word, candidate);
  if (3 * edits > std::max(word.size(), candidate.size())) return std::nullopt;
  return edits;
}

} // namespace

std::string nearest_words(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() > kLongest) return "";
  std::vector<std::string> nearest;
  size_t min = SIZE_MAX;
  for (const std::string& candidate : known) {
    auto edits = edits_between(word, candidate);
    if (!edits || *edits > min) continue;
    if (*edits < min) nearest.clear();
    min = *edits;
    nearest.push_back(candidate);
  }
  nearest.resize(std::min(nearest.size(), kMaxWords));
  std::string text;
  for (size_t i = 0; i < nearest.size(); ++i)
    text += (i == 0 ? "'" : i + 1 == nearest.size() ? " or '" : ", '") + nearest[i] + "'";
  return text;
}

} // namespace firn
