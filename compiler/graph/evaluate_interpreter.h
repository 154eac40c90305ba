// The interpreter: values of one function's activation, the symbols of its dims, and what is dead after which
// instruction. Internal to evaluate*.cpp.
#pragma once

#include "compiler/graph/evaluate_call.h"
#include "compiler/support/bind_symbols.h"

#include <unordered_map>

namespace firn::evaluation {

// Binds what the actual dims of function inputs decide, and checks the rest: dtype, rank, extents, bounds of
// symbols. A diagnostic names the input.
Result bind_inputs(const Function& function, const Values& arguments, SymbolTable& symbols);

struct Limits {
  size_t max_literal_bytes = size_t{1} << 34;
  // Work that may be done, in instructions or calls of a scalar region; negative: any amount.
  double max_steps = -1;
  // Calls, loops, branches and random numbers are allowed.
  bool control = true;
};

class Interpreter {
public:
  Interpreter(Limits limits, int depth = 0) : limits_(limits), depth_(depth) {}

  Expected<Values> run_function(const Function& function, Values arguments);
  Expected<Values> run_region(const Region& region, Values arguments);
  Expected<Values> run_instruction(const Instruction& instruction, const Values& operands);

  const Limits& limits() const { return limits_; }
  const SymbolTable& symbols() const { return symbols_; }
  // Counts `steps` against the limit; false when it is exceeded.
  bool spend(double steps);

private:
  // An instruction and the definitions that nothing uses after it.
  struct Step {
    const Instruction* instruction;
    std::vector<const Instruction*> dead;
  };
  const std::vector<Step>& plan(const Region& region);
  Result bind_parameters(const Region& region, Values arguments);
  Result step(const Instruction& instruction);
  Result check_operands(const OpCall& call) const;
  Result check_results(const Instruction& instruction, const Values& results);
  Result check_dims(const Type& type, const Literal& literal, const std::string& label);
  Expected<Values> dispatch(const OpCall& call);
  Expected<Values> evaluate_if(const OpCall& call);
  Expected<Values> evaluate_while(const OpCall& call);
  Expected<Values> evaluate_call(const OpCall& call);

  Limits limits_;
  int depth_;
  double steps_ = 0;
  SymbolTable symbols_;
  std::unordered_map<const Instruction*, Values> values_;
  std::unordered_map<const Region*, std::vector<Step>> plans_;
};

std::string instruction_label(const Instruction& instruction);

} // namespace firn::evaluation
