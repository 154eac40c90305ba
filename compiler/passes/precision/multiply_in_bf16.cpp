// multiply-in-bf16: multiplies weights and activations as bf16, where the user asked for it, and adds in f32.
//
//   %d = dot %x, %w : f32[128,64]      ->      %a = convert %x : bf16[128,768]
//                                              %b = convert %w : bf16[768,64]
//                                              %d = dot %a, %b {result = f32}
//
// Where the CPU multiplies bf16 faster, both factors are narrow, and what is computed for such a product is
// stored narrow, and moved narrow on its way there: others that compute with it read that. Where rows are
// few, so that a product takes as long as its weights take to come from memory, the weights alone are: they
// are widened in registers, and the activations keep their digits. Other products stay as they are. Norms,
// softmax and sums stay in f32, and so do products of two values that are computed but for attention's
// (fuse-attention), depthwise convolutions, and convolutions of few channels where no tile matrices take the
// steps of a window as one row. Convolutions that Winograd's algorithm computes in less time than pairs of
// bf16 take stay in f32 too.
//
// - Requires: scales are folded into weights, and these are constants.
// - Establishes: nothing that later passes rely on.
// - Breaks: equality of values with those of f32, within what bf16 holds.
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/contraction/choose_matrices.h"
#include "compiler/plan/profitability.h"
#include "compiler/plan/winograd/winograd_in_f32.h"

#include <map>

namespace firn {
namespace {

class Narrowing {
public:
  Narrowing(Region& region, const PassOptions& options) : region_(region), options_(options) {}

  bool run() {
    bool changed = false;
    plan::PlanOptions planning{*options_.target, options_.goals};
    std::set<const Instruction*> wide = plan::faster_by_winograd(region_, planning);
    for (Instruction* instruction : region_.snapshot()) {
      int weights = weights_of(*instruction);
      if (weights < 0 || wide.count(instruction)) continue;
      bool few_rows = has_few_rows(*instruction, weights), pairs = !few_rows;
      if (pairs && !plan::is_profitable_in_bf16(*instruction, weights, *options_.target)) continue;
      if (!options_.take_rewrite()) continue;
      for (int i : {0, 1})
        if (i == weights || pairs) instruction->set_operand(i, narrow(instruction->operand(i)));
      instruction->attributes().set("result", DType::F32);
      changed = true;
    }
    hold_moved();
    for (const auto& [value, converted] : order_) share(value, converted);
    return changed;
  }

private:
  // The number of the constant operand of a product that may gain; -1 for other instructions.
  static int weights_of(const Instruction& contraction) {
    if (!is_contraction(contraction.opcode()) || !contraction.type().is_tensor() ||
        contraction.type().dtype != DType::F32)
      return -1;
    for (Value operand : contraction.operands())
      if (!operand.type().is_tensor() || operand.dtype() != DType::F32) return -1;
    if (contraction.is(Opcode::Convolution)) return contraction.operand(1).def->is(Opcode::Constant) ? 1 : -1;
    for (int i : {1, 0})
      if (contraction.operand(i).def->is(Opcode::Constant))
        return contracted_steps(contraction, i) >= plan::kMinStepsInBf16 ? i : -1;
    return -1;
  }

  Value narrow(Value value) {
    auto [known, is_new] = narrow_.try_emplace({value.def, value.index});
    if (!is_new) return known->second;
    known->second = convert_behind(value, DType::BF16);
    order_.push_back({value, known->second});
    return known->second;
  }

  // Makes lookups of rows of the weights read the narrow ones too, so that the wide ones are not stored.
  static void look_up(Value weights, Value converted) {
    for (Instruction* user : std::vector<Instruction*>(weights.def->users())) {
      if (!user->is(Opcode::Gather) || !(user->operand(0) == weights)) continue;
      GraphBuilder builder(*user->parent(), user);
      builder.set_location(user->location());
      Type type = user->type();
      type.dtype = DType::BF16;
      Value rows =
          builder.make_typed(Opcode::Gather, {converted, user->operand(1)}, {type}, user->attributes())
              ->result();
      user->parent()->replace_uses(user->result(), builder.convert(rows, DType::F32));
    }
  }

  static bool is_narrowing(const Instruction& instruction) {
    return instruction.is(Opcode::Convert) && instruction.type().dtype == DType::BF16;
  }

  // Whether every user reads the moved value narrow or is elementwise, and at least one reads it narrow.
  bool may_be_held(const Instruction& movement, const std::set<const Instruction*>& held) const {
    bool is_wanted = false;
    for (const Instruction* user : movement.users()) {
      bool reads_narrow = is_narrowing(*user) || held.count(user);
      if (user->parent() != movement.parent() || (!reads_narrow && !is_elementwise(user->opcode())))
        return false;
      is_wanted |= reads_narrow;
    }
    return is_wanted && static_cast<size_t>(movement.num_uses(0)) == movement.users().size();
  }

  // Whether it moves anything but constants.
  static bool moves_computed(const Instruction& instruction) {
    bool computed = false;
    for (int i = 0; i < moved_operands(instruction); ++i)
      computed |= !instruction.operand(i).def->is(Opcode::Constant);
    return computed;
  }

  // Narrows values that are moved on their way to such products where they are computed.
  void hold_moved() {
    std::vector<Instruction*> movements;
    std::set<const Instruction*> held;
    for (Instruction* instruction : region_.snapshot()) {
      bool is_moved = moves_computed(*instruction) && instruction->type().is_tensor() &&
                      instruction->type().dtype == DType::F32;
      if (is_moved && held.insert(instruction).second) movements.push_back(instruction);
    }
    for (size_t count = 0; count != held.size();) {
      count = held.size();
      std::erase_if(held, [&](const Instruction* movement) { return !may_be_held(*movement, held); });
    }
    std::erase_if(movements, [&](Instruction* movement) { return held.count(movement) == 0; });
    for (Instruction* movement : movements) hold(*movement);
    for (auto movement = movements.rbegin(); movement != movements.rend(); ++movement)
      region_.erase(*movement);
  }

  void hold(Instruction& movement) {
    Value wide = movement.result();
    std::vector<Value> operands;
    for (int i = 0; i < moved_operands(movement); ++i) operands.push_back(narrow(movement.operand(i)));
    GraphBuilder builder(*movement.parent(), behind(wide));
    builder.set_location(movement.location());
    Value held = moved(builder, movement, operands);
    std::vector<Instruction*> others;
    for (Instruction* user : std::vector<Instruction*>(movement.users())) {
      if (is_narrowing(*user)) {
        region_.replace_uses(user->result(), held);
        region_.erase(user);
      } else if (is_elementwise(user->opcode())) {
        others.push_back(user);
      }
    }
    read_converted(wide, held, others);
    std::erase_if(order_, [&](const auto& known) { return known.first == wide; });
    narrow_[{&movement, 0}] = held;
  }

  // Elementwise users of a computed value read it narrow too: then it is stored once.
  static void share(Value value, Value converted) {
    if (value.def->is(Opcode::Constant)) return look_up(value, converted);
    bool is_computed = is_elementwise(value.def->opcode()) || is_contraction(value.def->opcode());
    if (!is_computed || static_cast<size_t>(value.def->num_uses(value.index)) != value.def->users().size())
      return;
    std::vector<Instruction*> users;
    for (Instruction* user : value.def->users()) {
      if (user == converted.def) continue;
      if (!is_elementwise(user->opcode()) || user->parent() != value.def->parent()) return;
      users.push_back(user);
    }
    read_converted(value, converted, users);
  }

  Region& region_;
  const PassOptions& options_;
  std::map<std::pair<Instruction*, int>, Value> narrow_;
  std::vector<std::pair<Value, Value>> order_; // the pairs of `narrow_`, in program order
};

} // namespace

bool multiply_in_bf16(Module& module, const PassOptions& options) {
  if (!options.target || options.goals.precision != Precision::BF16 || options.goals.strict_math())
    return false;
  bool changed = false;
  for_each_region(module, [&](Region& region) { changed |= Narrowing(region, options).run(); });
  return changed;
}

} // namespace firn
