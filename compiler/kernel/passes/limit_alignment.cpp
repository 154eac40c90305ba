// limit-alignment: buffers are aligned no further than the machine gains by.
//
//   buffer "x" arena bytes 100 align 64      buffer "x" arena bytes 100 align 8
//   kernel "relu" (x: f32[25] align 64)      kernel "relu" (x: f32[25] align 8)
//
// A microcontroller has no cache lines and no vectors, and its buffers are small: gaps between them would
// cost memory and gain nothing.
//
// - Requires: no buffer has a place yet.
// - Establishes: no buffer, parameter or scratch is promised more than Machine::buffer_alignment.
// - Breaks: nothing.
#include "compiler/kernel/passes/pass.h"

#include <algorithm>

namespace firn::kernel {

bool limit_alignment(Program& program, const KernelPassOptions& options) {
  bool changed = false;
  auto limit = [&](int& alignment) {
    if (alignment <= options.target->buffer_alignment || !options.take_rewrite()) return;
    alignment = options.target->buffer_alignment;
    changed = true;
  };
  if (!options.target) return false;
  for (Buffer& buffer : program.buffers) limit(buffer.alignment);
  for (auto& kernel : program.kernels) {
    for (BufferParameter& parameter : kernel->parameters) limit(parameter.alignment);
    for (BufferParameter& scratch : kernel->scratch) limit(scratch.alignment);
  }
  return changed;
}

} // namespace firn::kernel
