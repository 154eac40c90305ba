// Inputs and outputs of @prepare in the memory of weights.
#include "compiler/kernel/passes/prepare_program.h"

#include <algorithm>

namespace firn::kernel {
namespace {

void bind_source(Program& prepare, int number, const ConstantSource& source) {
  Buffer& buffer = prepare.buffers[static_cast<size_t>(number)];
  buffer.name = source.name;
  buffer.space = Space::Weights;
  buffer.io_index = -1;
  int bytes = scalar_bytes(source.element);
  int64_t elements = buffer.bytes / bytes;
  prepare.constants.push_back({number, source, padded_copy(bytes, elements, elements)});
}

} // namespace

bool needs_preparing(const Program& program) {
  return std::any_of(program.constants.begin(), program.constants.end(),
                     [](const Constant& constant) { return !is_padded_copy(constant.packing); });
}

void bind_prepare(Program& prepare, const std::vector<ConstantSource>& sources, const Program& program) {
  const int64_t scratch = program.weight_bytes; // its own buffers begin behind the prepared weights
  prepare.arena_bytes += scratch;
  prepare.arena_lower_bound = prepare.arena_bytes;
  std::vector<const Buffer*> targets;
  for (const Constant& constant : program.constants) {
    const Buffer& packed = program.buffers[static_cast<size_t>(constant.buffer)];
    FIRN_CHECK(packed.offset >= 0, "constant '" + packed.name + "' has no place");
    if (packed.bytes > 0) targets.push_back(&packed);
  }
  for (size_t i = 0; i < prepare.buffers.size(); ++i) {
    Buffer& buffer = prepare.buffers[i];
    if (buffer.space == Space::Input) {
      bind_source(prepare, static_cast<int>(i), sources.at(static_cast<size_t>(buffer.io_index)));
    } else if (buffer.space == Space::Weights) {
      continue; // constants that @prepare itself reads
    } else if (buffer.space == Space::Arena) {
      if (buffer.offset >= 0) buffer.offset += scratch;
    } else {
      FIRN_CHECK(buffer.space == Space::Output, "@prepare has states, or fails");
      const Buffer& packed = *targets.at(static_cast<size_t>(buffer.io_index));
      FIRN_CHECK(buffer.bytes == packed.bytes, "@prepare makes another '" + packed.name + "'");
      buffer = packed;
      buffer.space = Space::Arena;
    }
  }
  for (size_t i = 0; i < prepare.kernels.size(); ++i) // names that the model's own kernels do not have
    prepare.kernels[i]->name = "prepare_" + std::to_string(i);
}

} // namespace firn::kernel
