// See widen_to_f64.h.
#include "compiler/passes/gradient/widen_to_f64.h"

#include "compiler/graph/function_type.h"

namespace firn::gradient {
namespace {

bool is_widened(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

Type widened(Type type) {
  if (type.is_tensor() && is_widened(type.dtype)) type.dtype = DType::F64;
  if (type.element) type.element = std::make_shared<Type>(widened(*type.element));
  return type;
}

LiteralRef widened(const LiteralRef& literal) {
  auto wide = std::make_shared<Literal>(DType::F64, literal->dims());
  for (int64_t i = 0; i < literal->num_elements(); ++i) wide->set_double(i, literal->get_double(i));
  return wide;
}

void widen(Region& region) {
  for (Instruction* instruction : region.snapshot()) {
    if (instruction->literal() && is_widened(instruction->literal()->dtype()))
      instruction->set_literal(widened(instruction->literal()));
    for (const char* name : {"result", "to", "stash"}) {
      const Attribute* attribute = instruction->attributes().find(name);
      const DType* dtype = attribute ? std::get_if<DType>(attribute) : nullptr;
      if (dtype && is_widened(*dtype)) instruction->attributes().set(name, DType::F64);
    }
    for (int i = 0; i < instruction->num_results(); ++i)
      instruction->set_type(widened(instruction->type(i)), i);
    for (int i = 0; i < instruction->num_regions(); ++i) widen(instruction->region(i));
  }
}

// Bits of a float are those of the type that the model has.
struct Bitcast {
  Instruction* instruction;
  DType operand, result;
};

void find_bitcasts(const Region& region, std::vector<Bitcast>& bitcasts) {
  for (Instruction* instruction : region.snapshot()) {
    if (instruction->is(Opcode::BitcastConvert))
      bitcasts.push_back({instruction, instruction->operand(0).dtype(), instruction->type().dtype});
    for (int i = 0; i < instruction->num_regions(); ++i) find_bitcasts(instruction->region(i), bitcasts);
  }
}

// Converts f64 to the type that the operand has in the model, and the result to f64.
void convert_around(const Bitcast& bitcast) {
  Instruction& bits = *bitcast.instruction;
  Region& region = *bits.parent();
  auto convert = [&](Value value, DType dtype) {
    Type type = value.type();
    type.dtype = dtype;
    return region.append(Opcode::Convert, {value}, {type}, {{"to", dtype}}, &bits)->result();
  };
  Value operand = bits.operand(0);
  if (is_widened(bitcast.operand)) operand = convert(operand, bitcast.operand);
  Type narrow = bits.type();
  narrow.dtype = bitcast.result;
  Value made = region.append(bits.opcode(), {operand}, {narrow}, bits.attributes(), &bits)->result();
  region.replace_uses(bits.result(), is_widened(bitcast.result) ? convert(made, DType::F64) : made);
  region.erase(&bits);
}

} // namespace

void widen_to_f64(Module& module) {
  std::vector<Bitcast> bitcasts;
  for (const auto& function : module.functions()) find_bitcasts(function->body(), bitcasts);
  for (const auto& function : module.functions()) widen(function->body());
  for (const Bitcast& bitcast : bitcasts) convert_around(bitcast);
}

} // namespace firn::gradient
