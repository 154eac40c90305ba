// How constants follow from others: kept where these may be others when the program runs, so that the program
// that prepares weights computes what the compiler folded.
#pragma once

#include "compiler/graph/builder.h"

#include <functional>

namespace firn {

// Result number `result` of the module's one function, whose parameters stand for `operands`.
struct Derivation {
  std::shared_ptr<const Module> module;
  int result = 0;
  std::vector<LiteralRef> operands;
  std::vector<std::string> names; // names of the operands in the model
};

// Whether programs can compute the type's tensors from others, which they cannot of strings, complex numbers
// and elements that share a byte.
bool is_derivable(const Type& type);

// Derivations of the results of an instruction whose operands are constants, iotas or broadcasts of such.
// Nothing where no operand may change, or a program could not do it.
std::vector<std::shared_ptr<const Derivation>> derivations_of(const Instruction& instruction);

// `values`, which the compiler has computed from the constant `source` by other means than the evaluator: its
// derivation, if the source may change, is what `compute` builds. What cannot be derived fixes the source.
using ComputeValue = std::function<Value(GraphBuilder& builder, Value source)>;
LiteralRef derived_from(const Instruction& source, const LiteralRef& values, const ComputeValue& compute);

} // namespace firn
