// The state of lowering one entry: the program that grows, the plans that it follows, and the places of
// values, which get their buffers here. Emitters ask for places, build kernels (kernel_maker.h) and add them.
//
// Unused lanes of a blocked layout's last block hold anything: nobody writes them on purpose, and no kernel
// may let them reach a result.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/lower/lower.h"
#include "compiler/memory/places.h"
#include "compiler/plan/fixed/plan.h"
#include "compiler/plan/plan_function.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace firn::lower {

using memory::BufferSlice;
using memory::bytes_at_bound;

inline Value result_of(const Instruction& instruction, int result = 0) {
  return const_cast<Instruction&>(instruction).result(result);
}

class FusedSpatialSum;
class KernelMaker;

class LoweringContext {
public:
  using Steps = std::vector<kernel::Step>;
  LoweringContext(kernel::Program& program, const plan::KernelPlans& plans, const LoweringOptions& options)
      : program_(program), plans_(plans), options_(options) {}

  const LoweringOptions& options() const { return options_; }
  // The CPU for which the instruction at hand is computed.
  const Machine& target() const { return is_for_baseline_ ? *options_.baseline : options_.target; }
  kernel::Program& program() { return program_; }
  const plan::KernelPlans& plans() const { return plans_; }
  plan::PlanOptions plan_options() const { return {options_.target, options_.goals}; }
  // Bytes of all constants of the module: what a run draws through the caches.
  int64_t model_weight_bytes() const { return plans_.model_weight_bytes; }

  // The places of values, as far as they are decided (memory/placement.h) or have been asked for.
  memory::Places& places() { return places_; }
  const memory::Places& places() const { return places_; }
  // The place of a value; buffers come into being when first asked for. Constants get a weights buffer only
  // then, so that weights which a kernel packs for itself are not stored twice.
  BufferSlice place_of(Value value);
  // Bytes known of the address of a place: 64 at most; inputs and outputs are aligned as their elements.
  int alignment_of(BufferSlice place) const;
  // Adds a kernel and a step that calls it.
  kernel::Step& add_kernel(std::unique_ptr<kernel::Kernel> kernel, std::vector<kernel::Argument> arguments,
                           std::string location, std::vector<IntExpr> extents = {});
  // A weights buffer packed from `literal`; `name` is the initializer's.
  int add_constant(const LiteralRef& literal, Packing packing, std::string name);
  // The room for strings that a run makes (firn_rt2_text_room), of options().goals.text_bytes.
  BufferSlice string_arena();
  // The steps that run before the program's first one.
  Steps take_prologue() { return std::move(prologue_); }
  // The run's status word.
  BufferSlice status_place();
  // A buffer in the arena for one kernel's use, or between kernels of one instruction.
  int add_scratch_buffer(int64_t bytes, std::string name);
  // The symbols that steps have bound so far.
  const std::vector<SymbolRef>& counts() const { return counts_; }
  // Adds a step from which on `symbol` is the i64 at a place, until the region at hand ends.
  void bind_count(const SymbolRef& symbol, BufferSlice place);
  // A name for a kernel that nothing else has.
  std::string kernel_name(std::string_view stem);

  // Whether a kernel of its own computes the instruction; composites without one are lowered as their body.
  bool has_kernel(const Instruction& instruction) const { return plans_.find(instruction) != nullptr; }
  // Lowers the instructions of a region, appending to `steps` (control flow and inlined composites).
  void lower_region(const Region& region, Steps& steps);
  void lower_instruction(const Instruction& instruction);
  // Lowers them among the steps at hand.
  void lower_instructions(const Region& region);
  // The sums that the kernel of an instruction leaves on the side; null if nobody wants any.
  FusedSpatialSum* spatial_sum_of(const Instruction& instruction) const {
    auto wanted = fused_spatial_sum_.find(&instruction);
    return wanted == fused_spatial_sum_.end() ? nullptr : wanted->second;
  }
  void set_spatial_sum(const Instruction& instruction, FusedSpatialSum* accumulators) {
    fused_spatial_sum_[&instruction] = accumulators;
  }
  // Runs `make` while kernels go to `steps`.
  template <class Make> void with_steps(Steps& steps, Make make) {
    Steps* outer = std::exchange(steps_, &steps);
    make();
    steps_ = outer;
  }
  Steps& steps() { return *steps_; }

private:
  BufferSlice new_place(Value root);
  BufferSlice place_constant(const Instruction& constant);
  BufferSlice place_text(const Instruction& constant);
  void view_members(const Instruction& fusion);
  void emit(const Instruction& instruction, const plan::KernelPlan& plan);

  kernel::Program& program_;
  const plan::KernelPlans& plans_;
  const LoweringOptions& options_;
  Steps* steps_ = nullptr;
  memory::Places places_;
  std::map<const Instruction*, FusedSpatialSum*> fused_spatial_sum_;
  std::map<std::pair<const Literal*, std::string>, int> literal_buffers_;
  bool is_for_baseline_ = false;  // KernelPlans::is_for_baseline, of the instruction at hand
  std::vector<SymbolRef> counts_; // that steps bind
  int status_buffer_ = -1;
  int next_kernel_ = 0;
  int string_arena_ = -1;
  Steps prologue_;
};

} // namespace firn::lower
