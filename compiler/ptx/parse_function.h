// Reads functions: parameters, limits of launches, bodies.
#pragma once

#include "compiler/ptx/syntax.h"
#include "compiler/ptx/token_stream.h"

namespace firn::ptx {

// Reads what follows ".entry" or ".func", with the body if there is one.
Function parse_function(TokenStream& tokens, bool is_entry);

} // namespace firn::ptx
