// Numbers without a fraction.
#pragma once

#include <cmath>

namespace firn {

// Infinities are whole, NaN is not.
inline bool is_whole(double number) {
  return number == std::trunc(number);
}

} // namespace firn
