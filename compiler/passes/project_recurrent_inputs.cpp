// project-recurrent-inputs: takes the input's part of the gates out of recurrent layers, so that it is one
// dot over all steps rather than one per step.
//
//   %y:3 = composite %x, %w, %r, %b, %h, %c {name = lstm, ...}
//     ->
//   %d = dot %x, %w {lhs_contract = [2], rhs_contract = [1], ...}
//   %g = add %d, broadcast %b
//   %y:3 = composite %g, %r, %h, %c {name = lstm, projected = true, ...}
//
// Layers of one step keep their input: their kernel reads both weights in one pass.
//
// - Requires: nothing.
// - Establishes: recurrent composites of more than one step are projected.
#include "compiler/graph/recurrent_cells.h"
#include "compiler/graph/times_transposed.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace firn {
namespace {

Value project(GraphBuilder& b, const RecurrentOperands& from) {
  return b.binary(Opcode::Add, times_transposed(b, from.x, from.w), from.b);
}

bool project_in(Region& region, const PassOptions& options) {
  bool changed = false;
  for (Instruction* instruction : region.snapshot()) {
    auto layer = instruction->is(Opcode::Composite) ? read_recurrent(*instruction) : std::nullopt;
    if (!layer || layer->projected() || layer->operands.x.type().dims[0] == Dim(1) || !options.take_rewrite())
      continue;
    GraphBuilder b(region, instruction);
    RecurrentOperands operands = layer->operands;
    operands.x = project(b, operands);
    operands.w = operands.b = Value{};
    Instruction* made = layer->kind == RecurrentKind::Lstm  ? make_lstm(b, operands, layer->options)
                        : layer->kind == RecurrentKind::Gru ? make_gru(b, operands, layer->options)
                                                            : make_rnn(b, operands, layer->options);
    for (int i = 0; i < instruction->num_results(); ++i)
      region.replace_uses(instruction->result(i), made->result(i));
    region.erase(instruction);
    changed = true;
  }
  return changed;
}

} // namespace

bool project_recurrent_inputs(Module& module, const PassOptions& options) {
  bool changed = false;
  for_each_region(module, [&](Region& region) { changed |= project_in(region, options); });
  return changed;
}

} // namespace firn
