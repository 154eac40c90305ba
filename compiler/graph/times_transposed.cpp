// See times_transposed.h.
#include "compiler/graph/times_transposed.h"

namespace firn {

Value times_transposed(GraphBuilder& builder, Value x, Value w, std::optional<DType> result) {
  using Ints = std::vector<int64_t>;
  Attributes attributes{{"lhs_batch", Ints{}},
                        {"lhs_contract", Ints{x.rank() - 1}},
                        {"rhs_batch", Ints{}},
                        {"rhs_contract", Ints{1}}};
  if (result) attributes.set("result", *result);
  return builder.op(Opcode::Dot, {x, w}, std::move(attributes));
}

} // namespace firn
