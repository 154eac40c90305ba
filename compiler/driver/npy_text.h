// Strings in .npy files: of one length, filled with zeros, as characters of 4 bytes ("<U5") or as bytes
// ("|S5").
#pragma once

#include "compiler/graph/literal.h"

namespace firn::driver {

// Bytes of one element by the descriptor of a file with its quotes: 20 for "'<U5'". Nothing if it is no
// descriptor of strings.
std::optional<size_t> npy_text_bytes(std::string_view descriptor);
// The elements as UTF-8, zeros at their ends removed; null if a character is none of Unicode's. `data` has
// npy_text_bytes() for each element of `dims`.
LiteralRef read_npy_text(std::string_view descriptor, std::vector<int64_t> dims, std::string_view data);
// A descriptor, without quotes, and the elements.
struct NpyText {
  std::string descriptor, data;
};
// Writes characters if all strings are UTF-8, else bytes. A string that ends with a zero is a usage error,
// as the zero would be lost.
Expected<NpyText> write_npy_text(const Literal& literal);

} // namespace firn::driver
