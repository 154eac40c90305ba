// Text with named slots, and the small formatting that generated files share.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace firn::artifact {

// Texts by the names of slots, without braces.
using Slots = std::map<std::string_view, std::string>;

// Replaces each {{NAME}} by its slot. A slot alone on its line whose text is empty takes the line with it;
// otherwise each further line of its text is indented as the slot is. A name without a slot is a failed
// check.
std::string expand_template(std::string_view text, const Slots& slots);

// "0x3f1c"
std::string hex_text(uint64_t value);
// "251,204"
std::string with_separators(int64_t value);
// "263.1 kB", "812 B", "1.5 MB": powers of 1000.
std::string human_bytes(int64_t bytes);
// "4.7 M", "1.2 G": a count with a decimal prefix, for FLOP.
std::string human_count(int64_t count);
// A C string literal with its quotes; every byte outside printable ASCII is an octal escape.
std::string c_string(std::string_view text);
// For a comment: bytes outside printable ASCII and backslashes become '?', "*/" and "/*" are taken apart.
std::string comment_text(std::string_view text);
// The last component of a path.
std::string_view base_name(std::string_view path);

} // namespace firn::artifact
