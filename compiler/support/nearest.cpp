// Distances between words by dynamic programming over two prefixes.
#include "compiler/support/nearest.h"

#include <algorithm>
#include <cctype>

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

} // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t longest = 100; // what is longer was not mistyped
  if (word.size() > longest) return "";
  std::string nearest;
  size_t least = 0;
  for (const std::string& candidate : known) {
    if (candidate.size() > longest) continue;
    size_t edits = distance(word, candidate);
    if (3 * edits > std::max(word.size(), candidate.size())) continue;
    if (nearest.empty() || edits < least) nearest = candidate, least = edits;
  }
  return nearest;
}

} // namespace firn
