// widen-narrow-floats: computes models of f16 and bf16 in f32, and rounds what is stored as such.
//
//   %d = dot %x, %w : f16[128,64]       ->    %a = convert %x : f32[128,768]
//   %s = add %d, %bias : f16[128,64]          %b = convert %w : f32[768,64], constant
//   %y = tanh %s : f16[128,64]                %d = dot %a, %b : f32[128,64]
//                                             %s = add %d, (convert %bias) : f32[128,64]
//                                             %y = convert (tanh %s) {to = f16} : f16[128,64]
//
// Kernels compute in f32 between what they load and what they store, whatever the type: sums, functions and
// activations. Rounding each result on the way there costs two conversions and digits. Without it such a
// model is one of f32, with all that other passes do for those. Values are rounded where the model can see
// them: at inputs, outputs and states, where it compares them or converts them from f32 or to other types,
// and at ops that are left in their type, such as lookups in tables, recurrent layers and loops. Weights that
// few rows read stay narrow: such a product takes as long as they take to come. Factors of bf16 stay so where
// the CPU multiplies those faster.
//
// - Requires: quantised values have found their forms, which count on the types of scales.
// - Establishes: no arithmetic of f16 is left beside that of the ops named above. Conversions from f32 to f32
//   are left to eliminate-nops.
// - Breaks: equality with values that are rounded at each op; --math=strict has none of it, nor has -Os,
//   for which activations keep their bytes.
#include "compiler/graph/composites.h"
#include "compiler/graph/scalar_ops.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/contraction/choose_matrices.h"
#include "compiler/plan/narrow_floats.h"

#include <algorithm>
#include <map>

namespace firn {
namespace {

bool is_narrow(const Type& type) {
  return type.is_tensor() && scalar_ops::is_narrow_float(type.dtype);
}
bool has_narrow(const Instruction& instruction) {
  for (Value operand : instruction.operands())
    if (is_narrow(operand.type())) return true;
  for (int i = 0; i < instruction.num_results(); ++i)
    if (is_narrow(instruction.type(i))) return true;
  return false;
}

Type widened(Type type) {
  if (is_narrow(type)) type.dtype = DType::F32;
  return type;
}

// Composites that other passes and kernels know in f32 with the same attributes. Not among them are those
// whose results a loop feeds back, and those that read packed or tabulated constants.
bool is_widened_composite(const Instruction& instruction) {
  static constexpr std::string_view names[] = {"softmax",    "log_softmax", "layer_norm",   "rms_norm",
                                               "gelu",       "silu",        "hard_swish",   "mish",
                                               "group_norm", "resample",    "instance_norm"};
  return std::any_of(std::begin(names), std::end(names),
                     [&](std::string_view name) { return is_composite(instruction, name); });
}

// Whether the op is computed in f32. Conversions round, and comparisons take rounded values.
bool computes(const Instruction& instruction) {
  if (is_contraction(instruction.opcode())) return true;
  if (instruction.is(Opcode::Convert) || !is_narrow(instruction.type())) return false;
  return is_elementwise(instruction.opcode()) || instruction.is(Opcode::Reduce) ||
         instruction.is(Opcode::ReduceWindow) || is_widened_composite(instruction);
}

bool moves(const Instruction& instruction) {
  OpClass op_class = op_info(instruction.opcode()).op_class;
  return op_class == OpClass::Movement && !instruction.is(Opcode::BitcastConvert) &&
         !has_trait(instruction.opcode(), Indexed);
}

// Whether the value is a constant, also behind movements.
bool is_constant(Value value) {
  while (has_trait(value.def->opcode(), Strided)) value = value.def->operand(0);
  return value.def->is(Opcode::Constant);
}

class NarrowFloats {
public:
  explicit NarrowFloats(const PassOptions& options) : options_(options) {}

  bool run(Region& region) {
    bool changed = false;
    for (Instruction* instruction : region.snapshot()) {
      bool is_leaf = op_info(instruction->opcode()).op_class == OpClass::Leaf;
      if (is_leaf || !has_narrow_or_wide(*instruction)) continue;
      if (instruction->is(Opcode::Convert) && drop_rounding(*instruction)) continue;
      bool widens = has_narrow(*instruction) &&
                    (computes(*instruction) || (moves(*instruction) && moves_wide(*instruction)));
      if (widens && options_.take_rewrite()) {
        widen(*instruction);
        changed = true;
      } else if (op_info(instruction->opcode()).op_class != OpClass::Shape) {
        narrow_operands(*instruction);
      }
    }
    for (size_t i = 0; i < region.results().size(); ++i)
      region.set_result(static_cast<int>(i), narrow(region.results()[i]));
    return changed;
  }

private:
  using Key = std::pair<const Instruction*, int>;
  static Key key(Value value) { return {value.def, value.index}; }

  // Whether the value, of a narrow type in the model, has become f32.
  bool is_wide(Value value) const { return dtype_of_.count(key(value)) > 0; }
  bool has_narrow_or_wide(const Instruction& instruction) const {
    return has_narrow(instruction) ||
           std::any_of(instruction.operands().begin(), instruction.operands().end(),
                       [&](Value operand) { return is_wide(operand); });
  }
  // Whether a movement is done in f32. Values that come narrow from memory, such as states, are moved narrow.
  bool moves_wide(const Instruction& instruction) const {
    bool any = false;
    for (Value operand : instruction.operands()) {
      if (is_narrow(operand.type()) && !is_constant(operand)) return false;
      any |= is_wide(operand);
    }
    return any;
  }

  void widen(Instruction& instruction) {
    std::vector<Value> operands = instruction.operands();
    for (int i = 0; i < instruction.num_operands(); ++i) {
      Value& operand = operands[static_cast<size_t>(i)];
      if (stays_narrow(instruction, i))
        operand = narrow(operand);
      else if (is_narrow(operand.type()))
        operand = wide(operand);
    }
    instruction.set_operands(operands);
    bool keeps_operands = is_contraction(instruction.opcode()) &&
                          std::any_of(operands.begin(), operands.end(),
                                      [](Value operand) { return is_narrow(operand.type()); });
    for (int i = 0; i < instruction.num_regions(); ++i) widen_region(instruction.region(i));
    widen_attributes(instruction);
    for (int i = 0; i < instruction.num_results(); ++i) {
      if (!is_narrow(instruction.type(i))) continue;
      dtype_of_[key(instruction.result(i))] = instruction.type(i).dtype;
      instruction.set_type(widened(instruction.type(i)), i);
      if (keeps_operands) instruction.attributes().set("result", DType::F32);
      round_where_seen(instruction.result(i));
    }
  }

  // Whether the operand stays narrow: weights that a product waits for, and both factors of bf16 if their
  // product is faster in bf16.
  bool stays_narrow(const Instruction& instruction, int operand) const {
    if (!is_contraction(instruction.opcode())) return false;
    bool is_weights = is_constant(instruction.operand(operand));
    return multiplies_in_bf16(instruction) ||
           (is_weights && plan::widens_in_tiles(instruction.operand(operand).dtype(), *options_.target) &&
            has_few_rows(instruction, operand));
  }
  bool multiplies_in_bf16(const Instruction& instruction) const {
    if (!is_contraction(instruction.opcode()) || dtype_in_model(instruction.operand(0)) != DType::BF16 ||
        dtype_in_model(instruction.operand(1)) != DType::BF16)
      return false;
    int weights = instruction.operand(0).def->is(Opcode::Constant) ? 0 : 1;
    return plan::is_profitable_in_bf16(instruction, weights, *options_.target);
  }
  DType dtype_in_model(Value value) const {
    auto known = dtype_of_.find(key(value));
    return known == dtype_of_.end() ? value.dtype() : known->second;
  }

  // Operators that are defined in f32 convert what they take and give: no digits are lost on the way to f32,
  // nor from there within one node of the model. A Cast of the model is a node of its own, and rounds.
  bool drop_rounding(Instruction& convert) {
    Value from = convert.operand(0), to = convert.result();
    if (is_wide(from) && to.dtype() == DType::F32) return true; // converts f32 to f32 now
    bool is_own = from.dtype() == DType::F32 && is_narrow(to.type()) && is_elementwise(from.def->opcode()) &&
                  from.def->location() == convert.location() && has_one_use(from);
    if (!is_own || from.def->parent() != convert.parent() || is_rounded(to)) return false;
    dtype_of_[key(from)] = to.dtype();
    narrow_[key(from)] = to;
    convert.parent()->replace_uses(to, from);
    return true;
  }

  // Whether a user needs the value rounded to its type: a conversion to another type, or a product of factors
  // that stay narrow. All users then read the rounded value, so that it is stored once.
  bool is_rounded(Value value) const {
    const auto& users = value.def->users();
    return std::any_of(users.begin(), users.end(), [&](const Instruction* user) {
      return (user->is(Opcode::Convert) && user->type().dtype != DType::F32) || multiplies_in_bf16(*user);
    });
  }
  void round_where_seen(Value value) {
    if (!is_rounded(value)) return;
    Value rounded = narrow(value);
    value.def->parent()->replace_uses(value, rounded);
    rounded.def->set_operand(0, value);
  }

  Value wide(Value value) {
    auto [known, is_new] = wide_.try_emplace(key(value));
    if (is_new) known->second = is_view(*value.def) ? wide_view(value) : convert_behind(value, DType::F32);
    return known->second;
  }
  // Views are taken of the source in f32, not converted: constants then fold, and dots see through the view.
  static bool is_view(const Instruction& instruction) {
    return instruction.is(Opcode::Transpose) || instruction.is(Opcode::Reshape) ||
           instruction.is(Opcode::BroadcastInDim);
  }
  Value wide_view(Value view) {
    Value source = wide(view.def->operand(0));
    GraphBuilder builder(*view.def->parent(), behind(view));
    builder.set_location(view.def->location());
    return builder.make_typed(view.def->opcode(), {source}, {widened(view.type())}, view.def->attributes())
        ->result();
  }

  // The value in the model's type.
  Value narrow(Value value) {
    auto dtype = dtype_of_.find(key(value));
    if (dtype == dtype_of_.end()) return value;
    auto [known, is_new] = narrow_.try_emplace(key(value));
    if (is_new) known->second = convert_behind(value, dtype->second);
    return known->second;
  }
  void narrow_operands(Instruction& instruction) {
    for (int i = 0; i < instruction.num_operands(); ++i)
      if (is_wide(instruction.operand(i))) instruction.set_operand(i, narrow(instruction.operand(i)));
  }

  // The body of a composite or reduction.
  static void widen_region(Region& region) {
    for (Instruction* instruction : region.snapshot()) {
      if (instruction->is(Opcode::Constant) && is_narrow(instruction->type())) {
        Value converted = convert_behind(instruction->result(), DType::F32);
        region.replace_uses(instruction->result(), converted);
        continue;
      }
      for (int i = 0; i < instruction->num_regions(); ++i) widen_region(instruction->region(i));
      widen_attributes(*instruction);
      for (int i = 0; i < instruction->num_results(); ++i)
        instruction->set_type(widened(instruction->type(i)), i);
      if (instruction->is(Opcode::Convert) && instruction->type() == instruction->operand(0).type())
        replace_instruction(*instruction, instruction->operand(0));
    }
    for (Instruction* instruction : region.snapshot())
      if (instruction->is(Opcode::Constant) || instruction->is(Opcode::Convert)) erase_if_dead(instruction);
  }

  static void widen_attributes(Instruction& instruction) {
    for (const char* name : {"result", "to", "stash"}) {
      const Attribute* attribute = instruction.attributes().find(name);
      const DType* dtype = attribute ? std::get_if<DType>(attribute) : nullptr;
      if (dtype && scalar_ops::is_narrow_float(*dtype)) instruction.attributes().set(name, DType::F32);
    }
  }

  const PassOptions& options_;
  std::map<Key, DType> dtype_of_;      // the model's dtypes of values that have become f32
  std::map<Key, Value> wide_, narrow_; // conversions
};

} // namespace

bool widen_narrow_floats(Module& module, const PassOptions& options) {
  if (!options.target ||
      !plan::computes_in_f32(*options.target, options.goals.strict_math(), options.goals.optimize_size()))
    return false;
  NarrowFloats floats(options);
  bool changed = false;
  for_each_region(module, [&](Region& region) { changed |= floats.run(region); });
  return changed;
}

} // namespace firn
