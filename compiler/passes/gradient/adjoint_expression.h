// Expressions of adjoints.def: arithmetic over the operands of an elementwise op, its result y and the
// cotangent dy.
//
//   expression = sum [(== | != | <= | >= | < | >) sum]
//   sum        = product {(+ | -) product}        product = factor {(* | /) factor}
//   factor     = -factor | number | name | mnemonic(expression, ...) | (expression)
#pragma once

#include "compiler/graph/builder.h"

#include <map>
#include <string>
#include <string_view>

namespace firn::gradient {

// Writes the expression. Numbers become constants of the type of `like`. What is no expression is a failed
// check: the text is Firn's own.
Value emit_expression(GraphBuilder& builder, std::string_view text,
                      const std::map<std::string, Value, std::less<>>& names, Value like);

} // namespace firn::gradient
