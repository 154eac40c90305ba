// Cuts the text of a PTX module into tokens.
#pragma once

#include "compiler/ptx/syntax.h"
#include "compiler/support/diagnostic.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace firn::ptx {

struct Token {
  enum class Kind {
    Word,      // names, opcodes with their modifiers ("add.s32", "%r1", "$L__BB0_1")
    Directive, // begins with a dot (".reg")
    Integer,   // `value`
    Float32,   // `value` holds the bits
    Float64,
    String, // `text` is without quotes
    Sign,   // one character
    End
  };
  Kind kind = Kind::End;
  std::string_view text; // part of the module's text
  uint64_t value = 0;
  int line = 0; // from 1
};

// All tokens and one End; an error names the line and the character that no token begins with.
Expected<std::vector<Token>> tokenize(std::string_view text);

// A diagnostic about a line of the module.
Diagnostic error_at(int line, const std::string& message);
Diagnostic unsupported_at(int line, const std::string& message);

} // namespace firn::ptx
