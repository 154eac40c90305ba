// lower-to-lookup-table: looks up the results of functions of one byte.
//
//   %f = dequantize %x, %s : f32[8,64]                  %x : u8[8,64]
//   %g = multiply %f, (logistic %f)               ->    %y = gather <256 results>, %x : u8[8,64]
//   %y = quantize %g : u8[8,64]
//
// A byte has 256 values: any function from bytes to bytes is a table of them, evaluated once, here. It pays
// if the function has transcendentals or divisions; a function of little arithmetic stays in the kernel that
// computes the bytes.
//
// - Requires: quantised values are where they are computed (move-quantization).
// - Establishes: no costly chain of elementwise ops between two values of bytes alone.
// - Breaks: nothing (fold-constants evaluates the tables).
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/byte_values.h"
#include "compiler/plan/profitability.h"

#include <unordered_map>
#include <unordered_set>

namespace firn {
namespace {

constexpr size_t kMaxMembers = 64; // ops of a function; bounds the depth of recursion

bool is_by_element(Opcode opcode) {
  return is_elementwise(opcode) || op_info(opcode).op_class == OpClass::Quantization;
}

// The elementwise ops that compute one value of bytes from another.
class ByteFunction {
public:
  explicit ByteFunction(Instruction& result) : result_(result) {}

  Value run() {
    if (!plan::is_byte(result_.result()) || !is_by_element(result_.opcode()) || !result_.type().is_static() ||
        !plan::is_byte_table_profitable(result_.type().num_elements()))
      return {};
    for (bool through_tables : {false, true}) {
      members_.clear();
      argument_ = {};
      is_costly_ = false;
      if (collect(result_, through_tables) && argument_ && is_costly_) return lookup();
    }
    return {};
  }

private:
  // Collects the ops that the member depends on; false if it depends on more than one value of bytes.
  bool collect(Instruction& member, bool through_tables) {
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

  Value lookup() {
    GraphBuilder builder(*result_.parent(), &result_);
    builder.set_location(result_.location());
    std::vector<int64_t> bytes(kByteValues);
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = argument_.dtype() == DType::I8 && i > 127 ? static_cast<int64_t>(i) - kByteValues
                                                           : static_cast<int64_t>(i);
    made_[{argument_.def, argument_.index}] =
        builder.constant(Literal::of<int64_t>(argument_.dtype(), {kByteValues}, bytes));
    Value table = remade(builder, result_.result());
    Value index = argument_;
    if (index.dtype() == DType::I8) index = builder.convert(index, DType::U8);
    return builder.op(Opcode::Gather, {table, index}, {{"axis", int64_t{0}}});
  }

  // The value computed for each of the 256 bytes.
  Value remade(GraphBuilder& builder, Value value) {
    auto [known, is_new] = made_.try_emplace({value.def, value.index});
    if (!is_new) return known->second;
    Type type = value.type();
    type.dims = {Dim(kByteValues)};
    Value made;
    if (auto splat = splat_value(value)) {
      made = make_splat(builder, type, *splat);
    } else if (looks_up_bytes(*value.def)) {
      made = value.def->operand(0);
    } else {
      std::vector<Value> operands;
      const bool is_elementwise_op = is_elementwise(value.def->opcode());
      for (Value operand : value.def->operands()) {
        const bool is_parameter = !is_elementwise_op && !operands.empty();
        operands.push_back(is_parameter ? operand : remade(builder, operand));
      }
      made = builder.make_typed(value.def->opcode(), operands, {type}, value.def->attributes())->result();
    }
    return made_[{value.def, value.index}] = made;
  }

  struct ValueHash {
    size_t operator()(const std::pair<const Instruction*, int>& key) const {
      return std::hash<const Instruction*>()(key.first) + static_cast<size_t>(key.second);
    }
  };

  Instruction& result_;
  Value argument_;
  bool is_costly_ = false;
  std::unordered_set<const Instruction*> members_;
  std::unordered_map<std::pair<const Instruction*, int>, Value, ValueHash> made_;
};

Value lower_to_table(Instruction& instruction, const PassOptions&) {
  return ByteFunction(instruction).run();
}

} // namespace

bool lower_to_lookup_table(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, lower_to_table);
}

} // namespace firn
