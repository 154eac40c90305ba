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

} // namespace

void widen_to_f64(Module& module) {
  for (const auto& function : module.functions()) widen(function->body());
}

} // namespace firn::gradient
