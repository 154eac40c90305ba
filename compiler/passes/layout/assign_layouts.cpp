// assign-layouts: chooses channel-blocked layouts for chains of convolutions.
//
//   %c = convolution %x, %w : f32[1,64,56,56]             %c : f32[1,64,56,56]{0,1,2,3:1x16}
//   %r = maximum %c, %z : f32[1,64,56,56]           ->    %r : f32[1,64,56,56]{0,1,2,3:1x16}
//   %f = reshape %r : f32[1,200704]                       %p = copy %r : f32[1,64,56,56]; reshape %p
//
// Convolutions compute a block of output channels in one vector, so a blocked result is stored as it is
// computed; ops that work position by position go along; `copy` converts where plain and blocked values meet.
// What decides is the number of elements that have to be converted. Values that tile matrices alone multiply,
// which read rows of 64 bytes, lie in blocks of as many channels: they are such rows as they are.
//
// - Requires: static shapes where anything is blocked; a target. On a GPU all layouts stay plain.
// - Establishes: elementwise ops, concatenations and windows have operands and result of one layout;
//   parameters, results and values of other ops are plain.
// - Breaks: rules that compare types or make plain values (simplify-algebra) must not run afterwards.
#include "compiler/graph/resample.h"
#include "compiler/passes/layout/channel_blocks.h"
#include "compiler/passes/layout/merge_upsampling.h"
#include "compiler/passes/layout/resampled_images.h"
#include "compiler/passes/layout/transposed_images.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/reshape_groups.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/composites.h"
#include "compiler/plan/graph_forms.h"
#include "compiler/plan/profitability.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace firn {
namespace {

bool is_blockable(const Type& type) {
  return type.is_tensor() && bit_width(type.dtype) >= 8 && bit_width(type.dtype) <= 64 &&
         !is_complex(type.dtype) && type.rank() >= 3 && type.rank() <= 6 && has_bounds(type) &&
         type.dims[1].is_static() && max_elements(type) > 0;
}

// The positions of an image, with every dim at its bound.
int64_t positions_of(const Type& type) {
  int64_t count = 1;
  for (size_t d = 2; d < type.dims.size(); ++d) count *= type.dims[d].extent.upper_bound();
  return count;
}

class LayoutAssignment {
public:
  LayoutAssignment(Region& region, const PassOptions& options)
      : region_(region), block_(plan::channel_block(*options.target)), options_(options) {}

  bool run() {
    decide();
    if (blocked_.empty() || !options_.take_rewrite()) return false;
    // Upsampling as one broadcast and one reshape (merge_upsampling.h) can be computed in blocks too.
    if (merge_upsampling(region_, [this](Value source) { return is_blocked(source); })) decide();
    if (move_reshapes_past_transposes(region_,
                                      [this](const Instruction& i) { return blocked_.count(&i) > 0; }))
      decide();
    sizes_ = channels_per_block(blocked_, block_, options_);
    std::vector<Instruction*> all = region_.snapshot();
    for (Instruction* instruction : all)
      if (!instruction->is(Opcode::Constant) && !instruction->is(Opcode::Parameter)) assign(*instruction);
    std::vector<Value> results = region_.results();
    for (size_t i = 0; i < results.size(); ++i) region_.set_result(static_cast<int>(i), plain(results[i]));
    for (Instruction* instruction : all) read_transposed(*instruction);
    return true;
  }

private:
  bool is_blocked(Value value) const { return blocked_.count(value.def) > 0; }

  static Layout blocked_layout(const Type& type, int block) {
    Layout layout;
    for (int d = 0; d < type.rank(); ++d) layout.order.push_back(d);
    layout.blocks = {{1, block}};
    return layout;
  }

  // --- Decisions, in program order.

  void decide() {
    blocked_.clear();
    for (Instruction* instruction : region_.snapshot())
      if (prefers_block(*instruction)) blocked_.insert(instruction);
    leave_plain(region_, blocked_);
  }

  bool prefers_block(const Instruction& instruction) const {
    if (instruction.num_results() != 1 || !is_blockable(instruction.type())) return false;
    for (Value operand : instruction.operands())
      if (!has_bounds(operand.type()) || is_sub_byte(operand.type().dtype)) return false;
    if (instruction.is(Opcode::Convolution)) return plan::prefers_channel_blocks(instruction, block_);
    return can_follow(instruction) && is_worth_following(instruction);
  }

  // Whether the op can compute a blocked result from blocked operands.
  bool can_follow(const Instruction& instruction) const {
    auto untouched = [&](const char* name, int64_t neutral) { // dims 0 and 1
      const std::vector<int64_t>& values = instruction.attributes().ints(name);
      return values[0] == neutral && values[1] == neutral;
    };
    bool is_static = instruction.type().is_static() && instruction.num_operands() > 0 &&
                     instruction.operand(0).type().is_static();
    switch (instruction.opcode()) {
    case Opcode::ReduceWindow: {
      const std::vector<WindowDim>& dims = instruction.attributes().window().dims;
      return dims[0] == WindowDim{} && dims[1] == WindowDim{} && instruction.num_operands() == 2;
    }
    case Opcode::SelectAndScatter: {
      const std::vector<WindowDim>& dims = instruction.attributes().window().dims;
      return dims[0] == WindowDim{} && dims[1] == WindowDim{};
    }
    case Opcode::Concatenate: return can_concatenate(instruction);
    case Opcode::Pad: return untouched("low", 0) && untouched("high", 0) && untouched("interior", 0);
    case Opcode::Slice: {
      int64_t start = instruction.attributes().ints("starts")[1];
      return instruction.attributes().ints("strides")[1] == 1 && start % block_ == 0;
    }
    case Opcode::Reverse: return !contains(instruction.attributes().ints("dims"), 1);
    case Opcode::Gather:
      if (looks_up_bytes(instruction)) return true;
      return instruction.attributes().integer("axis") >= 2 && instruction.operand(1).rank() == 1;
    case Opcode::BroadcastInDim:
    case Opcode::Reshape: return is_static && keeps_channels(instruction);
    case Opcode::Composite: {
      auto dims = plan::find_resample(instruction);
      return dims && dims->front().dim >= 2;
    }
    default: return is_elementwise(instruction.opcode());
    }
  }

  // Whether batch and channels stay the leading dims, as in upsampling, which repeats and divides the others.
  bool keeps_channels(const Instruction& instruction) const {
    const Type &from = instruction.operand(0).type(), &to = instruction.type();
    if (from.rank() < 3 || to.rank() < 4 || from.dim(0) != to.dim(0) || from.dim(1) != to.dim(1))
      return false;
    if (instruction.is(Opcode::Reshape)) return true;
    const std::vector<int64_t>& dims = instruction.attributes().ints("dims");
    return dims[0] == 0 && dims[1] == 1;
  }

  bool can_concatenate(const Instruction& concatenate) const {
    if (concatenate.attributes().integer("dim") != 1) return true;
    // Channels of operands may vary although those of the result do not: an image's, and those that pad it.
    for (int i = 0; i < concatenate.num_operands(); ++i) {
      const Dim& channels = concatenate.operand(i).type().dims[1];
      bool is_last = i + 1 == concatenate.num_operands();
      if (!channels.is_static() || (!is_last && channels.value() % block_ != 0)) return false;
    }
    return true;
  }

  // Whether the value costs no more in blocks than plain: a transpose writes either at the same cost.
  static bool can_be_made_blocked(Value value) { return is_free(value) || value.def->is(Opcode::Transpose); }

  // Broadcasts, constants and indices take any layout for free.
  static bool is_free(Value operand) {
    return operand.def->is(Opcode::BroadcastInDim) || operand.def->is(Opcode::Constant) ||
           operand.def->is(Opcode::Iota);
  }

  // Whether as many elements of its operands lie in blocks as would have to be converted.
  bool is_worth_following(const Instruction& instruction) const {
    int64_t blocked = 0, plain = 0;
    for (Value operand : tensor_operands(instruction)) {
      if (is_free(operand) && !is_blocked(operand)) continue;
      (is_blocked(operand) ? blocked : plain) += max_elements(operand.type());
    }
    return blocked > 0 && blocked >= plain;
  }

  // --- Carrying out.

  void assign(Instruction& instruction) {
    bool blocked = blocked_.count(&instruction) > 0;
    if (blocked) set_layout(instruction, blocked_layout(instruction.type(), sizes_.at(&instruction)));
    if (instruction.is(Opcode::Convolution)) return assign_convolution(instruction, blocked);
    if (blocked) {
      if (instruction.is(Opcode::Composite))
        return set_resample_layout(instruction, blocked_form(instruction.operand(0), sizes_.at(&instruction)),
                                   instruction.type().layout);
      auto count = static_cast<int>(tensor_operands(instruction).size());
      int first = looks_up_bytes(instruction) ? 1 : 0;
      for (int i = first; i < first + count; ++i)
        instruction.set_operand(i, blocked_form(instruction.operand(i), sizes_.at(&instruction)));
      return;
    }
    if (reads_blocks(instruction)) return;
    for (int i = 0; i < instruction.num_operands(); ++i)
      instruction.set_operand(i, plain(instruction.operand(i)));
    // Values that regions capture are plain inside.
    for (int r = 0; r < instruction.num_regions(); ++r)
      if (has_trait(instruction.opcode(), Captures)) make_captures_plain(instruction.region(r));
  }

  // Ops with a plain result that read blocked operands well: transposes; reductions over all positions, be it
  // of one image or of all, or also over all channels where these fill their blocks; extents, which read no
  // elements.
  bool reads_blocks(const Instruction& instruction) const {
    if (instruction.is(Opcode::Transpose) || instruction.is(Opcode::DimSize))
      return is_blocked(instruction.operand(0));
    if (!instruction.is(Opcode::Reduce) || instruction.num_operands() != 2 ||
        !is_blocked(instruction.operand(0)))
      return false;
    const std::vector<int64_t>& dims = instruction.attributes().ints("dims");
    Value operand = instruction.operand(0);
    for (int64_t d = 2; d < operand.rank(); ++d)
      if (!contains(dims, d)) return false;
    return !contains(dims, 1) || (operand.dim(1) % block_ == 0 && simple_reducer(instruction));
  }

  void assign_convolution(Instruction& convolution, bool blocked) {
    Value input = convolution.operand(0);
    convolution.set_operand(1, plain(convolution.operand(1)));
    if (plan::has_groups_within_blocks(convolution, block_)) {
      convolution.set_operand(0, blocked ? blocked_form(input, sizes_.at(&convolution)) : plain(input));
      return;
    }
    int64_t groups = convolution.attributes().integer("groups", 1);
    if (groups > 1 && !blocked) {
      convolution.set_operand(0, plain(input));
      return;
    }
    if (is_blocked(input) || !blocked) return;
    bool is_profitable =
        plan::has_channels_for_blocks(convolution, *options_.target) && is_blockable(input.type()) &&
        positions_of(input.type()) > 1 &&
        plan::is_block_conversion_profitable(convolution.operand(1).dim(0),
                                             positions_of(convolution.operand(1).type()), block_);
    const int row = channels_of_rows(input.type(), block_, options_);
    if (is_profitable) convolution.set_operand(0, blocked_form(input, row > 0 ? row : block_));
  }

  // Convolutions read plain images element by element, in any order of dims: the transpose of an image can be
  // a view.
  static void read_transposed(Instruction& transpose) {
    if (!transpose.is(Opcode::Transpose) || !transpose.has_uses()) return;
    Type type = transpose.type();
    if (!type.layout.is_plain() || !transpose.operand(0).type().layout.is_plain()) return;
    for (const Instruction* user : transpose.users())
      if (!user->is(Opcode::Convolution) || user->attributes().integer("groups", 1) != 1 ||
          user->operand(1).def == &transpose)
        return;
    if (contains_result(*transpose.parent(), transpose)) return;
    for (int64_t dim : inverse_permutation(transpose.attributes().ints("permutation")))
      type.layout.order.push_back(static_cast<int>(dim));
    transpose.set_type(type);
  }

  static bool contains_result(const Region& region, const Instruction& instruction) {
    return std::any_of(region.results().begin(), region.results().end(),
                       [&](Value result) { return result.def == &instruction; });
  }

  void make_captures_plain(Region& region) {
    for (Instruction* instruction : region.snapshot()) {
      for (int i = 0; i < instruction->num_operands(); ++i)
        if (is_blocked(instruction->operand(i))) instruction->set_operand(i, plain(instruction->operand(i)));
      for (int r = 0; r < instruction->num_regions(); ++r) make_captures_plain(instruction->region(r));
    }
    for (size_t i = 0; i < region.results().size(); ++i)
      if (is_blocked(region.results()[i])) region.set_result(static_cast<int>(i), plain(region.results()[i]));
  }

  Value plain(Value value) { return is_blocked(value) ? converted(value, Layout{}) : value; }

  static void set_layout(Instruction& instruction, Layout layout) {
    Type type = instruction.type();
    type.layout = std::move(layout);
    instruction.set_type(type);
  }

  // Elements to convert so that the value is in blocks.
  int64_t conversion_cost(Value value) const {
    if (is_blocked(value) || can_be_made_blocked(value)) return 0;
    bool is_enlarged = enlarges(*value.def) && value.def->users().size() == 1;
    return max_elements((is_enlarged ? value.def->operand(0) : value).type());
  }

  // Computes the instruction in blocks if its operands are less to convert and nobody reads it plain.
  bool make_blocked(Instruction& instruction, int block) {
    const bool fits = block == block_ || (!instruction.is(Opcode::Concatenate) &&
                                          channels_of_rows(instruction.type(), block_, options_) == block);
    if (!fits || instruction.users().size() != 1 || contains_result(region_, instruction) ||
        !can_follow(instruction))
      return false;
    if (!enlarges(instruction) && !instruction.is(Opcode::Concatenate)) return false;
    int64_t cost = 0;
    for (Value operand : tensor_operands(instruction)) cost += conversion_cost(operand);
    if (cost >= max_elements(instruction.type())) return false;
    blocked_.insert(&instruction);
    sizes_[&instruction] = block;
    assign(instruction);
    return true;
  }

  // The value in blocks of so many channels: as it is, made so from the start, or copied.
  Value blocked_form(Value value, int block) {
    if (is_blocked(value) || make_blocked(*value.def, block)) return value;
    Layout layout = blocked_layout(value.type(), block);
    if (value.type().layout == layout || !can_be_made_blocked(value)) return converted(value, layout);
    auto [found, added] = copies_.try_emplace({value.def, value.index, block});
    if (!added) return found->second;
    // Right behind the original, so that later users of the same form find it above them.
    Type type = value.type();
    type.layout = layout;
    Instruction* made = nullptr;
    if (value.def->is(Opcode::Constant)) {
      made = region_of(value).append_constant(value.def->literal(), behind(value));
      made->set_type(type);
    } else {
      made = region_of(value).append(value.def->opcode(), value.def->operands(), {type},
                                     value.def->attributes(), behind(value));
    }
    made->set_location(value.def->location());
    return found->second = made->result();
  }

  Value converted(Value value, Layout layout) {
    int block = layout.blocks.empty() ? 0 : layout.blocks[0].size;
    auto [found, added] = copies_.try_emplace({value.def, value.index, block});
    if (!added) return found->second;
    Type type = value.type();
    type.layout = std::move(layout);
    Instruction* copy = region_of(value).append(Opcode::Copy, {value}, {type}, {}, behind(value));
    copy->set_location(value.def->location());
    return found->second = copy->result();
  }

  static Region& region_of(Value value) { return *value.def->parent(); }

  Region& region_;
  int block_; // channels per block that fill a vector
  const PassOptions& options_;
  std::unordered_set<const Instruction*> blocked_;
  std::unordered_map<const Instruction*, int> sizes_; // channels per block of each in `blocked_`
  // Converted forms by value and channels per block; 0: plain.
  std::map<std::tuple<Instruction*, int, int>, Value> copies_;
};

} // namespace

bool assign_layouts(Module& module, const PassOptions& options) {
  if (!options.target || !plan::has_channel_blocks(*options.target)) return false;
  bool changed = false;
  for_each_region(module, [&](Region& region) { changed |= LayoutAssignment(region, options).run(); });
  return changed;
}

} // namespace firn
