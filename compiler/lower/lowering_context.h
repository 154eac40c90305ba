// The state of lowering one module: where every graph value lies, and the program that grows. Emitters see
// this class and little else: they ask for places, build a kernel, and add it.
//
// Unused lanes of a blocked layout's last block hold anything: nobody writes them on purpose, and no kernel
// may let them reach a result.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/lower/lower.h"
#include "compiler/plan/plan_function.h"

#include <map>
#include <set>
#include <span>
#include <utility>

namespace firn::lower {

// The place of a value: a stretch of a buffer, as long as the value's type as laid out.
struct BufferSlice {
  int buffer = -1;
  int64_t byte_offset = 0;
  bool operator==(const BufferSlice&) const = default;
};

// Whether elements of this dtype can be held by machine types: not complex.
bool has_machine_type(DType dtype);
// The scalar that holds an element in memory; Bool lies as I8, small floats as their codes, and strings as
// address and size. Of packed types it holds several.
kernel::Scalar memory_scalar(DType dtype);
// The type of an element in computations: f16 and bf16 are f32 values that the narrow type can represent,
// Bool is I1, small floats are codes and packed integers their values in I8 (scalar_ops.h).
kernel::MachineType value_type(DType dtype, int lanes = 1);

inline Value result_of(const Instruction& instruction, int result = 0) {
  return const_cast<Instruction&>(instruction).result(result);
}

// Bytes of a value as laid out, at the bounds of its dims.
inline int64_t bytes_at_bound(const Type& type) {
  return static_cast<int64_t>(type.at_bound().physical_byte_size());
}

// The elements of a tensor as `type` lays them out; unused lanes of blocks are zeros, and so is what is left
// of `bytes`, at least as many as those of the type.
Packing layout_packing(const Type& type, int64_t bytes);

class FusedSpatialSum;

class LoweringContext {
public:
  using Steps = std::vector<kernel::Step>;
  LoweringContext(kernel::Program& program, const plan::KernelPlans& plans, const LoweringOptions& options)
      : program_(program), plans_(plans), options_(options) {}

  const LoweringOptions& options() const { return options_; }
  // The CPU for which the instruction at hand is computed.
  const TargetInfo& target() const { return is_for_baseline_ ? *options_.baseline : options_.target; }
  kernel::Program& program() { return program_; }
  const plan::KernelPlans& plans() const { return plans_; }
  plan::PlanOptions plan_options() const { return {options_.target, options_.goals}; }
  // Bytes of all constants of the module: what a run draws through the caches.
  int64_t model_weight_bytes() const { return plans_.model_weight_bytes; }

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
  // Adds a step from which on `symbol` is the i64 at a place, until the region at hand ends.
  void bind_count(const SymbolRef& symbol, BufferSlice place);
  // A name for a kernel that nothing else has.
  std::string kernel_name(std::string_view stem);

  // Decisions of place_values (placement.h).
  // `value` lies `byte_offset` into `base`.
  void set_view(Value value, Value base, int64_t byte_offset = 0);
  void set_place(Value value, BufferSlice place);
  bool is_placed(Value value) const { return views_.count(key(value)) || places_.count(key(value)); }
  // A concatenation that may be computed over a state, whose last entries its first operand keeps: that
  // operand is moved before others are written, and read where it lies if it is `slice`.
  void set_rolling(const Instruction& concatenate, const Instruction* slice);
  bool is_rolling(const Instruction& concatenate) const { return rolling_.count(&concatenate) != 0; }
  bool is_read_in_place(const Instruction& slice) const { return read_in_place_.count(&slice) != 0; }
  // The value that a chain of views starts from, and the offset from it.
  std::pair<Value, int64_t> root_of(Value value) const;
  // Whether the instruction's one result is a stretch of its operand, so that nothing is computed. A value
  // that lies in the buffer of one of its users, such as a concatenation, is not.
  bool is_view_of_operand(const Instruction& instruction) const;

  // Whether a kernel of its own computes the instruction; composites without one are lowered as their body.
  bool has_kernel(const Instruction& instruction) const { return plans_.find(instruction) != nullptr; }
  // Lowers the instructions of a region, appending to `steps` (control flow and inlined composites).
  Result lower_region(const Region& region, Steps& steps);
  Result lower_instruction(const Instruction& instruction);
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
  using Key = std::pair<const Instruction*, int>;
  static Key key(Value value) { return {value.def, value.index}; }
  BufferSlice place_constant(const Instruction& constant);
  BufferSlice place_text(const Instruction& constant);
  Result lower_instructions(const Region& region);
  void view_members(const Instruction& fusion);
  Result emit(const Instruction& instruction, const plan::KernelPlan& plan);
  Result emit_plain(const Instruction& instruction, plan::FixedPlan plan);

  friend class KernelMaker;
  kernel::Program& program_;
  const plan::KernelPlans& plans_;
  const LoweringOptions& options_;
  Steps* steps_ = nullptr;
  std::map<Key, std::pair<Value, int64_t>> views_;
  std::map<Key, BufferSlice> places_;
  std::set<const Instruction*> rolling_, read_in_place_;
  std::map<const Instruction*, FusedSpatialSum*> fused_spatial_sum_;
  std::map<std::pair<const Literal*, std::string>, int> literal_buffers_;
  bool is_for_baseline_ = false;  // KernelPlans::is_for_baseline, of the instruction at hand
  std::vector<SymbolRef> counts_; // that steps bind
  int status_buffer_ = -1;
  int next_kernel_ = 0;
  int string_arena_ = -1;
  Steps prologue_;
};

// Builds one kernel: parameters on demand, then its body, then the call.
class KernelMaker {
public:
  // `stem` names the kernel ("softmax"), `algorithm` is what reports say of it.
  KernelMaker(LoweringContext& context, const std::string& location, std::string stem);
  // With indices that may be out of range, and are checked, the kernel has the status word.
  KernelMaker(LoweringContext& context, const Instruction& instruction, std::string stem);

  kernel::Builder& builder() { return builder_; }
  LoweringContext& context() { return context_; }
  kernel::Kernel& kernel() { return *kernel_; }
  // The number of the parameter through which a value is read or written; one per place. Before any scratch.
  int read(Value value);
  int write(Value value);
  // A parameter for a buffer of `elements`, such as packed weights or scratch in the arena.
  int parameter(BufferSlice place, kernel::Scalar element, int64_t elements, bool written, std::string name);
  // A parameter for memory that iterations of the parallel loop reuse.
  int scratch(kernel::Scalar element, int64_t elements, const char* name);
  // Work of one run, for reports.
  void set_flops(int64_t flops) { kernel_->flops = flops; }
  // Adds kernel and call to the context.
  void finish();
  // Adds a kernel that gives its second parameter the bytes of its first and does no more.
  void finish_copy();

private:
  std::vector<IntExpr> take_extents();

  LoweringContext& context_;
  std::unique_ptr<kernel::Kernel> kernel_;
  kernel::Builder builder_;
  std::vector<kernel::Argument> arguments_;
  std::string location_;
};

} // namespace firn::lower
