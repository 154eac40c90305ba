// See where_positive.h.
#include "compiler/lower/movement/where_positive.h"

namespace firn::lower {

void where_all_positive(kernel::Builder& b, const std::vector<IntExpr>& rooms,
                        const std::function<void()>& body) {
  kernel::Register holds;
  for (const IntExpr& room : rooms) {
    if (room.lower_bound() > 0) continue;
    kernel::Register positive = b.compare(kernel::OpKind::SCmp, kernel::Predicate::Gt, b.index(room),
                                          b.constant_int({kernel::Scalar::Index, 1}, 0));
    holds = holds ? b.binary(kernel::OpKind::And, holds, positive) : positive;
  }
  if (!holds) return body();
  b.if_then_else(
      holds,
      [&] {
        body();
        return std::vector<kernel::Register>{};
      },
      [] { return std::vector<kernel::Register>{}; });
}

} // namespace firn::lower
