// Convolutions whose lines can lie in vectors: layouts leave them plain, and lowering has positions in lanes,
// where filters are too few to fill vectors themselves.
#pragma once

#include "compiler/graph/module.h"

namespace firn {

// Whether neighbouring results of a line read neighbouring elements and fill vectors of `lanes`.
inline bool lines_fill_vectors(const Instruction& convolution, int lanes) {
  const Type& result = convolution.type();
  return convolution.attributes().window().dims.back().stride == 1 && result.dim(result.rank() - 1) >= lanes;
}

} // namespace firn
