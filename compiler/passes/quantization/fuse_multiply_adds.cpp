// fuse-multiply-adds: makes products and additions in front of a quantisation multiply-adds, which round
// once, and divides by means of multiply-adds.
//
//   %p = multiply %sums, %scales                     ->    %y = multiply_add %sums, %scales, %bias
//   %y = add %p, %bias                                     %q = narrow %y {...} : u8
//   %q = narrow %y {...} : u8
//
// Values between two quantisations are not computed operation by operation as in the model: scales are joined
// where integers are multiplied as such. One rounding less moves results no further, and products over few
// channels spend more instructions on the epilogue than on sums.
//
// Other values, such as a network's inputs, are divided by their scale as the standard has it. A division
// takes as long as sixteen products, and the error of the product with the inverse is known exactly:
//
//   %q = divide %x, %scale        ->    %p = multiply %x, %inverse
//                                       %e = multiply_add %p, -%scale, %x
//                                       %q = multiply_add %e, %inverse, %p
//
// (P. Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990.)
//
// - Requires: fusions formed; other passes do not look for products that are added to.
// - Establishes, breaks: nothing.
#include "compiler/graph/fusion.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/quantization/quantized_values.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/graph_forms.h"

#include <algorithm>
#include <unordered_set>

namespace firn {
namespace {

// The additions of a region in f32 whose results are only rounded to integers.
class QuantisedFloats {
public:
  explicit QuantisedFloats(Region& region) : region_(region) {
    std::vector<Instruction*> order = region.snapshot();
    for (auto at = order.rbegin(); at != order.rend(); ++at) add(**at);
  }
  const std::vector<Instruction*>& additions() const { return additions_; }

private:
  void add(Instruction& instruction) {
    bool computes = is_elementwise(instruction.opcode()) && instruction.type().dtype == DType::F32;
    if (!computes || is_returned(instruction)) return;
    const auto& users = instruction.users();
    bool is_read = std::all_of(users.begin(), users.end(), [&](const Instruction* user) {
      return found_.count(user) > 0 || user->is(Opcode::Narrow);
    });
    if (!is_read || users.empty()) return;
    found_.insert(&instruction);
    if (instruction.is(Opcode::Add)) additions_.push_back(&instruction);
  }

  bool is_returned(const Instruction& instruction) const {
    const auto& results = region_.results();
    return std::any_of(results.begin(), results.end(),
                       [&](Value result) { return result.def == &instruction; });
  }

  const Region& region_;
  std::unordered_set<const Instruction*> found_;
  std::vector<Instruction*> additions_; // last ones first
};

// The operand of an addition that is a product for this addition alone; null: none is.
Instruction* added_product(const Instruction& add) {
  for (Value operand : add.operands())
    if (operand.def->is(Opcode::Multiply) && has_one_use(operand)) return operand.def;
  return nullptr;
}

bool fuse_in(Region& region, const PassOptions& options) {
  bool changed = false;
  QuantisedFloats quantised(region);
  for (Instruction* add : quantised.additions()) {
    Instruction* product = added_product(*add);
    if (!product || !comes_of_integers(add->result()) || !options.take_rewrite()) continue;
    Value addend = add->operand(add->operand(0).def == product ? 1 : 0);
    GraphBuilder builder(region, add);
    builder.set_location(add->location());
    replace_instruction(*add,
                        builder.op(Opcode::MultiplyAdd, {product->operand(0), product->operand(1), addend}));
    erase_if_dead(product);
    changed = true;
  }
  return changed;
}

// The quotient of a value that is then quantised. What lies beyond the range by more than a step is brought
// nearer before: a product that overflows would leave no number.
Value divide_by_products(GraphBuilder& builder, const Quantized& to, double scale) {
  const Value x = to.y.def->operand(0);
  auto number = [&](double value) { return make_splat(builder, x.type(), value); };
  auto bound = [&](double steps) { return number((steps - static_cast<double>(to.by.zero_point)) * scale); };
  Value near = builder.op(Opcode::Clamp, {bound(to.low - 1), x, bound(to.high + 1)}),
        inverse = number(1 / scale), product = builder.op(Opcode::Multiply, {near, inverse}),
        rest = builder.op(Opcode::MultiplyAdd, {product, number(-scale), near});
  return builder.op(Opcode::MultiplyAdd, {rest, inverse, product});
}

bool replace_divisions(Region& region, const PassOptions& options) {
  constexpr double kMin = 0x1p-60, kMax = 0x1p60; // whose products with numbers of steps are normal
  bool changed = false;
  for (Instruction* narrow : region.snapshot()) {
    auto to = narrowed(*narrow);
    if (!to || !to->y.def->is(Opcode::Divide) || !has_one_use(to->y)) continue;
    auto scale = splat_value(to->y.def->operand(1));
    if (!scale || !(*scale >= kMin && *scale <= kMax) || !options.take_rewrite()) continue;
    Instruction* division = to->y.def;
    GraphBuilder builder(region, division);
    builder.set_location(division->location());
    replace_instruction(*division, divide_by_products(builder, *to, *scale));
    changed = true;
  }
  return changed;
}

} // namespace

bool fuse_multiply_adds(Module& module, const PassOptions& options) {
  if (!options.target || !plan::fuses_multiply_adds(*options.target) || options.goals.strict_math())
    return false;
  bool changed = false;
  for_each_region(module, [&](Region& region) {
    for (Instruction* instruction : region.snapshot())
      if (instruction->is(Opcode::Fusion)) {
        changed |= fuse_in(instruction->region(), options);
        if (!options.goals.optimize_size()) changed |= replace_divisions(instruction->region(), options);
      }
  });
  return changed;
}

} // namespace firn
