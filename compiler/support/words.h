// Words of text: lists apart by a character, and names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace firn {

// The parts between separators: one more than there are of these, so that nothing has one, which is empty.
std::vector<std::string> split(std::string_view list, char separator);

// Whether C takes it as a name, be it reserved.
bool is_c_identifier(std::string_view text);

} // namespace firn
