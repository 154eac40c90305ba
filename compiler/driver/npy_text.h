// Strings in .npy files: of one length, filled with zeros, as characters of 4 bytes ("<U5") or as bytes
// ("|S5").
#pragma once

#include "compiler/graph/literal.h"

namespace firn::driver {

// Bytes of one element by the descriptor of a file; nothing if it is none of strings.
std::optional<size_t> npy_text_bytes(std::string_view descriptor);
// Elements as UTF-8, or null if there are other characters than Unicode's.
LiteralRef read_npy_text(std::string_view descriptor, std::vector<int64_t> dims, std::string_view data);
// The descriptor and the elements: characters where all strings are UTF-8, else bytes. Zeros at the end of a
// string would be lost and are an error.
struct NpyText {
  std::string descriptor, data;
};
Expected<NpyText> write_npy_text(const Literal& literal);

} // namespace firn::driver
