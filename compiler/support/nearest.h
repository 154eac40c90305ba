// The known word that someone who wrote another one may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace firn {

// The word of `known` that takes the fewest insertions, deletions, replacements and swaps of neighbours to
// become `word`, upper and lower case being the same; empty if the best takes more than a third of the
// letters. Of equally near ones the first.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

} // namespace firn
