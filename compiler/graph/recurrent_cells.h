// The elementwise half of recurrent layers: what one step makes of its gates. The reference bodies of the
// composites and the kernels for whole sequences are both written with these, so that they agree.
#pragma once

#include "compiler/graph/composites.h"

#include <optional>

namespace firn {

enum class RecurrentKind : uint8_t { Lstm, Gru, Rnn };

// A recurrent composite, read back from its operands and attributes.
struct RecurrentLayer {
  RecurrentKind kind;
  RecurrentOperands operands; // values outside the composite
  RecurrentOptions options;
  int64_t hidden = 0;
  int gates = 1; // gates stacked in dim 0 of w and r
  int sums = 1;  // sums that enter the gates of a unit
  bool projected() const { return !operands.w; }
  const IntExpr& steps() const { return operands.x.type().dims[0].extent; }
  const IntExpr& batch() const { return operands.x.type().dims[1].extent; }
};
// Nothing if the instruction is no recurrent composite, or one whose operands are not what its attributes
// say.
std::optional<RecurrentLayer> read_recurrent(const Instruction& composite);

// One step's cells. Gates come before their activation, inputs and recurrent products added.
struct RecurrentCell {
  RecurrentCell(GraphBuilder& builder, RecurrentKind kind, const RecurrentOptions& options);

  struct LstmGates {
    Value i, o, f, c;
  };
  struct LstmState {
    Value h, c;
  };
  // `peepholes`: the weights for i, o and f, each [h]; or none.
  LstmState lstm(const LstmGates& gates, Value c, const std::vector<Value>& peepholes) const;
  // Activates the gate z or r.
  Value gru_gate(Value gate) const { return apply(0, gate, true); }
  // `candidate` is the sum of the input's part and the reset recurrent part.
  Value gru(Value z, Value candidate, Value h) const;
  Value rnn(Value gate) const { return apply(0, gate, true); }

private:
  // `bounded`: the clip threshold applies, as it does to gates and candidates.
  Value apply(size_t activation, Value x, bool bounded) const;
  Value op(Opcode opcode, Value lhs, Value rhs) const { return b_.binary(opcode, lhs, rhs); }

  GraphBuilder& b_;
  const RecurrentOptions& options_;
  std::vector<std::string> activations_;
};

} // namespace firn
