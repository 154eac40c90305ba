// Integers made of symbolic dims, carried as expressions through the ops that shape arithmetic is made of.
#include "compiler/frontend/onnx/dims/known_ratios.h"

namespace firn::onnx {
namespace {

using Elements = std::vector<IntExpr>;

bool is_known_type(const Type& type) {
  bool dtype = type.dtype == DType::I64 || type.dtype == DType::I32 || type.dtype == DType::Bool;
  return type.is_static() && dtype && type.num_elements() <= KnownInts::kMaxKnown;
}

} // namespace

std::optional<Elements> KnownInts::find(Value value) const {
  if (!value || value.index != 0) return std::nullopt;
  auto found = elements_.find(value.def);
  if (found != elements_.end()) return found->second;
  const LiteralRef& literal = value.def->literal();
  if (!value.def->is(Opcode::Constant) || literal->is_opaque() || literal->num_elements() > kMaxKnown)
    return std::nullopt;
  if (!is_integer(literal->dtype()) && literal->dtype() != DType::Bool) return std::nullopt;
  auto values = literal->to_ints();
  return Elements(values.begin(), values.end());
}

void KnownInts::forget_all(const Instruction& instruction) {
  elements_.erase(&instruction);
  for (int i = 0; i < instruction.num_regions(); ++i)
    for (const auto& inner : instruction.region(i).instructions()) forget_all(*inner);
}

std::optional<Elements> KnownInts::compute(const Instruction& instruction) const {
  if (!is_known_type(instruction.type())) return std::nullopt;
  if (instruction.is(Opcode::DimSize)) {
    auto extent = compute_dim_size(instruction);
    return extent && is_safe_dim(*extent) ? std::optional(Elements{*extent}) : std::nullopt;
  }
  if (instruction.is(Opcode::Convert) && is_float(instruction.operand(0).dtype())) {
    auto ratios = known_ratios(*this, instruction.operand(0));
    return ratios && instruction.type().dtype != DType::Bool ? truncated(*ratios) : std::nullopt;
  }
  std::vector<Elements> operands;
  for (Value operand : instruction.operands()) {
    auto known = find(operand);
    if (!known) return std::nullopt;
    operands.push_back(std::move(*known));
  }
  return compute_elements(instruction, operands);
}

} // namespace firn::onnx
