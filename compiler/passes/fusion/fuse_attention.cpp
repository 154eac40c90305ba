// fuse-attention: makes one kernel of attention, so that the matrix of scores never exists as a whole.
//
//   %s = dot %q, %k                              %y = fusion %q, %k, %v, %mask {kind = attention}
//   %m = add(multiply(%s, %scale), %mask)    ->    region(...) { dot, multiply, add, softmax, dot and
//   %w = composite %m {name = softmax}             transpose as before; return the last }
//   %y = transpose(dot %w, %v)
//
// What computes the scores from the first dot may be any elementwise code: scales, masks that are added or
// selected, caps. The operands of the dots are read through slices, transposes, broadcasts and reshapes where
// strides can say what those do, and the result is stored as a transpose behind the last dot wants it. Scores
// divided by a constant are multiplied by its inverse, but not in strict mode: a rounding more is little
// beside those of the dot, and divisions take longer than the rest of softmax.
//
// Where the user asked for products in bf16, {factors = bf16} leaves it to the plan whether the dots' are.
//
// - Requires: softmax as a composite; layouts are assigned.
// - Establishes: no dot(softmax(dot)) of f32 is left whose parts have no other use.
// - Breaks: other passes do not look inside.
#include "compiler/graph/attention.h"
#include "compiler/passes/fusion/fusion_builder.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <unordered_set>

namespace firn {
namespace {

class AttentionFuser {
public:
  explicit AttentionFuser(const Attention& attention) {
    add(attention.last);
    add(attention.values);
    for (Value operand : attention.values->operands()) add_movements(operand, attention.v.source);
    add(attention.softmax);
    for (Instruction* instruction : attention.path) add(instruction);
    for (Instruction* instruction : attention.path) add_mask(*instruction);
    add(attention.scores);
    add_movements(attention.scores->operand(0), attention.q.source);
    add_movements(attention.scores->operand(1), attention.k.source);
  }

  // The members in program order.
  std::vector<Instruction*> members(const Region& region) const {
    std::vector<Instruction*> ordered;
    for (const auto& instruction : region.instructions())
      if (inside_.count(instruction.get())) ordered.push_back(instruction.get());
    return ordered;
  }

private:
  void add(Instruction* instruction) { inside_.insert(instruction); }

  // The chain of movements that the kernel reads through, from `value` down to the source.
  void add_movements(Value value, Value source) {
    for (; !(value == source) && is_movement(value.def->opcode()); value = value.def->operand(0))
      add(value.def);
  }

  // Adds the producers of a mask: broadcasting it to the scores' dims costs nothing inside the kernel, and a
  // tensor as large as the scores outside.
  void add_mask(const Instruction& user) {
    for (Value operand : user.operands()) {
      Instruction* producer = operand.def;
      if (inside_.count(producer)) continue;
      bool widens = producer->is(Opcode::BroadcastInDim);
      bool computes = is_elementwise(producer->opcode()) && has_one_use(operand) &&
                      producer->num_results() == 1 && producer->type().is_tensor() &&
                      producer->type().layout.is_plain();
      if (!widens && !computes) continue;
      add(producer);
      if (computes) add_mask(*producer);
    }
  }

  std::unordered_set<const Instruction*> inside_;
};

// The number whose inverse may scale scores in place of a division by it.
std::optional<double> divisor_of(const Instruction& instruction) {
  if (!instruction.is(Opcode::Divide)) return std::nullopt;
  auto divisor = splat_value(instruction.operand(1));
  return divisor && std::isnormal(static_cast<float>(1 / *divisor)) ? divisor : std::nullopt;
}

bool multiply_by_inverses(Region& region, const PassOptions& options) {
  std::vector<Instruction*> scaled;
  for (Instruction* last : region.snapshot()) {
    if (!last->is(Opcode::Dot)) continue;
    auto attention = match_attention(*last);
    if (!attention) continue;
    for (Instruction* step : attention->path)
      if (divisor_of(*step) && std::find(scaled.begin(), scaled.end(), step) == scaled.end())
        scaled.push_back(step);
  }
  bool changed = false;
  for (Instruction* instruction : scaled) {
    if (!options.take_rewrite()) return changed;
    changed = true;
    GraphBuilder builder(*instruction->parent(), instruction);
    Value inverse = make_splat(builder, instruction->type(), 1 / *divisor_of(*instruction));
    replace_instruction(*instruction, builder.op(Opcode::Multiply, {instruction->operand(0), inverse}));
  }
  return changed;
}

bool fuse_in(Region& region, const PassOptions& options) {
  bool changed = false;
  std::vector<Instruction*> order = region.snapshot();
  std::unordered_set<const Instruction*> done;
  for (size_t i = order.size(); i-- > 0;) { // later first: a transpose before the dot that it follows
    Instruction& last = *order[i];
    if (!last.is(Opcode::Dot) && !last.is(Opcode::Transpose)) continue;
    if (done.count(&last)) continue;
    auto attention = match_attention(last);
    if (!attention || !options.take_rewrite()) continue;
    done.insert(attention->values);
    Instruction* fusion = make_fusion(AttentionFuser(*attention).members(region), FusionKind::Attention);
    if (options.goals.precision == Precision::BF16 && !options.goals.strict_math())
      fusion->attributes().set("factors", DType::BF16);
    changed = true;
  }
  return changed;
}

} // namespace

bool fuse_attention(Module& module, const PassOptions& options) {
  bool changed = false;
  for_each_region(module, [&](Region& region) {
    if (!options.goals.strict_math()) changed |= multiply_by_inverses(region, options);
    changed |= fuse_in(region, options);
  });
  return changed;
}

} // namespace firn
