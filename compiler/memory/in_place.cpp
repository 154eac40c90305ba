// In-place merging over liveness, in the order of the steps.
#include "compiler/memory/in_place.h"

#include "compiler/memory/liveness.h"

#include <algorithm>
#include <optional>

namespace firn::memory {
namespace {

using kernel::Argument;
using kernel::Program;
using kernel::Space;
using kernel::Step;

void replace_buffer(std::vector<Step>& steps, int from, int to) {
  for (Step& step : steps) {
    for (Argument& argument : step.arguments)
      if (argument.buffer == from) argument.buffer = to;
    if (step.has_condition() && step.condition.buffer == from) step.condition.buffer = to;
    replace_buffer(step.first, from, to);
    replace_buffer(step.second, from, to);
  }
}

const kernel::Buffer& buffer_of(const Program& program, const Argument& argument) {
  return program.buffers[static_cast<size_t>(argument.buffer)];
}

// Whether an argument of the step other than the pair touches one of the pair's buffers.
bool is_touched_besides(const Step& step, int written, int read) {
  int to = step.arguments[static_cast<size_t>(written)].buffer,
      from = step.arguments[static_cast<size_t>(read)].buffer;
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    int buffer = step.arguments[i].buffer;
    if (static_cast<int>(i) != written && static_cast<int>(i) != read && (buffer == to || buffer == from))
      return true;
  }
  return false;
}

kernel::Kernel& kernel_of(Program& program, const Step& step) {
  return *program.kernels[static_cast<size_t>(step.kernel)];
}

// Whether the step's kernel may write one argument over another, read, which begins `distance` bytes behind.
// If so, the kernel promises it from then on (Kernel::in_place).
bool promise_in_place(Program& program, const Step& step, int written, int read, int64_t distance) {
  kernel::Kernel& kernel = kernel_of(program, step);
  kernel::InPlace pair{written, read, may_overwrite(kernel, written, read, distance), distance};
  if (pair.pattern == kernel::Overwriting::None) return false;
  if (std::find(kernel.in_place.begin(), kernel.in_place.end(), pair) == kernel.in_place.end())
    kernel.in_place.push_back(pair);
  return true;
}

// Whether memory allows the pair of arguments to become one buffer: the read one dies in this step, the
// written one is born here, and nothing else of the step touches either.
bool can_merge(const Program& program, const Step& step, int written, int read, int time,
               const Liveness& liveness) {
  const Argument &to = step.arguments[static_cast<size_t>(written)],
                 &from = step.arguments[static_cast<size_t>(read)];
  if (to.buffer == from.buffer || to.byte_offset != 0 || from.byte_offset != 0) return false;
  const kernel::Buffer &target = buffer_of(program, to), &source = buffer_of(program, from);
  // An output may be the caller's memory, which is aligned as its elements only.
  if (source.space != Space::Arena || target.space != Space::Arena) return false;
  if (source.bytes != target.bytes) return false;
  const LiveInterval &read_life = liveness.buffers[static_cast<size_t>(from.buffer)],
                     &written_life = liveness.buffers[static_cast<size_t>(to.buffer)];
  if (read_life.last != time || read_life.held_until == time || written_life.first != time) return false;
  return !is_touched_besides(step, written, read);
}

// The first arguments (written, read) of a step that become one buffer.
std::optional<std::pair<int, int>> find_dying_operand(Program& program, const Step& step, int time,
                                                      const Liveness& liveness) {
  const auto& parameters = kernel_of(program, step).parameters;
  for (int written = 0; written < static_cast<int>(parameters.size()); ++written) {
    if (!parameters[static_cast<size_t>(written)].written) continue;
    for (int read = 0; read < static_cast<int>(parameters.size()); ++read)
      if (!parameters[static_cast<size_t>(read)].written &&
          can_merge(program, step, written, read, time, liveness) &&
          promise_in_place(program, step, written, read, 0))
        return std::pair{written, read};
  }
  return std::nullopt;
}

void merge_dying_operands(Program& program) {
  Liveness liveness = compute_liveness(program);
  for (int time = 0; time < liveness.num_steps; ++time) {
    Step* step = liveness.calls[static_cast<size_t>(time)];
    if (!step) continue;
    auto pair = find_dying_operand(program, *step, time, liveness);
    if (!pair) continue;
    // The older buffer goes on.
    int to = step->arguments[static_cast<size_t>(pair->first)].buffer,
        from = step->arguments[static_cast<size_t>(pair->second)].buffer;
    LiveInterval &kept = liveness.buffers[static_cast<size_t>(from)],
                 &gone = liveness.buffers[static_cast<size_t>(to)];
    kept = {std::min(kept.first, gone.first), std::max(kept.last, gone.last),
            std::max(kept.held_until, gone.held_until)};
    gone = {};
    replace_buffer(program.steps, to, from);
  }
}

// Whether a step may be given the buffer `state` for what it writes to `made`.
bool can_overwrite_state(Program& program, const Step& step, int made, int state) {
  const auto& parameters = kernel_of(program, step).parameters;
  int written = -1, read = -1;
  for (int i = 0; i < static_cast<int>(parameters.size()); ++i) {
    int buffer = step.arguments[static_cast<size_t>(i)].buffer;
    if (buffer == made) written = i;
    if (buffer == state) read = i;
  }
  if (written < 0 || read < 0 || is_touched_besides(step, written, read)) return false;
  int64_t distance = step.arguments[static_cast<size_t>(read)].byte_offset -
                     step.arguments[static_cast<size_t>(written)].byte_offset;
  return promise_in_place(program, step, written, read, distance);
}

// Whether the new value of a state, in `made`, may be computed in the state's own buffer: nothing reads the
// old value once the new one begins to be written, but for a step whose kernel may have both in one.
// `program` is without the step that copies one to the other.
bool can_update_in_place(Program& program, int made, int state) {
  Liveness liveness = compute_liveness(program);
  const LiveInterval &old_life = liveness.buffers[static_cast<size_t>(state)],
                     &new_life = liveness.buffers[static_cast<size_t>(made)];
  if (!new_life.is_used()) return false;
  if (!old_life.is_used() || old_life.last < new_life.first) return true;
  if (old_life.last > new_life.first || old_life.held_until == old_life.last) return false;
  const Step* step = liveness.calls[static_cast<size_t>(new_life.first)];
  return step && can_overwrite_state(program, *step, made, state);
}

// Steps that copy new values to states stand at the end of the program; one that is not needed goes.
void update_states_in_place(Program& program) {
  for (size_t i = program.steps.size(); i-- > 0;) {
    if (!program.steps[i].is_copy) continue;
    Argument from = program.steps[i].arguments[0], to = program.steps[i].arguments[1];
    const kernel::Buffer &made = buffer_of(program, from), &state = buffer_of(program, to);
    if (!is_state(state.space) || made.space != Space::Arena || made.bytes != state.bytes ||
        from.byte_offset != 0 || to.byte_offset != 0)
      continue;
    Step copy = std::move(program.steps[i]);
    program.steps.erase(program.steps.begin() + static_cast<std::ptrdiff_t>(i));
    if (can_update_in_place(program, from.buffer, to.buffer))
      replace_buffer(program.steps, from.buffer, to.buffer);
    else
      program.steps.insert(program.steps.begin() + static_cast<std::ptrdiff_t>(i), std::move(copy));
  }
}

void drop_copies_in_place(std::vector<Step>& steps) {
  std::erase_if(steps, [](const Step& step) {
    return step.is_copy && step.arguments[0].buffer == step.arguments[1].buffer &&
           step.arguments[0].byte_offset == step.arguments[1].byte_offset;
  });
  for (Step& step : steps) {
    drop_copies_in_place(step.first);
    drop_copies_in_place(step.second);
  }
}

} // namespace

void merge_in_place(Program& program) {
  update_states_in_place(program);
  merge_dying_operands(program);
  drop_copies_in_place(program.steps);
}

} // namespace firn::memory
