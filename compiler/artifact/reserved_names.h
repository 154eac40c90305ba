// Names that a generated header must not use, because C, C++, their libraries or Firn have them already.
#pragma once

#include <string_view>

namespace firn::artifact {

// Whether no namespace or class may be called so: keywords, macros of the headers of C, C++ and POSIX, the
// namespaces `std`, `std2`, `posix` and `firn`, and `main`.
bool is_reserved_class_word(std::string_view word);

// Whether no member may be called so: besides the words above, macros that only C or another system has,
// names in the style of macros (`SIZE_MAX`, `PRId64`: two capitals in front, or no lower-case letter among
// two letters and more) and those that start with `firn` in any case. With a '_' behind it no name is
// reserved.
bool is_reserved_name(std::string_view name);

// Whether C's libraries may declare names that start as those of functions with this prefix do: prefixes of
// one word (`index`, `time`), of a family (`pthread_...`, `firn_...`), or like a type (`size_t`). With
// "_model" behind it no prefix is reserved.
bool is_reserved_prefix(std::string_view prefix);

} // namespace firn::artifact
