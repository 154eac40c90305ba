// Words of text: lists apart by a character, and names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace firn {

// The parts between separators: one more than there are separators, so that an empty list has one empty part.
std::vector<std::string> split(std::string_view list, char separator);

// Whether the text has the form of a C name; reserved words have it.
bool is_c_identifier(std::string_view text);

} // namespace firn
