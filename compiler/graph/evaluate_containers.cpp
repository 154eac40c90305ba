// Sequences and optionals. Positions count from the end when negative.
#include "compiler/graph/evaluate_call.h"

namespace firn::evaluation {

namespace {

RuntimeValue as_value(Type::Kind kind, std::vector<RuntimeValue> elements) {
  return {kind, std::move(elements)};
}

// The position operand in [0, limit), or limit itself if `end_allowed`.
Expected<size_t> position(const OpCall& call, const RuntimeValue& operand, size_t length, bool end_allowed) {
  if (operand.kind != Type::Kind::Tensor || operand.tensor->num_elements() != 1 ||
      !is_integer(operand.tensor->dtype()))
    return call.fail("the position must be an integer scalar");
  int64_t found = operand.tensor->get_int(0), limit = static_cast<int64_t>(length);
  int64_t index = found < 0 ? found + limit : found;
  if (index < 0 || index > limit || (index == limit && !end_allowed))
    return call.fail("position " + std::to_string(found) + " is out of range for a sequence of " +
                     std::to_string(limit));
  return static_cast<size_t>(index);
}

Expected<Values> sequence_op(const OpCall& call) {
  const RuntimeValue& sequence = call.value(0);
  if (sequence.kind != Type::Kind::Sequence) return call.fail("operand 0 is not a sequence");
  std::vector<RuntimeValue> elements = sequence.elements;
  if (call.opcode() == Opcode::SequenceLength)
    return one(Literal::of<int64_t>(DType::I64, {}, {static_cast<int64_t>(elements.size())}));
  bool insert = call.opcode() == Opcode::SequenceInsert;
  auto index = position(call, call.value(insert ? 2 : 1), elements.size(), insert);
  if (!index) return index.error();
  auto at = elements.begin() + static_cast<std::ptrdiff_t>(*index);
  if (call.opcode() == Opcode::SequenceAt) return Values{*at};
  if (insert) {
    int64_t bound = call.instruction().type().bound;
    if (bound > 0 && static_cast<int64_t>(elements.size()) >= bound)
      return call.fail("the sequence grows beyond its bound of " + std::to_string(bound));
    elements.insert(at, call.value(1));
  } else {
    elements.erase(at);
  }
  return Values{as_value(Type::Kind::Sequence, std::move(elements))};
}

} // namespace

Expected<Values> evaluate_container(const OpCall& call) {
  switch (call.opcode()) {
  case Opcode::SequenceMake:
  case Opcode::OptionalMake: {
    bool optional = call.opcode() == Opcode::OptionalMake;
    if (optional && call.num_operands() > 1) return call.fail("wants one operand or none");
    std::vector<RuntimeValue> elements;
    for (int i = 0; i < call.num_operands(); ++i) elements.push_back(call.value(i));
    return Values{as_value(optional ? Type::Kind::Optional : Type::Kind::Sequence, std::move(elements))};
  }
  case Opcode::OptionalHas: {
    bool has = call.value(0).kind != Type::Kind::Optional || !call.value(0).elements.empty();
    return one(Literal::of<int64_t>(DType::Bool, {}, {has}));
  }
  case Opcode::OptionalGet:
    if (call.value(0).kind != Type::Kind::Optional) return Values{call.value(0)};
    if (call.value(0).elements.empty()) return call.fail("the optional is empty");
    return Values{call.value(0).elements[0]};
  default: return sequence_op(call);
  }
}

} // namespace firn::evaluation
