// Text in upper or lower case, as objects make it.
#pragma once

#include <string>
#include <string_view>

namespace firn {

// Every letter by Unicode's simple mapping; bytes that are no characters stay.
std::string in_case(std::string_view text, bool upper);

} // namespace firn
