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
// - Requires: nothing; before passes that look for products of quantised weights.
// - Establishes: recurrent composites of more than one step are projected.
#include "compiler/graph/times_transposed.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/recurrent_layers.h"

namespace firn {
namespace {

bool project(GraphBuilder& b, RecurrentLayer& layer) {
  RecurrentOperands& o = layer.operands;
  if (layer.projected() || o.w_scales || o.x.type().dims[0] == Dim(1)) return false;
  o.x = b.binary(Opcode::Add, times_transposed(b, o.x, o.w), o.b);
  o.w = o.b = Value{};
  return true;
}

} // namespace

bool project_recurrent_inputs(Module& module, const PassOptions& options) {
  return rewrite_recurrent_layers(module, options, project);
}

} // namespace firn
