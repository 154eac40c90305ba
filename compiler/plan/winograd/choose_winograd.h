// Which convolutions of a network Winograd's algorithm computes, and with transforms of which sizes: decided
// for all of them together, since transformed filters are worth their bytes or not by what the whole network
// takes.
//
// The sizes that win most cycles per byte come first, as long as
//   - a size wins cycles at the rate of 2 % of the network's predicted time for bytes as many as the model's
//     weights, or at a better one,
//   - filters add no more bytes, all together, than the model's weights have;
// and none is taken at all if those win less than 2 % of the network's predicted time. Convolutions for which
// somebody asked have the fastest size, whatever its bytes.
//
// A size is taken only if its rounding error on random data, with these filters, is at most 4 times that of
// the direct sum.
//
// Floats are never computed so with --math=strict. No convolution is with -Os or --no-winograd, unless a plan
// is given for it. Bytes have no rounding error, and their filters add no bytes.
#pragma once

#include "compiler/plan/schedule.h"
#include "compiler/plan/winograd/winograd.h"

#include <optional>
#include <vector>

namespace firn::plan {

// A convolution to which the algorithm applies.
struct WinogradCandidate {
  LiteralRef filter;
  std::vector<WinogradGeometry> plans; // all sizes, fastest first
  double direct_cycles = 0;            // the direct convolution's cycles, its filters streamed
  bool is_asked = false;               // takes the fastest size
};

struct WinogradChoice {
  std::optional<WinogradGeometry> plan; // none: the convolution is computed directly
  LiteralRef filter;                    // the candidate's; its values are not used yet
  int64_t added_bytes = 0;              // bytes of the plan's filters, beyond the model's own
  bool left_out = false;                // the algorithm is faster, but not worth its bytes
  std::vector<Candidate> considered;    // fastest first, the direct convolution apart
};

// The choice for each candidate. `network_cycles`: cycles of one run with all convolutions direct.
std::vector<WinogradChoice> choose_winograd(std::vector<WinogradCandidate> candidates, double network_cycles,
                                            int64_t model_weight_bytes);

} // namespace firn::plan
