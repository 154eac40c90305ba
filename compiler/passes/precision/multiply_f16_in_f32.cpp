// multiply-f16-in-f32: widens values of f16 that many products read over and over.
//
//   %d = dot %x, %w : f16[128,64]     ->     %a = convert %x : f32[128,768]
//                                            %b = convert %w : f32[768,64], constant
//                                            %c = dot %a, %b : f32[128,64]
//                                            %d = convert %c : f16[128,64]
//
// Where ops round their results to f16, their sums are f32 still. Where both factors are read as f16, each
// product of a tile waits for a conversion of its row's factor; widened where it is computed, a value is
// converted once. Every value still is one that f16 holds. Where rows are few, so that a product takes as
// long as its weights take to come, these stay as they are, if the CPU converts f16 at all, and so do
// products of two values that are computed.
//
// - Requires: weights are constants; behind simplify-algebra, which takes a value that is widened and
//   narrowed again for the value.
// - Establishes: nothing that later passes rely on.
// - Breaks: nothing; weights take twice their bytes, for which reason there is none of it for size.
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/graph_forms.h"
#include "compiler/plan/narrow_floats.h"

#include <map>

namespace firn {
namespace {

bool is_half(const Type& type) {
  return type.is_tensor() && type.dtype == DType::F16;
}

class Widening {
public:
  Widening(Region& region, const PassOptions& options) : region_(region), options_(options) {}

  bool run() {
    bool changed = false;
    for (Instruction* instruction : region_.snapshot()) {
      int weights = weights_of(*instruction);
      if (weights < 0 || is_memory_bound(*instruction, weights) || !options_.take_rewrite()) continue;
      widen_product(*instruction);
      changed = true;
    }
    for (const auto& [value, converted] : order_)
      if (is_elementwise(value.def->opcode())) share_converted(value, converted);
    return changed;
  }

private:
  // The number of the constant operand of a product of f16; -1 for other instructions. Its result may be f32,
  // if more is added before it is rounded.
  static int weights_of(const Instruction& contraction) {
    if (!is_contraction(contraction.opcode()) || !contraction.type().is_tensor()) return -1;
    if (!is_half(contraction.type()) && contraction.type().dtype != DType::F32) return -1;
    for (Value operand : contraction.operands())
      if (!is_half(operand.type())) return -1;
    for (int i : {1, 0})
      if (contraction.operand(i).def->is(Opcode::Constant)) return i;
    return -1;
  }

  // Whether the product waits for its weights. On CPUs that cannot convert f16 it waits for conversions
  // instead.
  bool is_memory_bound(const Instruction& contraction, int weights) const {
    return plan::widens_in_tiles(DType::F16, *options_.target) && has_few_rows(contraction, weights);
  }

  void widen_product(Instruction& contraction) {
    Value lhs = widen(contraction.operand(0)), rhs = widen(contraction.operand(1));
    GraphBuilder builder(region_, &contraction);
    builder.set_location(contraction.location());
    Type wide = contraction.type();
    wide.dtype = DType::F32;
    Attributes attributes = contraction.attributes();
    if (attributes.has("result")) attributes.set("result", DType::F32);
    Value product = builder.make_typed(contraction.opcode(), {lhs, rhs}, {wide}, attributes)->result();
    replace_instruction(contraction, builder.convert(product, contraction.type().dtype));
  }

  // The value as f32, converted once for all its readers.
  Value widen(Value value) {
    auto [known, is_new] = wide_.try_emplace({value.def, value.index});
    if (!is_new) return known->second;
    known->second = convert_behind(value, DType::F32);
    if (!constant_literal(value)) order_.push_back({value, known->second});
    return known->second;
  }

  Region& region_;
  const PassOptions& options_;
  std::map<std::pair<Instruction*, int>, Value> wide_;
  std::vector<std::pair<Value, Value>> order_; // computed values of `wide_`, in program order
};

} // namespace

bool multiply_f16_in_f32(Module& module, const PassOptions& options) {
  if (!options.target || options.goals.optimize_size() || !plan::multiplies_floats(*options.target))
    return false;
  bool changed = false;
  for_each_region(module, [&](Region& region) { changed |= Widening(region, options).run(); });
  return changed;
}

} // namespace firn
