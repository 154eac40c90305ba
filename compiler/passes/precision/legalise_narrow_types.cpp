// legalise-narrow-types: brings types in which nothing computes to where they are stored.
//
//   %s = add %x, %y : f8e5m2[4]        ->   %a = convert %x : f32[4]   %b = convert %y : f32[4]
//                                           %t = add %a, %b : f32[4]   %s = convert %t : f8e5m2[4]
//   %t = transpose %w : i4[5,3]        ->   %b = convert %w : i8[3,5]
//   return %t                               %t = transpose %b : i8[5,3]
//                                           return (convert %t : i4[5,3])
//
// Elements below a byte lie several in one, as ONNX and programs store them: so weights stay small. One in
// the middle of a byte has no address, which slices, concatenations and everything that writes one element
// at a time want. Therefore they are packed at the edges alone (inputs, outputs, states, constants), and
// held one to a byte in between: integers in those of 8 bits, f4e2m1 in f8e4m3fn, which has all of its
// numbers. Code reads packed elements anywhere (lower/element/element_access.cpp), and packs whole results
// (lower/movement/pack_elements.cpp).
//
// - Requires: nothing.
// - Establishes: operands and results of packed types are those of convert and bitcast_convert; floats of 8
//   bits are converted and moved alone. Regions of reductions, sorts and composites are as they were.
// - Breaks: passes behind this one may not move a convert from or to packed elements across other ops.
#include "compiler/graph/evaluate.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/profitability.h"

#include <map>

namespace firn {
namespace {

bool is_sub_byte(const Type& type) {
  return type.is_tensor() && firn::is_sub_byte(type.dtype);
}
bool is_narrow(const Type& type) {
  return is_sub_byte(type) || (type.is_tensor() && is_small_float(type.dtype));
}

// The dtype that holds the numbers of a packed dtype, one to a byte.
DType byte_dtype(DType dtype) {
  if (dtype == DType::F4E2M1) return DType::F8E4M3FN;
  return is_signed(dtype) ? DType::I8 : DType::U8;
}
DType computed_dtype(DType dtype) {
  return is_small_float(dtype) ? DType::F32 : byte_dtype(dtype);
}

Type with_dtype(Type type, DType dtype) {
  type.dtype = dtype;
  return type;
}

// Whether elements of the results are operands' elements, untouched.
bool only_moves(const Instruction& instruction) {
  if (instruction.is(Opcode::Select)) return true;
  OpClass op_class = op_info(instruction.opcode()).op_class;
  bool shape = op_class == OpClass::Shape && !instruction.is(Opcode::DynamicIota);
  return (op_class == OpClass::Movement || shape) &&
         instruction.attributes().word("reduction", "none") == "none";
}

// Whether the pass leaves the op as it is and gives it packed operands: ops on sequences, random ops, calls
// and custom ops, and those whose regions have types of their own, fusions among them.
bool is_left_alone(const Instruction& instruction) {
  OpClass op_class = op_info(instruction.opcode()).op_class;
  return op_class == OpClass::Container || op_class == OpClass::Random ||
         (instruction.num_regions() > 0 && !has_trait(instruction.opcode(), Captures)) ||
         instruction.is(Opcode::Call) || instruction.is(Opcode::Custom);
}

class NarrowTypes {
public:
  // Changes the region's instructions, but not its results.
  void legalise(Region& region) {
    for (Instruction* instruction : region.snapshot()) {
      if (instruction->is(Opcode::Parameter) || instruction->is(Opcode::Constant)) continue;
      if (is_left_alone(*instruction))
        pack_operands(*instruction);
      else if (has_trait(instruction->opcode(), Captures))
        legalise_control(*instruction);
      else if (has_narrow_type(*instruction))
        legalise_instruction(*instruction);
    }
  }

  // Packs results of the function again, since its type says so.
  void pack_results(Region& region) {
    for (size_t i = 0; i < region.results().size(); ++i)
      if (unpacked_.count(key(region.results()[i])))
        region.set_result(static_cast<int>(i), packed(region.results()[i], nullptr, region));
  }

private:
  using Key = std::pair<const Instruction*, int>;
  static Key key(Value value) { return {value.def, value.index}; }

  static bool has_narrow_type(const Instruction& instruction) {
    for (Value operand : instruction.operands())
      if (is_narrow(operand.type())) return true;
    for (int i = 0; i < instruction.num_results(); ++i)
      if (is_narrow(instruction.type(i))) return true;
    return false;
  }

  // The value with one element to a byte.
  Value in_bytes(Value value) {
    if (!is_sub_byte(value.type())) return value;
    auto [known, is_new] = bytes_of_.try_emplace(key(value));
    if (!is_new) return known->second;
    GraphBuilder builder(*value.def->parent(), behind(value));
    builder.set_location(value.def->location());
    Instruction* convert = builder.make(Opcode::Convert, {value}, {{"to", byte_dtype(value.dtype())}});
    return known->second = folded(builder, convert);
  }

  // A constant of bytes in place of the conversion of a small constant; else the conversion.
  static Value folded(GraphBuilder& builder, Instruction* convert) {
    const Instruction& source = *convert->operand(0).def;
    bool is_small = source.is(Opcode::Constant) && !source.literal()->is_opaque() &&
                    (source.literal()->num_elements() <= plan::kMaxWidenedConstant);
    if (!is_small) return convert->result();
    auto values = evaluate_instruction(*convert, {source.literal()});
    return values ? builder.constant((*values)[0]) : convert->result();
  }

  // The value in its packed dtype again, if it is held in bytes.
  Value packed(Value value, Instruction* before, Region& region) {
    auto known = unpacked_.find(key(value));
    if (known == unpacked_.end()) return value;
    GraphBuilder builder(region, before);
    builder.set_location(value.def->location());
    return builder.convert(value, known->second);
  }

  void pack_operands(Instruction& instruction) {
    for (int i = 0; i < instruction.num_operands(); ++i)
      instruction.set_operand(i, packed(instruction.operand(i), &instruction, *instruction.parent()));
  }

  void hold_in_bytes(Instruction& instruction, int result) {
    Value value = instruction.result(result);
    if (!is_sub_byte(value.type())) return;
    unpacked_[key(value)] = value.dtype();
    instruction.set_type(with_dtype(value.type(), byte_dtype(value.dtype())), result);
  }

  void hold_operands_in_bytes(Instruction& instruction) {
    for (int i = 0; i < instruction.num_operands(); ++i)
      instruction.set_operand(i, in_bytes(instruction.operand(i)));
  }

  void legalise_instruction(Instruction& instruction) {
    if (instruction.is(Opcode::Convert)) return;
    if (instruction.is(Opcode::BitcastConvert)) {
      pack_operands(instruction);
    } else if (only_moves(instruction)) {
      hold_operands_in_bytes(instruction);
      for (int i = 0; i < instruction.num_results(); ++i) hold_in_bytes(instruction, i);
    } else {
      compute_wider(instruction);
    }
  }

  // Operands are converted, and results converted back.
  void compute_wider(Instruction& instruction) {
    GraphBuilder before(*instruction.parent(), &instruction);
    for (int i = 0; i < instruction.num_operands(); ++i) {
      Value operand = instruction.operand(i);
      auto unpacked = unpacked_.find(key(operand));
      DType dtype = unpacked == unpacked_.end() ? operand.dtype() : unpacked->second;
      operand = is_small_float(operand.dtype()) ? before.convert(operand, DType::F32) : in_bytes(operand);
      // The byte repeats the number's sign in bits that are not to be counted.
      if (instruction.is(Opcode::CountOnes)) operand = lowest_bits(before, operand, bit_width(dtype));
      instruction.set_operand(i, operand);
    }
    const Attribute* stated = instruction.attributes().find("result"); // contractions have it
    const DType* result = stated ? std::get_if<DType>(stated) : nullptr;
    if (result && is_narrow(Type::tensor(*result, {})))
      instruction.attributes().set("result", computed_dtype(*result));
    for (int i = 0; i < instruction.num_results(); ++i) {
      Type type = instruction.type(i);
      if (!is_narrow(type)) continue;
      instruction.set_type(with_dtype(type, computed_dtype(type.dtype)), i);
      Value wide = instruction.result(i);
      GraphBuilder after(*instruction.parent(), behind(wide));
      after.set_location(instruction.location());
      Value narrow = after.convert(wide, type.dtype);
      instruction.parent()->replace_uses(wide, narrow);
      narrow.def->set_operand(0, wide);
    }
  }

  static Value lowest_bits(GraphBuilder& builder, Value value, int bits) {
    Value mask = builder.constant(Literal::of<int64_t>(value.dtype(), {}, {(int64_t{1} << bits) - 1}));
    return builder.binary(Opcode::And, value, mask);
  }

  // Holds the values that branches return and loops carry in bytes.
  void legalise_control(Instruction& instruction) {
    hold_operands_in_bytes(instruction);
    for (int r = 0; r < instruction.num_regions(); ++r) {
      Region& region = instruction.region(r);
      for (Instruction* parameter : region.parameters()) hold_in_bytes(*parameter, 0);
      legalise(region);
      for (size_t i = 0; i < region.results().size(); ++i)
        region.set_result(static_cast<int>(i), in_bytes(region.results()[i]));
    }
    for (int i = 0; i < instruction.num_results(); ++i) hold_in_bytes(instruction, i);
  }

  std::map<Key, Value> bytes_of_; // packed values, converted to bytes
  std::map<Key, DType> unpacked_; // packed dtypes of the values that are held in bytes
};

bool holds_narrow(const Region& region) {
  for (const auto& instruction : region.instructions()) {
    for (int i = 0; i < instruction->num_results(); ++i)
      if (is_narrow(instruction->type(i))) return true;
    for (int r = 0; r < instruction->num_regions(); ++r)
      if (has_trait(instruction->opcode(), Captures) && holds_narrow(instruction->region(r))) return true;
  }
  return false;
}

} // namespace

bool legalise_narrow_types(Module& module, const PassOptions& options) {
  bool changed = false;
  for (const auto& function : module.functions()) {
    if (!holds_narrow(function->body()) || !options.take_rewrite()) continue;
    NarrowTypes types;
    types.legalise(function->body());
    types.pack_results(function->body());
    changed = true;
  }
  return changed;
}

} // namespace firn
