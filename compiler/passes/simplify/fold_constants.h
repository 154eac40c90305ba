// Evaluation of instructions on constants, which two passes share.
#pragma once

#include "compiler/passes/pass.h"

namespace firn {

// The measure by which results of folding are weighed against the constants that it reads.
enum class FoldedSize {
  Bytes,    // results may not take more bytes: weights of few bits stay so
  Elements, // elements may become wider, and up to four times as many
};

// Evaluates instructions on constants, in order, within bounds of work and of bytes. Returns whether anything
// changed.
bool fold_constants(Module& module, FoldedSize size, const PassOptions& options);

} // namespace firn
