// Parsing of constants: elements in place, or the name and hash of a literal in a side file.
#pragma once

#include "compiler/graph/hlo_text.h"
#include "compiler/support/text_scanner.h"

namespace firn {

// A constant's text, read before the type that says what its elements mean.
struct LiteralText {
  bool in_place = false;
  std::vector<std::string> elements; // in_place
  std::string name, hash;            // otherwise; the name is the initializer's and may be empty
};

// Reads `[...]` or `<name #hash>`, or records an error.
LiteralText parse_literal_text(TextScanner& scanner);
// The literal that `text` is under `type`, or null and an error at the scanner.
LiteralRef make_literal(TextScanner& scanner, const LiteralText& text, const Type& type,
                        const LiteralTable& literals);

} // namespace firn
