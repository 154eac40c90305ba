// A PTX module as it is written: variables, functions, instructions with their operands. Names of registers,
// variables and labels are resolved; what an instruction means is left to the decoder.
#pragma once

#include "compiler/ptx/types.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace firn::ptx {

// A variable of any space but registers, or a parameter.
struct Variable {
  std::string name; // unique within its function: names of inner scopes carry a number
  Space space = Space::Global;
  Type type = Type::B8;
  int64_t align = 1;           // bytes
  int64_t size = 0;            // bytes; 0: the size is given at the launch (`extern .shared x[]`)
  bool is_external = false;    // declared only
  std::vector<uint8_t> values; // initial bytes, `size` or fewer; the rest is zero
  // Places among the values that hold the address of another variable.
  struct Address {
    int64_t at;
    std::string name;
    int64_t offset;
    bool is_generic;
  };
  std::vector<Address> addresses;
  int line = 0;
};

struct Operand {
  enum class Kind {
    Register, // `index`
    Integer,  // `value`
    Float32,  // `value`: the bits
    Float64,
    Symbol,  // `name` + `value`: a variable, function, label or special register
    Vector,  // `elements`
    Address, // `elements[0]` (Register, Symbol, or none) + `value` bytes
    Pair,    // `elements[0]`|`elements[1]`: two results
    Group,   // `elements` in round brackets: arguments of a call
    Sink     // "_": a result that nothing reads
  };
  Kind kind = Kind::Sink;
  bool is_negated = false; // a predicate with '!'
  int index = 0;
  int64_t value = 0;
  std::string name;
  std::vector<Operand> elements;
};

struct Instruction {
  int line = 0;
  std::string opcode;             // "setp"
  std::vector<std::string> words; // "lt", "s32"
  std::vector<Operand> operands;
  int guard = -1; // the predicate register that lets it happen
  bool guard_is_negated = false;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_defined = false;
  int line = 0;
  std::vector<Variable> parameters;
  std::vector<Variable> results;
  std::vector<Type> registers;
  std::vector<Variable> variables; // shared, local, param, const and global variables of its body
  std::vector<Instruction> body;
  // Labels stand before the instruction of that index.
  std::vector<std::pair<std::string, int>> labels;
  std::array<int64_t, 3> max_threads{0, 0, 0};      // .maxntid; zeros: unknown
  std::array<int64_t, 3> required_threads{0, 0, 0}; // .reqntid
};

struct Unit {
  std::string target; // "sm_80"
  std::vector<Variable> variables;
  std::vector<Function> functions;
};

} // namespace firn::ptx
