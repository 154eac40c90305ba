// See request_streams.h.
#include "compiler/kernel/request_streams.h"

#include "compiler/target/machine.h"

#include <numeric>

namespace firn::kernel {

// The number of streams divides an iteration's requests, so that computing its addresses costs nothing.
IntExpr line_in_streams(const IntExpr& request, int64_t per_iteration, int64_t lines) {
  constexpr int64_t kMaxStreams = 4, kPageLines = 4096 / kCacheLineBytes;
  int64_t streams = std::gcd(kMaxStreams, per_iteration);
  if (streams * kPageLines > lines) return request;
  int64_t length = (lines + streams - 1) / streams;
  return floor_mod(request, streams) * length + floor_div(request, streams);
}

} // namespace firn::kernel
