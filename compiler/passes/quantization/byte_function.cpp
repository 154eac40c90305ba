// Collects the ops of functions of bytes, and makes tables of them.
#include "compiler/passes/quantization/byte_function.h"

#include "compiler/graph/evaluate.h"
#include "compiler/passes/match.h"
#include "compiler/plan/byte_values.h"

#include <unordered_map>

namespace firn {
namespace {

constexpr size_t kMaxMembers = 64; // ops of a function; bounds the depth of recursion

bool is_by_element(Opcode opcode) {
  return is_elementwise(opcode) || op_info(opcode).op_class == OpClass::Quantization;
}

struct ValueHash {
  size_t operator()(const std::pair<const Instruction*, int>& key) const {
    return std::hash<const Instruction*>()(key.first) + static_cast<size_t>(key.second);
  }
};

// Repeats the ops of a function for all bytes.
class TableMaker {
public:
  TableMaker(GraphBuilder& builder, Value argument) : builder_(builder) {
    std::vector<int64_t> bytes(kByteValues);
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = argument.dtype() == DType::I8 && i > 127 ? static_cast<int64_t>(i) - kByteValues
                                                          : static_cast<int64_t>(i);
    made_[{argument.def, argument.index}] =
        builder_.constant(Literal::of<int64_t>(argument.dtype(), {kByteValues}, bytes));
  }

  // The value computed for each of the 256 bytes.
  Value make(Value value) {
    auto [known, is_new] = made_.try_emplace({value.def, value.index});
    if (!is_new) return known->second;
    Type type = value.type();
    type.dims = {Dim(kByteValues)};
    Value made;
    if (auto splat = splat_value(value)) {
      made = make_splat(builder_, type, *splat);
    } else if (looks_up_bytes(*value.def)) {
      made = value.def->operand(0);
    } else {
      std::vector<Value> operands;
      const bool is_elementwise_op = is_elementwise(value.def->opcode());
      for (Value operand : value.def->operands()) {
        const bool is_parameter = !is_elementwise_op && !operands.empty();
        operands.push_back(is_parameter ? operand : make(operand));
      }
      made = builder_.make_typed(value.def->opcode(), operands, {type}, value.def->attributes())->result();
    }
    return made_[{value.def, value.index}] = made;
  }

private:
  GraphBuilder& builder_;
  std::unordered_map<std::pair<const Instruction*, int>, Value, ValueHash> made_;
};

// The elements of a value that is made of constants, or null.
LiteralRef evaluated(Value value, std::unordered_map<const Instruction*, LiteralRef>& known) {
  if (value.def->is(Opcode::Constant)) return constant_literal(value) ? value.def->literal() : nullptr;
  auto [place, is_new] = known.try_emplace(value.def);
  if (!is_new) return place->second;
  std::vector<LiteralRef> operands;
  for (Value operand : value.def->operands()) {
    operands.push_back(evaluated(operand, known));
    if (!operands.back()) return nullptr;
  }
  auto results = evaluate_instruction(*value.def, operands);
  return known[value.def] = results ? (*results)[static_cast<size_t>(value.index)] : nullptr;
}

} // namespace

std::optional<ByteFunction> ByteFunction::find(Value result, bool through_tables) {
  ByteFunction function(result);
  if (!result.type().is_tensor() || !is_by_element(result.def->opcode()) ||
      !function.collect(*result.def, through_tables) || !function.argument_)
    return std::nullopt;
  return function;
}

// Collects the ops that the member depends on; false if it depends on more than one value of bytes.
bool ByteFunction::collect(const Instruction& member, bool through_tables) {
  if (members_.count(&member)) return true;
  if (members_.size() >= kMaxMembers) return false;
  members_.insert(&member);
  is_costly_ |= has_trait(member.opcode(), Costly) || has_trait(member.opcode(), LongCode) ||
                (member.is(Opcode::Divide) && !splat_value(member.operand(1)));
  for (Value operand : member.operands()) {
    if (splat_value(operand)) continue;
    if (!operand.type().is_tensor() || operand.type().dims != result_.type().dims) return false;
    Instruction& def = *operand.def;
    bool passes = through_tables && looks_up_bytes(def);
    if (plan::is_byte(operand) && !passes) {
      if (argument_ && !(argument_ == operand)) return false;
      argument_ = operand;
    } else if (passes) {
      if (argument_ && !(argument_ == def.operand(1))) return false;
      argument_ = def.operand(1);
      is_costly_ = true; // a table is read already: one that goes further is as cheap
    } else if (!is_by_element(def.opcode()) || !collect(def, through_tables)) {
      return false;
    }
  }
  return true;
}

Value ByteFunction::table(GraphBuilder& builder) const {
  return TableMaker(builder, argument_).make(result_);
}

LiteralRef ByteFunction::results(GraphBuilder& builder) const {
  std::unordered_map<const Instruction*, LiteralRef> known;
  return evaluated(table(builder), known);
}

Value ByteFunction::look_up(GraphBuilder& builder, Value table) const {
  Value index = argument_.dtype() == DType::I8 ? builder.convert(argument_, DType::U8) : argument_;
  return builder.op(Opcode::Gather, {table, index}, {{"axis", int64_t{0}}});
}

} // namespace firn
