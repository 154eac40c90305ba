// Kernels whose every result element is computed on its own: elementwise ops, data movement, and fusions of
// them.
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/elements/plan.h"
#include "compiler/plan/roots.h"

#include <algorithm>

namespace firn::lower {
namespace {

int64_t count_operations(const Instruction& instruction) {
  if (instruction.num_regions() == 0) return is_elementwise(instruction.opcode()) ? 1 : 0;
  int64_t count = 0;
  for (const auto& op : instruction.region().instructions()) count += count_operations(*op);
  return count;
}

// Steps of the longest loop that computes one element of a reduction, which is the instruction or within its
// region.
int64_t max_body_k(const Instruction& instruction) {
  int64_t max = 1;
  if (instruction.is(Opcode::Reduce))
    return instruction.operand(0).type().at_bound().num_elements() /
           std::max<int64_t>(1, instruction.type().at_bound().num_elements());
  if (instruction.is(Opcode::Fusion))
    for (const auto& inner : instruction.region().instructions()) max = std::max(max, max_body_k(*inner));
  return max;
}

// One walk over elements that computes `results` (of one type) side by side.
class ElementwiseKernel {
public:
  ElementwiseKernel(KernelMaker& maker, const Instruction& instruction, const plan::ElementsPlan& plan,
                    RegionLeaves leaves)
      : maker_(maker), instruction_(instruction), plan_(plan), leaves_(std::move(leaves)) {}

  // `source`: the value within the region that becomes the result.
  void add_result(Value source, Value result) {
    results_.push_back({source, result.type(), maker_.write(result), result.index});
  }

  void emit() {
    ElementLoops loops;
    loops.type = walked_type();
    loops.code = plan_.code;
    loops.uses = [&](const Index& index) { return analyse(index); };
    loops.body = [&](const Index& index, const Lanes& lanes) { emit_elements(index, lanes); };
    loops.body_k = max_body_k(instruction_);
    emit_element_loops(maker_, loops);
    maker_.set_flops(loops.type.at_bound().num_elements() * count_operations(instruction_));
  }

private:
  struct ElementResult {
    Value source;
    Type type;
    int buffer, number;
  };

  // The type whose elements are walked: a single result may be walked in the blocks of an operand, if the
  // plan says so.
  Type walked_type() const {
    Type type = results_[0].type;
    if (results_.size() != 1 || !plan_.in_blocks) return type;
    auto block = plan::reduced_blocks(instruction_, results_[0].number);
    if (!block) return type;
    for (int d = 0; d < type.rank(); ++d) type.layout.order.push_back(d);
    type.layout.blocks = {*block};
    return type;
  }

  // Emits one element into a kernel that is thrown away.
  ElementUses analyse(const Index& index) const {
    kernel::Kernel trial;
    kernel::Builder builder(trial);
    ElementUses uses;
    ElementEmitter emitter(builder);
    emitter.record_uses(&uses);
    emitter.set_code(plan_.code);
    leaves_.bind_recording(builder, emitter, &uses.offsets);
    for (const ElementResult& result : results_) {
      emitter.emit(result.source, index);
      uses.offsets.push_back(result.type.offset_of(index));
    }
    uses.operations += static_cast<int64_t>(trial.register_types.size());
    return uses;
  }

  void emit_elements(const Index& index, const Lanes& lanes) {
    ElementEmitter emitter(maker_.builder(), lanes);
    emitter.set_code(plan_.code);
    leaves_.bind_to(emitter);
    // All loads precede all stores: a result may lie where an operand did.
    std::vector<kernel::Register> values;
    for (const ElementResult& result : results_) values.push_back(emitter.emit(result.source, index));
    for (size_t i = 0; i < results_.size(); ++i)
      store_element(maker_.builder(), results_[i].buffer, results_[i].type, index, lanes, values[i]);
  }

  KernelMaker& maker_;
  const Instruction& instruction_;
  const plan::ElementsPlan& plan_;
  RegionLeaves leaves_;
  std::vector<ElementResult> results_;
};

// Whether the type has elements, at the bounds of dims that vary.
bool has_elements(const Type& type) {
  return type.at_bound().num_elements() > 0;
}

bool has_elements(const Instruction& instruction) {
  for (int i = 0; i < instruction.num_results(); ++i)
    if (has_elements(instruction.type(i))) return true;
  return false;
}

} // namespace

void emit_elements(LoweringContext& context, const Instruction& instruction, const plan::ElementsPlan& plan) {
  if (!has_elements(instruction)) return;
  bool has_region = instruction.is(Opcode::Fusion) ||
                    instruction.is(Opcode::Composite); // a reduction's region is its combiner
  // Results of one type share a walk; those of different types get a kernel each.
  std::vector<bool> done(static_cast<size_t>(instruction.num_results()), false);
  for (int first = 0; first < instruction.num_results(); ++first) {
    if (done[static_cast<size_t>(first)] || !has_elements(instruction.type(first))) continue;
    KernelMaker maker(context, instruction,
                      has_region ? "elementwise" : std::string(opcode_name(instruction.opcode())));
    ElementwiseKernel kernel(maker, instruction, plan,
                             has_region ? RegionLeaves(maker, instruction)
                                        : RegionLeaves::of_operands(maker, instruction));
    for (int i = first; i < instruction.num_results(); ++i) {
      if (instruction.type(i).dims != instruction.type(first).dims ||
          !(instruction.type(i).layout == instruction.type(first).layout))
        continue;
      Value result = result_of(instruction, i);
      kernel.add_result(has_region ? instruction.region().results()[static_cast<size_t>(i)] : result, result);
      done[static_cast<size_t>(i)] = true;
    }
    kernel.emit();
    maker.finish();
  }
}

} // namespace firn::lower
