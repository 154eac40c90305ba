// The known words that someone who wrote another one may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace firn {

// "'a', 'b' or 'c'": the words of `known` that take the fewest insertions, deletions, replacements and swaps
// of neighbours to become `word`, upper and lower case being the same; where `word` is the beginning of some,
// those. At most three, in the order of `known`. Empty if the best take more than a third of the letters.
std::string nearest_words(std::string_view word, const std::vector<std::string>& known);

} // namespace firn
