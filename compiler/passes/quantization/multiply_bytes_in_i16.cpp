// multiply-bytes-in-i16: widens bytes that products read over and over.
//
//   %c = convolution %x, %w {result = i32}       ->     %a = convert %x : i16[1,64,56,56]
//                                                       %c = convolution %a, %w {result = i32}
//
// Where the CPU multiplies pairs of i16 but no groups of bytes, each product of a tile takes the bytes of its
// row apart, for every group of columns again. Widened where they are computed, they are multiplied as they
// come from memory; constant weights stay bytes, which a load widens for all rows of a tile. Movements and
// maxima on the way move what is widened. Sums are the same bits.
//
// - Requires: behind simplify-algebra, which takes a value that is widened and narrowed again for the value.
// - Establishes: nothing that later passes rely on.
// - Breaks: nothing; values between layers take twice their bytes, for which reason there is none of it for
//   size.
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/byte_values.h"
#include "compiler/plan/winograd/winograd.h"

#include <map>

namespace firn {
namespace {

class Widening {
public:
  Widening(Region& region, const PassOptions& options) : region_(region), options_(options) {}

  bool run() {
    bool changed = false;
    for (Instruction* instruction : region_.snapshot()) {
      int rows = rows_of(*instruction);
      if (rows < 0 || !options_.take_rewrite()) continue;
      instruction->set_operand(rows, widen(instruction->operand(rows)));
      changed = true;
    }
    for (const auto& [value, converted] : order_)
      if (!value.def->is(Opcode::Constant) && !value.def->is(Opcode::Parameter))
        share_converted(value, converted);
    return changed;
  }

private:
  // The operand each of whose elements is multiplied with many: the computed one, or the first if both are
  // computed. -1 if this is no product of bytes, or gains nothing.
  int rows_of(const Instruction& contraction) const {
    if (!is_contraction(contraction.opcode()) || !contraction.type().is_tensor() ||
        contraction.type().dtype != DType::I32 || !plan::is_byte(contraction.operand(0)) ||
        !plan::is_byte(contraction.operand(1)))
      return -1;
    if (contraction.is(Opcode::Convolution) && contraction.operand(1).type().dim(1) == 1) return -1;
    int rows = contraction.operand(0).def->is(Opcode::Constant) ? 1 : 0;
    return contraction.operand(rows).def->is(Opcode::Constant) || !is_profitable(contraction) ? -1 : rows;
  }

  bool is_profitable(const Instruction& contraction) const {
    return plan::is_profitable_in_i16(contraction, *options_.target,
                                      options_.goals.winograd != Winograd::Off);
  }

  Value widen(Value value) {
    auto [known, is_new] = wide_.try_emplace({value.def, value.index});
    if (!is_new) return known->second;
    Value wide = moves_bytes(*value.def)       ? moved(*value.def)
                 : is_within_bytes(*value.def) ? convert_instead(value)
                                               : convert_behind(value, DType::I16);
    order_.push_back({value, wide});
    return wide_[{value.def, value.index}] = wide;
  }

  // Whether the instruction makes bytes of floats that lie between their bounds: as i16 they are the same
  // numbers.
  static bool is_within_bytes(const Instruction& convert) {
    if (convert.is(Opcode::Narrow)) return true;
    bool converts = convert.is(Opcode::Convert) && is_float(convert.operand(0).dtype());
    if (!converts) return false;
    return plan::lies_within(convert.operand(0), plan::bounds_of(convert.type().dtype));
  }

  static Value convert_instead(Value bytes) {
    GraphBuilder builder(*bytes.def->parent(), behind(bytes));
    builder.set_location(bytes.def->location());
    if (!bytes.def->is(Opcode::Narrow)) return builder.convert(bytes.def->operand(0), DType::I16);
    Attributes attributes = bytes.def->attributes();
    attributes.set("to", DType::I16);
    return builder.op(Opcode::Narrow, {bytes.def->operand(0)}, std::move(attributes));
  }

  // Whether the op moves bytes of operands that are to be widened instead. Tables of bytes, and constants of
  // which a run reads some rows, stay half as large.
  static bool moves_bytes(const Instruction& instruction) {
    return moved_operands(instruction) > 0 && !instruction.is(Opcode::Gather);
  }

  Value moved(Instruction& movement) {
    std::vector<Value> operands;
    for (int i = 0; i < moved_operands(movement); ++i) operands.push_back(widen(movement.operand(i)));
    GraphBuilder builder(*movement.parent(), behind(movement.result()));
    builder.set_location(movement.location());
    return firn::moved(builder, movement, operands);
  }

  Region& region_;
  const PassOptions& options_;
  std::map<std::pair<Instruction*, int>, Value> wide_;
  std::vector<std::pair<Value, Value>> order_; // the pairs of `wide_`, in program order
};

} // namespace

bool multiply_bytes_in_i16(Module& module, const PassOptions& options) {
  if (!options.target || options.goals.optimize_size()) return false;
  bool changed = false;
  for_each_region(module, [&](Region& region) { changed |= Widening(region, options).run(); });
  return changed;
}

} // namespace firn
