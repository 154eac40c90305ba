// See recurrent_layers.h.
#include "compiler/passes/recurrent_layers.h"

#include "compiler/passes/rewrite.h"

namespace firn {
namespace {

Instruction* make(GraphBuilder& builder, const RecurrentLayer& layer) {
  switch (layer.kind) {
  case RecurrentKind::Lstm: return make_lstm(builder, layer.operands, layer.options);
  case RecurrentKind::Gru: return make_gru(builder, layer.operands, layer.options);
  case RecurrentKind::Rnn: break;
  }
  return make_rnn(builder, layer.operands, layer.options);
}

bool rewrite_in(Region& region, const PassOptions& options, const RecurrentRule& rule) {
  bool changed = false;
  for (Instruction* instruction : region.snapshot()) {
    auto layer = instruction->is(Opcode::Composite) ? read_recurrent(*instruction) : std::nullopt;
    if (!layer) continue;
    GraphBuilder builder(region, instruction);
    if (!rule(builder, *layer) || !options.take_rewrite()) continue;
    Instruction* made = make(builder, *layer);
    for (int i = 0; i < instruction->num_results(); ++i)
      region.replace_uses(instruction->result(i), made->result(i));
    region.erase(instruction);
    changed = true;
  }
  return changed;
}

} // namespace

bool rewrite_recurrent_layers(Module& module, const PassOptions& options, const RecurrentRule& rule) {
  bool changed = false;
  for_each_region(module, [&](Region& region) { changed |= rewrite_in(region, options, rule); });
  return changed;
}

} // namespace firn
