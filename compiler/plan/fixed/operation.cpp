// Tells operations with one kernel by their opcode and element types.
#include "compiler/plan/fixed/operation.h"

#include "compiler/graph/packing.h"

namespace firn::plan {
namespace {

// Nothing if windows reach between the elements that they select from, or have more than 32 bits can number.
std::optional<Algorithm> selects_by_plain_windows(const Instruction& select) {
  int64_t elements = 1;
  for (const WindowDim& dim : select.attributes().window().dims) {
    if (dim.input_dilation != 1 || dim.size > INT32_MAX / elements) return std::nullopt;
    elements *= dim.size;
  }
  return Algorithm::SelectAndScatter;
}

} // namespace

std::optional<Algorithm> algorithm_of_operation(const Instruction& instruction) {
  bool may_have_text = instruction.is(Opcode::Compare) || instruction.is(Opcode::Convert);
  bool has_text = may_have_text && (instruction.operand(0).dtype() == DType::String ||
                                    instruction.type().dtype == DType::String);
  if (has_text || op_info(instruction.opcode()).op_class == OpClass::Text) return Algorithm::Text;
  switch (instruction.opcode()) {
  case Opcode::Custom: return Algorithm::Custom;
  case Opcode::Concatenate: return Algorithm::Concatenate;
  case Opcode::DynamicUpdateSlice: return Algorithm::UpdateSlice;
  case Opcode::ScatterElements: return Algorithm::ScatterElements;
  case Opcode::ScatterND: return Algorithm::ScatterND;
  case Opcode::SelectAndScatter: return selects_by_plain_windows(instruction);
  case Opcode::NonZero: return Algorithm::NonZero;
  case Opcode::Sort: return Algorithm::Sort;
  case Opcode::Convert:
    return is_sub_byte(instruction.type().dtype) ? std::optional(Algorithm::PackElements) : std::nullopt;
  case Opcode::Composite: return read_pack(instruction) ? std::optional(Algorithm::Pack) : std::nullopt;
  default: return std::nullopt;
  }
}

} // namespace firn::plan
