// widen-constants: evaluates what fold-constants leaves because its results take more bytes.
//
//   %f = convert %w : f32[64,64]          %w : i8[64,64] is constant
//   %r = multiply %f, broadcast(%s)                                       ->    constant : f32[64,64]
//
// Until here passes see weights in the type in which the model holds them, with what widens them beside them;
// from here on constants are what kernels read.
//
// - Requires: scales and biases folded into weights (fold-conv-scales), which adds factors to widen.
// - Establishes: no instruction on constants alone, within the bounds of fold-constants but for bytes.
// - Breaks: constants no longer have the types of the model.
#include "compiler/passes/passes.h"
#include "compiler/passes/simplify/fold_constants.h"

namespace firn {

bool widen_constants(Module& module, const PassOptions& options) {
  return fold_constants(module, FoldedSize::Elements, options);
}

} // namespace firn
