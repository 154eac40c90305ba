// See custom_call.h.
#include "compiler/graph/custom_call.h"

#include "compiler/support/words.h"

#include <algorithm>

namespace firn {

int CustomCall::num_inputs() const {
  return static_cast<int>(std::count_if(inputs.begin(), inputs.end(), [](int64_t at) { return at >= 0; }));
}

CustomCall custom_call_of(const Instruction& custom) {
  const Attributes& a = custom.attributes();
  CustomCall call{a.text("symbol"), a.ints("inputs"), {}, a.integer("workspace")};
  if (!a.text("attributes").empty()) call.attributes = split(a.text("attributes"), ',');
  return call;
}

bool has_custom_dtype(const Type& type) {
  return type.is_tensor() && !is_complex(type.dtype) && bit_width(type.dtype) >= 8 &&
         !is_small_float(type.dtype);
}

std::optional<std::string> check_custom_call(const Instruction& custom) {
  CustomCall call = custom_call_of(custom);
  int64_t next = 0;
  for (int64_t operand : call.inputs)
    if (operand != -1 && operand != next++) return "inputs are not the first operands in their order";
  if (next + static_cast<int64_t>(call.attributes.size()) != custom.num_operands())
    return "wants an operand for each input and each attribute";
  if (std::count(call.attributes.begin(), call.attributes.end(), "")) return "an attribute has no name";
  if (!is_c_identifier(call.symbol)) return "symbol is no name of a C function";
  if (call.workspace < 0 || call.workspace > kMaxCustomWorkspace) return "workspace has a bad size";
  for (Value operand : custom.operands())
    if (!has_custom_dtype(operand.type())) return "an operand is of a type that functions do not take";
  for (int i = 0; i < custom.num_results(); ++i)
    if (!has_custom_dtype(custom.type(i)) || custom.type(i).dtype == DType::String)
      return "a result is of a type that functions do not give";
  return std::nullopt;
}

} // namespace firn
