// If and While become steps around the steps of their regions. Values that flow into or around them live in
// one buffer each; a region's result is computed in place if that is safe, and copied otherwise.
#include "compiler/lower/emitters.h"
#include "compiler/memory/placement.h"

#include <algorithm>

namespace firn::lower {
namespace {

// Whether anything in the region, nested regions included, reads memory that starts at `root`.
bool reads(const LoweringContext& context, const Instruction& instruction, Value root) {
  for (Value operand : instruction.operands())
    if (context.places().root_of(operand).first == root) return true;
  for (int i = 0; i < instruction.num_regions(); ++i) {
    const Region& region = instruction.region(i);
    for (const auto& inner : region.instructions())
      if (reads(context, *inner, root)) return true;
    for (Value result : region.results())
      if (context.places().root_of(result).first == root) return true;
  }
  return false;
}

// Whether the instruction writes into a copy of the value at `root`. If both share memory, it writes into the
// value itself.
bool updates(const LoweringContext& context, const Instruction& instruction, Value root) {
  if (!instruction.is(Opcode::DynamicUpdateSlice) && !instruction.is(Opcode::ScatterElements) &&
      !instruction.is(Opcode::ScatterND))
    return false;
  for (int i = 1; i < instruction.num_operands(); ++i)
    if (context.places().root_of(instruction.operand(i)).first == root) return false;
  return context.places().root_of(instruction.operand(0)) == std::pair{root, int64_t{0}};
}

// Whether the body's result i can be computed in the place of the carried value i: no kernel reads the old
// value at or after the instruction that makes the new one, except for that instruction if it updates the
// value.
bool is_free_for_result(const LoweringContext& context, const Region& body, size_t i) {
  Value parameter = body.parameter(static_cast<int>(i));
  Value root = context.places().root_of(body.results()[i]).first;
  if (root.def->parent() != &body) return false;
  for (Value result : body.results())
    if (context.places().root_of(result).first == parameter) return false;
  bool made = false;
  for (const auto& instruction : body.instructions()) {
    const bool is_maker = instruction.get() == root.def;
    made |= is_maker;
    if (is_maker && updates(context, *instruction, parameter)) continue;
    if (made && reads(context, *instruction, parameter)) return false;
  }
  return true;
}

void lower_branch(LoweringContext& context, const Instruction& instruction, int number,
                  LoweringContext::Steps& steps) {
  const Region& region = instruction.region(number);
  memory::place_views(context.places(), context.plans(), region);
  std::vector<bool> claimed;
  for (int i = 0; i < instruction.num_results(); ++i)
    claimed.push_back(memory::claim_place(context.places(), region.results()[static_cast<size_t>(i)], region,
                                          context.place_of(result_of(instruction, i))));
  memory::place_concatenations(context.places(), context.plans(), region);
  context.lower_region(region, steps);
  context.with_steps(steps, [&] {
    for (int i = 0; i < instruction.num_results(); ++i)
      if (!claimed[static_cast<size_t>(i)])
        emit_copy(context, region.results()[static_cast<size_t>(i)],
                  context.place_of(result_of(instruction, i)), instruction.location());
  });
}

} // namespace

void emit_if(LoweringContext& context, const Instruction& instruction) {
  kernel::Step step;
  step.kind = kernel::Step::Kind::If;
  step.location = instruction.location();
  BufferSlice condition = context.place_of(instruction.operand(0));
  step.condition = {condition.buffer, condition.byte_offset};
  lower_branch(context, instruction, 0, step.first);
  lower_branch(context, instruction, 1, step.second);
  context.steps().push_back(std::move(step));
}

void emit_while(LoweringContext& context, const Instruction& instruction) {
  const Region &condition = instruction.region(0), &body = instruction.region(1);
  size_t count = static_cast<size_t>(instruction.num_operands());
  std::vector<BufferSlice> carried;
  for (size_t i = 0; i < count; ++i) {
    int n = static_cast<int>(i);
    carried.push_back(context.place_of(result_of(instruction, n)));
    emit_copy(context, instruction.operand(n), carried[i], instruction.location());
    context.places().set_place(condition.parameter(n), carried[i]);
    context.places().set_place(body.parameter(n), carried[i]);
  }
  kernel::Step step;
  step.kind = kernel::Step::Kind::While;
  step.location = instruction.location();
  memory::place_views(context.places(), context.plans(), condition);
  memory::place_concatenations(context.places(), context.plans(), condition);
  context.lower_region(condition, step.first);
  BufferSlice holds = context.place_of(condition.results()[0]);
  step.condition = {holds.buffer, holds.byte_offset};

  memory::place_views(context.places(), context.plans(), body);
  std::vector<bool> done(count, false);
  for (size_t i = 0; i < count; ++i) {
    auto [root, offset] = context.places().root_of(body.results()[i]);
    done[i] = (root == body.parameter(static_cast<int>(i)) && offset == 0) ||
              (is_free_for_result(context, body, i) &&
               memory::claim_place(context.places(), body.results()[i], body, carried[i]));
  }
  memory::place_concatenations(context.places(), context.plans(), body);
  context.lower_region(body, step.second);
  context.with_steps(step.second, [&] {
    // New values that are old values of other slots are saved before any slot is overwritten.
    std::vector<BufferSlice> from(count);
    for (size_t i = 0; i < count; ++i) {
      if (done[i]) continue;
      Value result = body.results()[i];
      from[i] = context.place_of(result);
      bool is_old = std::any_of(carried.begin(), carried.end(),
                                [&](BufferSlice p) { return p.buffer == from[i].buffer; });
      if (!is_old) continue;
      int saved = context.add_scratch_buffer(bytes_at_bound(result.type()), "saved");
      emit_copy(context, from[i], {saved, 0}, result.type(), instruction.location());
      from[i] = {saved, 0};
    }
    for (size_t i = 0; i < count; ++i)
      if (!done[i]) emit_copy(context, from[i], carried[i], body.results()[i].type(), instruction.location());
  });
  context.steps().push_back(std::move(step));
}

} // namespace firn::lower
