// Decisions on reductions along rows.
#pragma once

#include "compiler/plan/elements/plan.h"
#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

constexpr int64_t kRowUnroll = 2; // RowsPlan

// Reductions along a row and elementwise code, such as softmax and layer norm.
struct RowsPlan {
  ElementCode code = {.unroll = kRowUnroll};
  bool stores_exponentials =
      false; // the exponentials that are summed stand where the result will, computed once
  // For softmax whose exponentials are stored: they are as exact as weights beside a whole one need, and the
  // result is a product with the inverse of their sum.
  bool fast_exp = false;
  bool in_producer = false; // the kernel of the dot that makes the rows takes them while they are near
  Fields fields();
};

} // namespace firn::plan
