// split-input-dilations: makes plain convolutions of transposed ones.
//
//   %c = convolution %x, %w {window = 4 pad 2_2 input_dilate 2} : f32[1,8,20]
//     ->
//   %p = convolution %x, %v {window = 2 pad 1_1} : f32[1,16,11]     (%v: taps of each phase, f32[16,4,2])
//   %t = transpose (reshape %p : f32[1,8,2,11]) {permutation = [0, 1, 3, 2]}
//   %c = slice (reshape %t : f32[1,8,22]) : f32[1,8,20]
//
// The phases of the result (graph/convolution_phases.h) are filters of a convolution over the input itself,
// whose results are interleaved; of a depthwise convolution they are convolutions of their own, which stay
// depthwise. Bias and activation behind the convolution stay next to it. Convolutions whose phases lowering
// stores where they belong are left as they are.
//
// Where a window dilates the filter and the input along one dim, the filter gets its holes first:
//
//   %c = convolution %x, %w {window = 2 pad 2_2 dilate 2 input_dilate 2}
//     ->
//   %v = pad %w, 0 {interior = [0, 0, 1]}
//   %c = convolution %x, %v {window = 3 pad 2_2 input_dilate 2}
//
// Where the input or filters are dequantised around a zero point, split-quantised-dilations does so before
// integers are multiplied, as the zeros between them would be none.
//
// - Requires: shapes whose batch alone may vary where anything changes; scales are folded (fold-conv-scales).
// - Establishes: no convolution dilates both its filter and its input along one dim, unless the filter would
//   grow beyond kMaxFilled; none of stride 1 dilates its input by no more than its window, unless lowering
//   stores its phases.
// - Breaks: nothing (fold-constants computes the filters).
#include "compiler/graph/convolution_phases.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/quantization/quantized_values.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/graph_forms.h"
#include "compiler/plan/profitability.h"

#include <functional>

namespace firn {
namespace {

using Ints = std::vector<int64_t>;

// The rewrite of one convolution.
class Split {
public:
  Split(Instruction& convolution, const ConvolutionPhases& phases)
      : convolution_(convolution), b_(*convolution.parent(), &convolution), dims_(phases.dims),
        phases_(phases.count), window_(phases.window()) {}

  void run() {
    if (is_depthwise()) {
      convolution_.parent()->replace_uses(convolution_.result(), interleave_by_dims(depthwise_phases()));
      return erase_if_dead(&convolution_);
    }
    Attributes attributes = convolution_.attributes();
    attributes.set("window", window_);
    Value made = b_.op(Opcode::Convolution, {convolution_.operand(0), filters()}, attributes);
    Instruction* last = &convolution_;
    while (Instruction* next = follower(*last)) {
      b_ = GraphBuilder(*next->parent(), next);
      made = apply(*next, *last, made);
      last = next;
    }
    last->parent()->replace_uses(last->result(), interleave(made));
    erase_if_dead(last);
  }

private:
  bool is_depthwise() const {
    const Type& filter = convolution_.operand(1).type();
    return filter.dim(0) > 1 && filter.dim(1) == 1 &&
           convolution_.attributes().integer("groups", 1) == filter.dim(0);
  }

  // Makes a depthwise convolution for every phase, the last dim's fastest. One convolution of all phases
  // would not be depthwise.
  std::vector<Value> depthwise_phases() {
    Value taps = filters(); // [channels * phases, 1, taps...]
    std::vector<Dim> split{convolution_.operand(1).type().dims[0], Dim(phases_)}, one;
    for (int d = 1; d < taps.rank(); ++d) split.push_back(taps.type().dims[static_cast<size_t>(d)]);
    one = taps.type().dims;
    one[0] = split[0];
    Value by_phase = b_.reshape(taps, split);
    Ints starts(split.size(), 0), strides(split.size(), 1), limits = by_phase.type().static_dims();
    std::vector<Value> parts;
    for (int64_t number = 0; number < phases_; ++number) {
      auto [phase, window] = phase_of_residue(number);
      Attributes attributes = convolution_.attributes();
      attributes.set("window", window);
      starts[1] = phase, limits[1] = phase + 1;
      Value own = b_.reshape(b_.slice(by_phase, starts, limits, strides), one);
      parts.push_back(b_.op(Opcode::Convolution, {convolution_.operand(0), own}, attributes));
    }
    return parts;
  }

  // The limit of slices that keep all of the batch.
  int64_t whole_batch() const {
    const Dim& batch = convolution_.type().dims[0];
    return batch.is_static() ? batch.value() : -1;
  }

  // Positions of the result with equal residues in every dim; the last of them may lie beyond the result.
  int64_t residue_extent(size_t d) const {
    int64_t phases = dims_[d].phases;
    return (convolution_.type().dim(static_cast<int>(d) + 2) + phases - 1) / phases;
  }

  // The phase that computes the positions of the residues with this number, and its window over just these.
  std::pair<int64_t, Window> phase_of_residue(int64_t number) const {
    Window window = window_;
    int64_t phase = 0, unit = 1;
    for (size_t d = dims_.size(); d-- > 0;) {
      const PhaseDim& dim = dims_[d];
      int64_t at = number % dim.phases + dim.skipped;
      number /= dim.phases;
      phase += at % dim.phases * unit;
      unit *= dim.phases;
      WindowDim& own = window.dims[d];
      own.pad_low -= at / dim.phases;
      own.pad_high = (residue_extent(d) - 1) * own.stride + (own.size - 1) * own.dilation + 1 - own.pad_low -
                     convolution_.operand(0).dim(static_cast<int>(d) + 2);
    }
    return {phase, window};
  }

  // Residues that are values of their own, joined along one dim after the other.
  Value interleave_by_dims(std::vector<Value> parts) {
    const Type& result = convolution_.type();
    Ints starts{0, 0}, limits{whole_batch(), result.dim(1)}, strides(static_cast<size_t>(result.rank()), 1);
    for (size_t d = dims_.size(); d-- > 0;) {
      size_t phases = static_cast<size_t>(dims_[d].phases);
      std::vector<Value> joined;
      for (size_t first = 0; first < parts.size(); first += phases) {
        std::vector<Value> neighbours;
        std::vector<Dim> dims = parts[first].type().dims, merged = dims;
        dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(d) + 3, Dim(1));
        merged[d + 2] = Dim(residue_extent(d) * dims_[d].phases);
        for (size_t phase = 0; phase < phases; ++phase)
          neighbours.push_back(b_.reshape(parts[first + phase], dims));
        joined.push_back(phases == 1
                             ? parts[first]
                             : b_.reshape(b_.concatenate(neighbours, static_cast<int64_t>(d) + 3), merged));
      }
      parts = std::move(joined);
    }
    for (size_t d = 0; d < dims_.size(); ++d) {
      starts.push_back(0);
      limits.push_back(result.dim(static_cast<int>(d) + 2));
    }
    return b_.slice(parts[0], starts, limits, strides);
  }

  // The filters of all phases, [channels * phases, inputs, taps...]. Phase r of a dim has the taps phases - 1
  // - r, 2 * phases - 1 - r, ...
  Value filters() {
    Value w = convolution_.operand(1);
    int rank = w.rank(), spatial = rank - 2;
    Ints low(static_cast<size_t>(rank), 0), high = low, reversed, order;
    std::vector<Dim> split{w.type().dims[0], w.type().dims[1]},
        merged{Dim(w.dim(0) * phases_), w.type().dims[1]};
    for (int d = 0; d < spatial; ++d) {
      const PhaseDim& dim = dims_[static_cast<size_t>(d)];
      high[static_cast<size_t>(d) + 2] = dim.taps * dim.phases - w.dim(d + 2);
      split.insert(split.end(), {Dim(dim.taps), Dim(dim.phases)});
      merged.push_back(Dim(dim.taps));
      reversed.push_back(3 + 2 * d);
    }
    order.push_back(0);
    order.insert(order.end(), reversed.begin(), reversed.end());
    order.push_back(1);
    for (int d = 0; d < spatial; ++d) order.push_back(2 + 2 * d);
    Value taps = b_.reshape(b_.pad(w, b_.scalar(w.dtype(), 0), low, high), split);
    taps = b_.op(Opcode::Reverse, {taps}, {{"dims", reversed}});
    return b_.reshape(b_.transpose(taps, order), merged);
  }

  // The only user of a value, if it computes each element from one element, a channel's value, or a scalar.
  Instruction* follower(Instruction& from) const {
    if (from.users().size() != 1 || !has_one_use(from.result())) return nullptr;
    Instruction* next = from.users()[0];
    if (!is_elementwise(next->opcode()) || next->parent() != from.parent() ||
        !same_dims(next->type(), from.type()))
      return nullptr;
    for (Value operand : next->operands()) {
      if (operand.def == &from) continue;
      Instruction* broadcast = defined_by(operand, Opcode::BroadcastInDim);
      if (!broadcast) return nullptr;
      const Ints& map = broadcast->attributes().ints("dims");
      if (!map.empty() && !(map == Ints{1} && broadcast->operand(0).type().dims[0] == from.type().dims[1]))
        return nullptr;
    }
    return next;
  }

  // `instruction` on `made` in place of `last`; a channel's value goes to all of its phases.
  Value apply(const Instruction& instruction, const Instruction& last, Value made) {
    std::vector<Value> operands;
    for (Value operand : instruction.operands()) {
      if (operand.def == &last) {
        operands.push_back(made);
        continue;
      }
      Value source = operand.def->operand(0);
      Ints map = operand.def->attributes().ints("dims");
      Type type = made.type();
      type.dtype = operand.dtype();
      if (!map.empty() && phases_ > 1) {
        Type wide = source.type();
        wide.dims.push_back(Dim(phases_));
        source = b_.reshape(make_broadcast(b_, source, wide, {0}), {made.type().dims[1]});
      }
      operands.push_back(make_broadcast(b_, source, type, map));
    }
    return b_.op(instruction.opcode(), operands, instruction.attributes());
  }

  // [n, channels * phases, groups...] to [n, channels, groups * phases...], and the part of it that is
  // wanted.
  Value interleave(Value made) {
    const Type& result = convolution_.type();
    std::vector<Dim> split{made.type().dims[0], result.dims[1]}, merged = split;
    Ints order{0, 1}, starts{0, 0}, limits{whole_batch(), result.dim(1)},
        strides(static_cast<size_t>(result.rank()), 1);
    int64_t spatial = static_cast<int64_t>(dims_.size());
    for (const PhaseDim& dim : dims_) split.push_back(Dim(dim.phases));
    for (int64_t d = 0; d < spatial; ++d) {
      const PhaseDim& dim = dims_[static_cast<size_t>(d)];
      split.push_back(Dim(dim.groups));
      merged.push_back(Dim(dim.groups * dim.phases));
      order.insert(order.end(), {2 + spatial + d, 2 + d});
      starts.push_back(dim.skipped);
      limits.push_back(dim.skipped + result.dim(static_cast<int>(d) + 2));
    }
    Value whole = b_.reshape(b_.transpose(b_.reshape(made, split), order), merged);
    return b_.slice(whole, starts, limits, strides);
  }

  Instruction& convolution_;
  GraphBuilder b_;
  std::vector<PhaseDim> dims_;
  int64_t phases_;
  Window window_;
};

constexpr int64_t kMaxFilled = int64_t{1} << 24; // elements of a filter with holes

// The convolution with holes in the filter, or no value where one side alone is dilated.
Value fill_filter(Instruction& convolution, const PassOptions&) {
  if (!convolution.is(Opcode::Convolution) || !convolution.operand(1).type().is_static()) return {};
  Window window = convolution.attributes().window();
  Value w = convolution.operand(1);
  Ints none(static_cast<size_t>(w.rank()), 0), interior = none;
  int64_t elements = w.type().num_elements();
  bool both = false;
  for (size_t d = 0; d < window.dims.size(); ++d) {
    WindowDim& dim = window.dims[d];
    if (dim.dilation == 1 || dim.input_dilation == 1) continue;
    if (dim.dilated_size() > kMaxFilled || elements > kMaxFilled) return {};
    elements = elements / dim.size * dim.dilated_size();
    interior[d + 2] = dim.dilation - 1;
    dim.size = dim.dilated_size();
    dim.dilation = 1;
    both = true;
  }
  if (!both || elements > kMaxFilled) return {};
  GraphBuilder b(*convolution.parent(), &convolution);
  Value filled =
      b.op(Opcode::Pad, {w, b.scalar(w.dtype(), 0)}, {{"low", none}, {"high", none}, {"interior", interior}});
  Attributes attributes = convolution.attributes();
  attributes.set("window", window);
  return b.op(Opcode::Convolution, {convolution.operand(0), filled}, attributes);
}

// Whether products take longer than interleaving their results, and integers cannot be multiplied with zeros
// between them: the input or the filters have a zero point that is not zero, or 16 bits, whose phases no
// kernel stores interleaved.
bool is_profitable_in_integer_phases(const Instruction& convolution, const ConvolutionPhases& phases) {
  auto input = dequantized(convolution.operand(0)), filters = dequantized(convolution.operand(1));
  if (!input || !filters) return false;
  int64_t products = convolution.operand(1).dim(1);
  for (const PhaseDim& dim : phases.dims) products *= dim.taps;
  bool is_wide = bit_width(input->integers.dtype()) == 16;
  return plan::outlasts_interleaving(products) &&
         (input->zero_point || is_wide || !are_signed_bytes(*filters));
}

using Wanted = std::function<bool(const Instruction& convolution, const ConvolutionPhases& phases)>;

bool split(Module& module, const PassOptions& options, const Wanted& is_wanted) {
  bool changed = false;
  for_each_region(module, [&](Region& region) {
    std::vector<std::pair<Instruction*, ConvolutionPhases>> found;
    for (Instruction* instruction : region.snapshot()) {
      auto phases = ConvolutionPhases::of(*instruction);
      if (phases && is_wanted(*instruction, *phases)) found.push_back({instruction, *phases});
    }
    for (const auto& [convolution, phases] : found) {
      if (!options.take_rewrite()) return;
      Split(*convolution, phases).run();
      changed = true;
    }
  });
  return changed;
}

} // namespace

bool split_quantised_dilations(Module& module, const PassOptions& options) {
  if (!options.target || options.goals.strict_math()) return false;
  return split(module, options, is_profitable_in_integer_phases);
}

bool split_input_dilations(Module& module, const PassOptions& options) {
  bool filled = rewrite_module(module, options, fill_filter);
  bool changed = split(module, options, [&](const Instruction& convolution, const ConvolutionPhases&) {
    return !options.target || !plan::has_polyphase_kernel(convolution, plan::channel_block(*options.target));
  });
  return filled || changed;
}

} // namespace firn
