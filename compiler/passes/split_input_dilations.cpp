// split-input-dilations: makes plain convolutions of transposed ones.
//
//   %c = convolution %x, %w {window = 4 pad 2_2 input_dilate 2} : f32[1,8,20]
//     ->
//   %p = convolution %x, %v {window = 2 pad 1_1} : f32[1,16,11]      (%v: taps of each phase, f32[16,4,2])
//   %t = transpose (reshape %p : f32[1,8,2,11]) {permutation = [0, 1, 3, 2]}
//   %c = slice (reshape %t : f32[1,8,22]) : f32[1,8,20]
//
// Between the zeros that dilate the input, s neighbouring results see s different sets of taps: as many
// filters of a convolution over the input itself, whose results are interleaved. Where the window's size is
// no multiple of s, some taps are zeros. Bias and activation behind the convolution stay next to it.
// Requires: static shapes where anything changes; scales are folded (fold-conv-scales). Establishes: no
// convolution of stride 1 dilates its input by no more than its window. Breaks: nothing (fold-constants
// computes the filters).
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace firn {
namespace {

using Ints = std::vector<int64_t>;

bool can_split(const Instruction& convolution) {
  if (!convolution.is(Opcode::Convolution) || !convolution.type().is_static()) return false;
  for (Value operand : convolution.operands())
    if (!operand.type().is_static() || operand.type().num_elements() == 0) return false;
  if (convolution.type().num_elements() == 0) return false;
  bool dilated = false;
  for (const WindowDim& dim : convolution.attributes().window().dims) {
    if (dim.input_dilation == 1) continue;
    if (dim.stride != 1 || dim.dilation != 1 || dim.pad_low < 0 || dim.size < dim.input_dilation)
      return false;
    dilated = true;
  }
  return dilated;
}

// One spatial dim: results are numbered so that each group of `phases` sees the same input elements.
struct PhaseDim {
  int64_t phases, taps; // taps of each phase
  int64_t skipped;      // results before the first wanted one
  WindowDim window;     // over the input itself
  int64_t groups;       // results of that window

  PhaseDim(const WindowDim& dim, int64_t input, int64_t output)
      : phases(dim.input_dilation), taps(dim.size), skipped(0), window(dim), groups(output) {
    if (phases == 1) return;
    taps = (dim.size + phases - 1) / phases;
    skipped = phases - 1 - dim.pad_low % phases;
    window = WindowDim{};
    window.size = taps;
    window.pad_low = dim.pad_low / phases;
    // At least as many as see the last element of the input: padding is never negative.
    groups = std::max((output + skipped + phases - 1) / phases, input + window.pad_low - taps + 1);
    window.pad_high = groups + taps - 1 - input - window.pad_low;
  }
};

class Split {
public:
  explicit Split(Instruction& convolution)
      : convolution_(convolution), b_(*convolution.parent(), &convolution) {
    const Window& window = convolution.attributes().window();
    for (size_t d = 0; d < window.dims.size(); ++d) {
      int at = static_cast<int>(d) + 2;
      dims_.emplace_back(window.dims[d], convolution.operand(0).dim(at), convolution.type().dim(at));
      phases_ *= dims_.back().phases;
    }
  }

  void run() {
    Attributes attributes = convolution_.attributes();
    Window window;
    for (const PhaseDim& dim : dims_) window.dims.push_back(dim.window);
    attributes.set("window", window);
    Value made = b_.op(Opcode::Convolution, {convolution_.operand(0), filters()}, attributes);
    Instruction* last = &convolution_;
    while (Instruction* next = follower(*last)) {
      b_ = Builder(*next->parent(), next);
      made = apply(*next, *last, made);
      last = next;
    }
    last->parent()->replace_uses(last->result(), interleave(made));
    erase_if_dead(last);
  }

private:
  // Phase r of a dim has the taps phases - 1 - r, 2 * phases - 1 - r, ...
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
    Ints order{0, 1}, starts{0, 0}, limits{result.dim(0), result.dim(1)},
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
  Builder b_;
  std::vector<PhaseDim> dims_;
  int64_t phases_ = 1;
};

} // namespace

bool split_input_dilations(Module& module, const PassOptions& options) {
  bool changed = false;
  for_each_region(module, [&](Region& region) {
    std::vector<Instruction*> found;
    for (Instruction* instruction : region.snapshot())
      if (can_split(*instruction)) found.push_back(instruction);
    for (Instruction* convolution : found) {
      if (!options.take_rewrite()) return;
      Split(*convolution).run();
      changed = true;
    }
  });
  return changed;
}

} // namespace firn
