// A symbolic dimension that CMake bound, and tensors that live in the program's own memory.
#include "negate.h"

#include <type_traits>

static demo::Negate::Arena arena;

int main() {
  demo::Negate negate(arena);
  static_assert(std::is_same_v<decltype(negate.y()), firn::View<const float, 2, 3>>);
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {};
  if (negate.run().code() != FIRN_STATUS_NOT_BOUND) return 1;
  negate.bind_x(x);
  negate.bind_y(y);
  if (!negate.run()) return 2;
  if (y[5] != -6.0f || negate.y()(1, 2) != -6.0f || x[5] != 6.0f) return 3;
  return demo::Negate::arena_bytes < sizeof x ? 0 : 4;
}
