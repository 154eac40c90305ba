// See pieces.h.
#include "compiler/lower/element/pieces.h"

namespace firn::lower {
namespace {

void emit_branch(kernel::Builder& b, const IntExpr& number, int first, int count,
                 const std::function<void(int)>& piece) {
  if (first + 1 == count) return piece(first);
  kernel::Register here = b.compare(kernel::OpKind::SCmp, kernel::Predicate::Eq, b.index(number),
                                    b.constant_int({kernel::Scalar::Index, 1}, first));
  b.if_then_else(
      here,
      [&] {
        piece(first);
        return std::vector<kernel::Register>{};
      },
      [&] {
        emit_branch(b, number, first + 1, count, piece);
        return std::vector<kernel::Register>{};
      });
}

} // namespace

void emit_pieces(kernel::Builder& builder, int count, const std::function<void(int)>& piece) {
  builder.loop(0, count, 1, [&](const IntExpr& number) { emit_branch(builder, number, 0, count, piece); });
}

} // namespace firn::lower
