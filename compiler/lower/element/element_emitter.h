// The element emitter: code for one element, or one vector of elements, of a graph value at a logical index.
// Fused producers are computed where they are needed; values in memory are leaves.
#pragma once

#include "compiler/lower/element/element_access.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/lowering_context.h"
#include "compiler/plan/elements/element_code.h"

namespace firn::lower {

// Gives the elements of a value at an index: from memory, or accumulators that ignore the index.
using Leaf = std::function<kernel::Register(const Index& index, const Lanes& lanes)>;

// The reads of one element's code and the indices it depends on, found by a trial emission.
struct ElementUses {
  // The code for `expression` < `threshold` differs from the rest: loops that are cut there need no
  // conditions.
  struct SplitPoint {
    IntExpr expression;
    int64_t threshold;
    bool only_innermost; // worth it only to make the innermost loop fit for vectors
  };
  std::vector<IntExpr> offsets;   // offsets of loads and stores, and indices that are values
  std::vector<IntExpr> decisions; // indices in conditions, loop bounds and indices from memory
  std::vector<SplitPoint> split_points;
  bool reduces = false;   // it holds loops of its own, whose loads should not be strided
  int64_t operations = 0; // kernel ops it took; a narrow counts as all that it does
};

class ElementEmitter {
public:
  // Registers made by one emitter live in the block where the builder stands: make a new one for every loop
  // body.
  ElementEmitter(kernel::Builder& builder, Lanes lanes = {}) : builder_(builder), lanes_(std::move(lanes)) {}

  // Sets the code for a value, such as a region's parameter.
  void bind(Value value, Leaf leaf) { leaves_[key(value)] = std::move(leaf); }
  // Binds a table with one element per byte: the function gives the elements for a vector of bytes.
  using ByteTable = std::function<kernel::Register(kernel::Register bytes)>;
  void bind_table(Value value, ByteTable table) { tables_[key(value)] = std::move(table); }
  // Binds memory that holds a value of this type, of which each lane may read an element of its own.
  void bind_memory(Value value, const Type& type, int buffer) { memory_[key(value)] = {type, buffer}; }
  // The element of `value` at `index` (one expression per logical dim), as value_type(dtype, lanes.count).
  kernel::Register emit(Value value, const Index& index);

  // Makes this a trial that records the indices on which decisions and computed values depend
  // (element_loops.h).
  void record_uses(ElementUses* uses) { uses_ = uses; }
  // Sets how reductions are computed. Lanes are those of vectors along a reduced dim, when the results
  // themselves are computed one by one; without this there are none.
  void set_code(const plan::ElementCode& code) { code_ = code; }
  // Computes values that are the same in all lanes, such as 1 / sqrt(variance of the row), once, rather than
  // in every lane. Every leaf must give scalars if it is asked for one lane.
  void set_uniform_once() { uniform_once_ = true; }

private:
  using Key = std::pair<const Instruction*, int>;
  static Key key(Value value) { return {value.def, value.index}; }
  struct Cached {
    Index index;
    kernel::Register value;
  };
  void use(const IntExpr& expression) {
    if (uses_) uses_->decisions.push_back(expression);
  }
  void split_point(const IntExpr& expression, int64_t threshold, bool only_innermost) {
    if (uses_) uses_->split_points.push_back({expression, threshold, only_innermost});
  }
  bool is_uniform(const IntExpr& expression) const;

  kernel::Register emit_uncached(Value value, const Index& index);
  kernel::Register emit_elementwise(const Instruction& instruction, const Index& index);
  kernel::Register emit_narrow(const Instruction& instruction, const Index& index);
  kernel::Register emit_broadcast(Value operand, const Index& from);
  kernel::Register emit_gate(const Instruction& product, const Index& index); // no value: it is none
  kernel::Register emit_iota(const Instruction& instruction, const Index& index);
  kernel::Register emit_constant(const Instruction& instruction, const Index& index);
  kernel::Register emit_pad(const Instruction& instruction, const Index& index);
  kernel::Register emit_concatenate(const Instruction& instruction, const Index& index);
  kernel::Register emit_gather(const Instruction& instruction, const Index& index);
  kernel::Register look_up_bytes(const Instruction& gather, const Index& index); // no value: no table
  kernel::Register gather_along(Value gather, const Index& index, Index from, size_t axis, const Index& at);
  // The places of elements of which each lane reads one along an axis: places are `stride` apart, and from
  // lane to lane the offset moves by `step`.
  struct LanePlaces {
    int buffer;
    IntExpr offset, stride;
    int64_t step;
  };
  // Nothing if the elements are not in memory, or if a place outside has to be reported.
  std::optional<LanePlaces> lane_places(Value data, Index from, size_t axis) const;
  kernel::Register gather_lanes(Value gather, const LanePlaces& from, const IntExpr& extent, const Index& at);
  kernel::Register emit_gather_elements(const Instruction& instruction, const Index& index);
  kernel::Register emit_gather_nd(const Instruction& instruction, const Index& index);
  kernel::Register emit_dynamic_slice(const Instruction& instruction, const Index& index);
  kernel::Register emit_bitcast(const Instruction& instruction, const Index& index);
  kernel::Register emit_region(const Instruction& instruction, int result, const Index& index);
  // Reductions (element_reductions.cpp): loops around the operands' elements.
  using Registers = std::vector<kernel::Register>;
  Registers emit_reduce(const Instruction& reduce, const Index& index);
  Registers emit_reduce_window(const Instruction& reduce, const Index& index);
  // The reference algorithm of contractions (element_contractions.cpp).
  kernel::Register emit_dot(const Instruction& dot, const Index& index);
  kernel::Register emit_convolution(const Instruction& convolution, const Index& index);
  // The sum of a dot over the last dims of both operands, which lie together, in vectors along these.
  kernel::Register dot_in_vectors(const Instruction& dot, const Index& at_lhs, const Index& at_rhs,
                                  DType dtype, kernel::Register sum);
  kernel::Register multiply_add(Value lhs, const Index& at_lhs, Value rhs, const Index& at_rhs, DType dtype,
                                kernel::Register sum);
  // The few steps that whole rounds leave: straight code, or a loop if their number varies.
  void each_of_rest(const IntExpr& first, const IntExpr& end,
                    const std::function<Registers(const IntExpr& at, const Registers& carried)>& step,
                    kernel::Register& carried);
  kernel::Register reduce_in_vectors(const Instruction& reduce, const Index& from,
                                     const std::vector<int>& dims);
  Registers reduce_in_loops(const Instruction& reduce, const Index& from, const std::vector<int>& dims,
                            Registers initial);
  kernel::Register reduce_in_blocks(const Instruction& reduce, const Index& from, std::vector<int> dims);
  Registers initial_values(const Instruction& reduce);
  Registers combine(const Instruction& reduce, const Registers& accumulators, const Registers& elements,
                    int lanes);
  kernel::Register combine_lanes(const Instruction& reduce, kernel::Register vector);
  bool walks_as_one(Value value, const Type& like) const;
  // An emitter for elements from which this one's code is made.
  ElementEmitter make_inner(Lanes lanes) const {
    ElementEmitter inner(builder_, std::move(lanes));
    inner.leaves_ = leaves_;
    inner.tables_ = tables_;
    inner.memory_ = memory_;
    inner.code_ = code_;
    inner.code_.lanes = 1;
    return inner;
  }
  // Runs `make` in an inner block: values made there are not remembered.
  template <class Make> auto in_inner_block(Make make) {
    auto outside = cache_;
    auto result = make();
    cache_ = std::move(outside);
    return result;
  }
  // One value of an index tensor as an expression within [0, extent): negative ones count from the end if
  // they may, others are clamped, so that no index reads outside its tensor.
  IntExpr runtime_index(Value indices, const Index& at, const IntExpr& extent, bool negative_from_end);
  // The values of an index tensor, one in every lane, as i32.
  kernel::Register runtime_lanes(Value indices, const Index& at, const IntExpr& extent);
  // The value of `make` if `room` is above 0, and zeros otherwise: then a tensor has no element to read.
  kernel::Register where_positive(const IntExpr& room, DType dtype,
                                  const std::function<kernel::Register()>& make);
  // If the condition differs between lanes, computes them one by one.
  kernel::Register lane_by_lane(Value value, const Index& index);
  // Emits both branches of a condition that is the same in all lanes; values made there are not remembered.
  kernel::Register choose(kernel::Register condition, const std::function<kernel::Register()>& on_true,
                          const std::function<kernel::Register()>& on_false);

  kernel::Builder& builder_;
  Lanes lanes_;
  std::map<Key, Leaf> leaves_;
  std::map<Key, ByteTable> tables_;
  struct Memory {
    Type type;
    int buffer;
  };
  std::map<Key, Memory> memory_;
  std::map<Key, std::vector<Cached>> cache_;
  ElementUses* uses_ = nullptr;
  plan::ElementCode code_ = {.lanes = 1};
  bool uniform_once_ = false;
};

// The runtime value of an integer scalar as an expression, clamped to [lower, upper]; `lower` if `upper` is
// less.
IntExpr clamped_symbol(kernel::Builder& builder, kernel::Register value, int64_t lower, const IntExpr& upper);
// The runtime value of an index, clamped likewise. In kernels with the run's status word, an index outside
// makes it kOutOfRange. (Starts of slices use clamped_symbol: the op clamps them.)
IntExpr checked_index(kernel::Builder& builder, kernel::Register value, int64_t lower, const IntExpr& upper);

// Binds parameters and non-splat constants of a fused region to memory: each operand becomes a read parameter
// of the kernel, and so does every constant. Splat constants need no binding.
class RegionLeaves {
public:
  // Leaves of a fusion's or composite's region, except for parameters that only instructions
  // `computed_separately` read, whose elements the caller supplies.
  RegionLeaves(
      KernelMaker& maker, const Instruction& instruction,
      const std::function<bool(const Instruction&)>& computed_separately = [](const Instruction&) {
        return false;
      });
  static RegionLeaves of_operands(KernelMaker& maker,
                                  const Instruction& instruction); // a plain op: its operands
  void bind_to(ElementEmitter& emitter) const;
  // Binds the leaves for analysis: to `record`, which gets the offsets they would read.
  void bind_recording(kernel::Builder& builder, ElementEmitter& emitter, std::vector<IntExpr>* record) const;
  // Leaves other than `value`, whose elements the caller supplies.
  void remove(Value value);

  struct Entry {
    Value value; // in the region
    Type type;   // type as it lies in memory
    int buffer;  // parameter number
  };
  const std::vector<Entry>& entries() const { return entries_; }

private:
  explicit RegionLeaves(KernelMaker& maker) : builder_(&maker.builder()) {}
  void add_constants(KernelMaker& maker, const Region& region);
  kernel::Builder* builder_;
  std::vector<Entry> entries_;
};

} // namespace firn::lower
