// The text form of the graph IR (`.hlo`): printing, and parsing back to the identical module. An instruction
// is
//   %name = mnemonic %a, %b#1 {attribute = value} region(%p: f32[]) { ... return %x } : type loc("nodes")
// with `%r:2 = ... : (type, type)` for several results, used as %r#0. Names that are no words are quoted:
// %"a b". A function has a body, or is declared to be a gradient:
//   func @f(%x: f32[2]) -> (f32[]) [by @rule] { ... }
//   func @g = gradient @f [from result] wrt parameters [keeping results] [seedable]
// Parameters are named or numbered, results numbered. A module's head says which states are its parameters
// (Module::parameters): parameters ["w", "b"]. tests/graph/text holds an example of everything.
#pragma once

#include "compiler/graph/module.h"

#include <map>

namespace firn {

// Literals with up to this many elements print in place; larger ones as <name #hash> and go to the side file.
inline constexpr int64_t kInlineLiteralElements = 16;

std::string print_module(const Module& module);
std::string print_instruction(const Instruction& instruction); // one line, for messages

// Literals by hash, as a side file holds them.
using LiteralTable = std::map<std::string, LiteralRef>;
// Write and read the bytes of a side file: every literal of the module that does not print in place.
std::string write_literals(const Module& module);
Expected<LiteralTable> read_literals(std::shared_ptr<const MappedFile> file);

// Parses what print_module writes. `file` names the text in messages. Literals that `literals` lacks become
// opaque. The result is not verified.
Expected<std::unique_ptr<Module>> parse_module(std::string file, std::string_view text,
                                               const LiteralTable& literals = {});

} // namespace firn
