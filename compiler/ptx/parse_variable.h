// Reads declarations of variables and parameters.
#pragma once

#include "compiler/ptx/syntax.h"
#include "compiler/ptx/token_stream.h"

namespace firn::ptx {

// The space that a directive names (".shared").
std::optional<Space> space_named(std::string_view directive);

// A type with its dot (".u32"); fails at anything else.
Type parse_type(TokenStream& tokens);

// Reads what follows the word of a space: ".align 4 .b8 name[16] = {...}", without the semicolon.
Variable parse_variable(TokenStream& tokens, Space space);

} // namespace firn::ptx
