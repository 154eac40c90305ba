// The arena plan: in-place merging over liveness, then offsets.
#include "compiler/memory/plan.h"

#include "compiler/memory/liveness.h"
#include "compiler/memory/offsets.h"

#include <algorithm>

namespace firn::memory {
namespace {

using kernel::Program;
using kernel::Space;
using kernel::Step;

constexpr int64_t kAlignment = 64;

int64_t align_up(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void replace_buffer(std::vector<Step>& steps, int from, int to) {
  for (Step& step : steps) {
    for (kernel::Argument& argument : step.arguments)
      if (argument.buffer == from) argument.buffer = to;
    if (step.kind != Step::Kind::Call && step.condition.buffer == from) step.condition.buffer = to;
    replace_buffer(step.first, from, to);
    replace_buffer(step.second, from, to);
  }
}

// Whether the pair of arguments may become one buffer: the read one dies in this step, the written one is
// born here, and nothing else of the step touches either.
bool can_merge(const Program& program, const Step& step, int written, int read, int time,
               const Liveness& liveness) {
  const kernel::Argument &to = step.arguments[static_cast<size_t>(written)],
                         &from = step.arguments[static_cast<size_t>(read)];
  if (to.buffer == from.buffer || to.byte_offset != 0 || from.byte_offset != 0) return false;
  const kernel::Buffer &target = program.buffers[static_cast<size_t>(to.buffer)],
                       &source = program.buffers[static_cast<size_t>(from.buffer)];
  if (source.space != Space::Arena || (target.space != Space::Arena && target.space != Space::Output))
    return false;
  if (source.bytes != target.bytes) return false;
  const Interval &read_life = liveness.buffers[static_cast<size_t>(from.buffer)],
                 &written_life = liveness.buffers[static_cast<size_t>(to.buffer)];
  if (read_life.last != time || read_life.held_until == time || written_life.first != time) return false;
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    int buffer = step.arguments[i].buffer;
    if (static_cast<int>(i) != written && static_cast<int>(i) != read &&
        (buffer == to.buffer || buffer == from.buffer))
      return false;
  }
  return true;
}

// Merges what can be merged, in the order of the steps.
void merge_in_place(Program& program) {
  Liveness liveness = compute_liveness(program);
  for (int time = 0; time < liveness.num_steps; ++time) {
    Step* step = liveness.calls[static_cast<size_t>(time)];
    if (!step) continue;
    for (auto [written, read] : step->in_place) {
      if (!can_merge(program, *step, written, read, time, liveness)) continue;
      int to = step->arguments[static_cast<size_t>(written)].buffer,
          from = step->arguments[static_cast<size_t>(read)].buffer;
      // An output keeps its identity; otherwise the older buffer goes on.
      if (program.buffers[static_cast<size_t>(to)].space == Space::Output) std::swap(to, from);
      Interval &kept = liveness.buffers[static_cast<size_t>(from)],
               &gone = liveness.buffers[static_cast<size_t>(to)];
      kept = {std::min(kept.first, gone.first), std::max(kept.last, gone.last),
              std::max(kept.held_until, gone.held_until)};
      gone = {};
      replace_buffer(program.steps, to, from);
      break;
    }
  }
}

} // namespace

void plan_arena(Program& program, const PlanOptions& options) {
  merge_in_place(program);
  Liveness liveness = compute_liveness(program);
  auto is_external = [](const std::vector<bool>& flags, int index) {
    return index >= 0 && static_cast<size_t>(index) < flags.size() && flags[static_cast<size_t>(index)];
  };
  std::vector<Item> items;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    kernel::Buffer& buffer = program.buffers[i];
    buffer.offset = buffer.space == Space::Weights ? buffer.offset : -1;
    Interval life = liveness.buffers[i];
    int end = std::max(liveness.num_steps - 1, 0);
    if (buffer.space == Space::Input && !is_external(options.external_inputs, buffer.io_index))
      life = {0, end};
    else if (buffer.space == Space::Output && !is_external(options.external_outputs, buffer.io_index))
      life = {life.is_used() ? life.first : 0, end};
    else if (buffer.space != Space::Arena || !life.is_used())
      continue;
    items.push_back({align_up(buffer.bytes), life.first, life.last});
    numbers.push_back(i);
  }
  Packing packing = pack_items(items);
  for (size_t i = 0; i < items.size(); ++i) program.buffers[numbers[i]].offset = packing.offsets[i];
  program.arena_bytes = items.empty() ? 0 : packing.bytes;
  program.arena_lower_bound = packing.lower_bound;
}

namespace {

void visit_arguments(const std::vector<Step>& steps, const std::function<void(int)>& visit) {
  for (const Step& step : steps) {
    for (const kernel::Argument& argument : step.arguments) visit(argument.buffer);
    if (step.kind != Step::Kind::Call) visit(step.condition.buffer);
    visit_arguments(step.first, visit);
    visit_arguments(step.second, visit);
  }
}

} // namespace

void place_constants(Program& program) {
  for (kernel::Buffer& buffer : program.buffers)
    if (buffer.space == Space::Weights) buffer.offset = -1;
  int64_t end = 0;
  std::vector<int> order;
  visit_arguments(program.steps, [&](int number) {
    kernel::Buffer& buffer = program.buffers[static_cast<size_t>(number)];
    if (buffer.space != Space::Weights || buffer.offset >= 0) return;
    buffer.offset = end;
    end = align_up(end + buffer.bytes);
    order.push_back(number);
  });
  // Constants in the order of their offsets; those that nothing reads are dropped.
  std::vector<kernel::Constant> placed;
  for (int number : order)
    for (kernel::Constant& constant : program.constants)
      if (constant.buffer == number) placed.push_back(std::move(constant));
  program.constants = std::move(placed);
  program.weight_bytes = end;
}

} // namespace firn::memory
