// See straight_through.h. A quantised value is a chain: floats are divided, rounded and clamped, become
// integers that are moved or multiplied, and floats again. The floats at its end are put in terms of the
// floats at its begin, by the same ops in floats, which have derivatives.
#include "compiler/passes/gradient/straight_through.h"

#include "compiler/graph/builder.h"
#include "compiler/graph/quantization.h"
#include "compiler/passes/gradient/reverse_sweep.h"

#include <algorithm>
#include <cmath>

namespace firn::gradient {
namespace {

constexpr const char* kMark = "straight_through";

bool rounds(const Instruction& instruction) {
  return instruction.is(Opcode::RoundNearestEven) || instruction.is(Opcode::Floor) ||
         instruction.is(Opcode::Ceil);
}

bool holds_whole_numbers(const Literal& literal) {
  if (!is_float(literal.dtype()) || literal.is_opaque()) return false;
  for (int64_t i = 0; i < literal.num_elements(); ++i)
    if (double value = literal.get_double(i); value != std::floor(value)) return false;
  return true;
}

// The ops between integers that have the same meaning in floats. Operands from `numbers` on are indices.
struct IntegerOp {
  Opcode opcode;
  int numbers;
};
constexpr IntegerOp kIntegerOps[] = {
    {Opcode::Add, 2},        {Opcode::Subtract, 2},  {Opcode::Multiply, 2},       {Opcode::Negate, 1},
    {Opcode::Maximum, 2},    {Opcode::Minimum, 2},   {Opcode::Clamp, 3},          {Opcode::Copy, 1},
    {Opcode::Reshape, 1},    {Opcode::Transpose, 1}, {Opcode::BroadcastInDim, 1}, {Opcode::Slice, 1},
    {Opcode::Pad, 2},        {Opcode::Reverse, 1},   {Opcode::Gather, 1},         {Opcode::Dot, 2},
    {Opcode::Convolution, 2}};

const IntegerOp* find_integer_op(Opcode opcode) {
  for (const IntegerOp& op : kIntegerOps)
    if (op.opcode == opcode) return &op;
  return nullptr;
}

class StraightThrough {
public:
  explicit StraightThrough(const std::vector<Value>& active) {
    for (Value value : active) reached_.insert(key_of(value));
  }

  void pass(Region& region) {
    for (Instruction* instruction : region.snapshot()) {
      if (reads_reached(*instruction))
        for (int i = 0; i < instruction->num_results(); ++i) reached_.insert({instruction, i});
      for (int i = 0; i < instruction->num_regions(); ++i) pass_inner(instruction->region(i));
      if (gives_whole_numbers(*instruction)) whole_.insert(key_of(instruction->result()));
      pass_one(*instruction);
    }
  }

private:
  // Parameters of loops stand for values that have been reached, or may have been.
  void pass_inner(Region& region) {
    for (const Instruction* parameter : region.parameters()) reached_.insert({parameter, 0});
    pass(region);
  }

  bool is_reached(Value value) const { return reached_.count(key_of(value)) != 0; }
  bool reads_reached(const Instruction& instruction) const {
    bool reads = false;
    visit_reads(instruction, [&](Value value) { reads = reads || is_reached(value); });
    return reads;
  }

  // Whether floats are known to be whole numbers.
  bool is_whole(Value value) const { return is_integer(value.dtype()) || whole_.count(key_of(value)) != 0; }
  bool gives_whole_numbers(const Instruction& instruction) const {
    switch (instruction.opcode()) {
    case Opcode::RoundNearestEven:
    case Opcode::Floor:
    case Opcode::Ceil: return true;
    case Opcode::Constant: return holds_whole_numbers(*instruction.literal());
    case Opcode::Add:
    case Opcode::Subtract:
    case Opcode::Multiply:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Clamp:
    case Opcode::Convert:
    case Opcode::Negate:
    case Opcode::Reshape:
    case Opcode::Transpose:
    case Opcode::BroadcastInDim: {
      const std::vector<Value> operands = instruction.operands();
      return std::all_of(operands.begin(), operands.end(), [&](Value each) { return is_whole(each); });
    }
    default: return false;
    }
  }

  void pass_one(Instruction& instruction) {
    if (rounds(instruction)) instruction.attributes().set(kMark, true);
    if (instruction.num_results() != 1) return;
    const DType dtype = instruction.type().dtype;
    if (instruction.is(Opcode::Clamp) && is_float(dtype) && is_whole(instruction.result()))
      instruction.attributes().set(kMark, true);
    if (!is_reached(instruction.result())) return;
    if (is_integer(dtype)) {
      if (Value floats = make_floats(instruction)) floats_[key_of(instruction.result())] = floats;
    } else if (instruction.is(Opcode::Convert) && is_float(dtype)) {
      end_chain(instruction);
    }
  }

  // Puts the floats that the integers stand for in the place of those that are made of them.
  void end_chain(Instruction& convert) {
    Value floats = as_floats(convert.operand(0));
    if (!floats) return;
    GraphBuilder b(*convert.parent(), &convert);
    Value same = b.convert(floats, convert.type().dtype);
    convert.parent()->replace_uses(convert.result(), same);
    reached_.insert(key_of(same));
    if (is_whole(convert.result())) whole_.insert(key_of(same));
  }

  // The numbers of an integer value, computed in floats; none: the way here is no chain of a quantised value.
  Value as_floats(Value value) const {
    auto found = floats_.find(key_of(value));
    return found == floats_.end() ? Value{} : found->second;
  }

  Value make_floats(Instruction& def) {
    GraphBuilder b(*def.parent(), &def);
    if (def.is(Opcode::Convert)) return convert_in_floats(b, def);
    const IntegerOp* op = find_integer_op(def.opcode());
    if (!op) return {};
    std::vector<Value> operands = def.operands();
    DType wide = DType::F32;
    for (int i = 0; i < op->numbers; ++i) {
      Value& operand = operands[static_cast<size_t>(i)];
      if (!is_reached(operand)) continue;
      operand = as_floats(operand);
      if (!operand) return {};
      if (operand.dtype() == DType::F64) wide = DType::F64;
    }
    for (int i = 0; i < op->numbers; ++i)
      operands[static_cast<size_t>(i)] = b.convert(operands[static_cast<size_t>(i)], wide);
    Type type = def.type();
    type.dtype = wide;
    Attributes attributes = def.attributes();
    if (attributes.find("result")) attributes.set("result", wide);
    if (def.is(Opcode::Clamp)) attributes.set(kMark, true);
    return b.make_typed(def.opcode(), std::move(operands), {type}, std::move(attributes))->result();
  }

  // From floats, which are truncated if they are not whole, or from other integers.
  Value convert_in_floats(GraphBuilder& b, const Instruction& def) {
    Value from = def.operand(0);
    if (is_integer(from.dtype())) return saturated(b, as_floats(from), def);
    if (!is_float(from.dtype())) return {};
    Value wide = b.convert(from, from.dtype() == DType::F64 ? DType::F64 : DType::F32);
    if (!is_whole(from)) {
      Value up = b.op(Opcode::Ceil, {wide}, {{kMark, true}}),
            down = b.op(Opcode::Floor, {wide}, {{kMark, true}});
      wide = b.select(b.compare("lt", wide, b.splat_like(wide, 0)), up, down);
    }
    return saturated(b, wide, def);
  }

  static Value saturated(GraphBuilder& b, Value floats, const Instruction& convert) {
    if (!floats || !convert.attributes().flag("saturate")) return floats;
    DType dtype = convert.type().dtype;
    Value low = b.splat_like(floats, reducer_identity(Opcode::Maximum, dtype)->get_double(0));
    Value high = b.splat_like(floats, reducer_identity(Opcode::Minimum, dtype)->get_double(0));
    return b.op(Opcode::Clamp, {low, floats, high}, {{kMark, true}});
  }

  std::set<ValueKey> reached_;       // values that depend on active ones, by way of integers too
  std::set<ValueKey> whole_;         // floats that are whole numbers
  std::map<ValueKey, Value> floats_; // numbers of integer values, computed in floats
};

// The integers of a quantised value depend on its floats, which activity does not tell: all of them are
// spelled as the chains that this file knows.
void spell_quantization(Region& region) {
  for (Instruction* instruction : region.snapshot()) {
    for (int i = 0; i < instruction->num_regions(); ++i) spell_quantization(instruction->region(i));
    if (op_info(instruction->opcode()).op_class != OpClass::Quantization) continue;
    GraphBuilder builder(region, instruction);
    region.replace_uses(instruction->result(), quantization_body(builder, *instruction));
    region.erase(instruction);
  }
}

bool remove_marks(Region& region) {
  bool any = false;
  for (const auto& instruction : region.instructions()) {
    if (instruction->attributes().has(kMark)) {
      instruction->attributes().erase(kMark);
      any = true;
    }
    for (int i = 0; i < instruction->num_regions(); ++i) any |= remove_marks(instruction->region(i));
  }
  return any;
}

} // namespace

void pass_straight_through(Region& region, const std::vector<Value>& active) {
  spell_quantization(region);
  StraightThrough(active).pass(region);
}

bool remove_straight_through_marks(Module& module) {
  bool any = false;
  for (const auto& function : module.functions()) any |= remove_marks(function->body());
  return any;
}

} // namespace firn::gradient
