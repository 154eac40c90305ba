// Parsing of types and integer expressions, shared by the parser's parts.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/support/text_scanner.h"

namespace firn {

// Each reads one thing at the scanner or records an error there and gives something harmless. Symbols are
// looked up in `module`.
Type parse_type(TextScanner& scanner, const Module& module, int depth = 0);
IntExpr parse_int_expr(TextScanner& scanner, const Module& module, int depth = 0);
Window parse_window(TextScanner& scanner);

} // namespace firn
