// Row strips: a chain [convolution ->] depthwise convolution [-> 1x1 convolution] as one kernel, so that what
// passes between its members stays in the second cache level:
//
//   for every strip of output lines
//     for every group of channels
//       expand: the input lines that the strip's windows cover -> scratch of that group
//       depthwise: scratch -> lines of the strip, of all channels
//     project: lines of the strip -> result
//
// Lines of the expanded map outside the image are never made: windows are clipped at them. Lines that two
// strips cover are made twice. The members are emitted by what emits them in kernels of their own.
#include "compiler/lower/depthwise.h"
#include "compiler/lower/emitters.h"

namespace firn::lower {
namespace {

using kernel::Builder;

struct Member {
  const Instruction* instruction = nullptr;
  ContractionRoot root;
};

// A convolution whose lines the strips walk.
struct LineConvolution {
  Member member;
  BindingRef binding;
  PreparedContraction prepared;
  plan::ColumnGroups groups() const {
    return plan::column_groups(prepared.spec.shape.columns, prepared.tiling.tile);
  }
};

class StripEmitter {
public:
  StripEmitter(LoweringContext& context, const Instruction& fusion) : context_(context), fusion_(fusion) {}

  // Whether the members are such a chain, each covered by its emitter.
  bool prepare() {
    lines_ = fusion_.attributes().integer("rows", 0);
    if (lines_ < 1) return false;
    for (const auto& inner : fusion_.region().instructions()) {
      if (inner->is(Opcode::Constant) || inner->is(Opcode::Parameter)) continue;
      auto root = find_contraction_root(context_, *inner);
      if (!root || !add_member({inner.get(), *root})) return false;
    }
    return depthwise_ && (expand_ || project_) && last_member() == last_result();
  }

  void emit() {
    if (expand_) pack(expand_->member, expand_->prepared.packed, expand_weights_);
    pack(depthwise_member_, depthwise_->packed_taps(), taps_);
    if (project_) pack(project_->member, project_->prepared.packed, project_weights_);
    KernelMaker maker(context_, fusion_, "strips");
    take_side_sums(maker);
    if (expand_) bind_operands(maker, *expand_, expand_weights_);
    bind_depthwise(maker);
    if (project_) bind_project(maker);
    if (expand_) bind_expanded(maker);
    describe(maker);
    emit_loops(maker.builder());
    maker.finish();
  }

private:
  const Instruction* last_result() const { return fusion_.region().results()[0].def; }
  const Instruction* last_member() const {
    return project_ ? project_->member.instruction : depthwise_member_.instruction;
  }

  bool add_member(Member member) {
    const Instruction* before = project_     ? nullptr
                                : depthwise_ ? depthwise_member_.instruction
                                : expand_    ? expand_->member.instruction
                                             : nullptr;
    bool first = !depthwise_ && !expand_;
    if (!first && member.root.operands[0].def != before) return false;
    if (!depthwise_) {
      if (const auto* plan = context_.plans().find<plan::DepthwisePlan>(*member.instruction)) {
        if (member.instruction->type().rank() != 4 || plan->tiling.along != 1) return false;
        depthwise_.emplace(*member.instruction, member.root, *plan, context_.target());
        depthwise_member_ = member;
        return true;
      }
    }
    auto lines = prepare_lines(member);
    if (!lines || (!depthwise_ && expand_)) return false;
    (depthwise_ ? project_ : expand_) = std::move(lines);
    return true;
  }

  // A convolution with the lines of the image as an outer loop of its own.
  std::optional<LineConvolution> prepare_lines(const Member& member) {
    const Instruction& convolution = *member.root.contraction;
    if (!convolution.is(Opcode::Convolution) || member.instruction->type().rank() != 4) return std::nullopt;
    LineConvolution lines{member, std::make_shared<ContractionBinding>(), {}};
    lines.binding->result_type = member.instruction->type();
    lines.binding->sum_dtype = convolution.type().dtype;
    lines.binding->by_lines = true;
    if (member.instruction == last_result()) lines.binding->side_sums = context_.side_sums_of(fusion_);
    lines.binding->schedule = find_schedule(context_, convolution, member.instruction->type());
    lines.binding->compact = context_.options().optimize_size;
    lines.binding->long_epilogue = plan::has_long_epilogue(*member.instruction);
    auto prepared = prepare_convolution(convolution, lines.binding, context_.target());
    if (!prepared || prepared->spec.shape.outer.size() != 2) return std::nullopt;
    lines.prepared = std::move(*prepared);
    return lines;
  }

  void pack(const Member& member, const PackedOperand& packed, Place& place) {
    place = pack_operand(context_, *member.instruction, packed, member.root.operands[1]);
  }

  void bind_operands(KernelMaker& maker, LineConvolution& lines, Place weights) {
    lines.binding->scalar = maker.read(lines.member.root.operands[0]);
    bind_weights(maker, lines, weights);
  }
  void bind_weights(KernelMaker& maker, LineConvolution& lines, Place weights) {
    const PackedOperand& packed = lines.prepared.packed;
    lines.binding->vector = maker.parameter(weights, packed.element, packed.elements(), false, "packed");
  }

  void bind_result_of(KernelMaker& maker, const Member& member, ContractionBinding& binding) {
    bool filters = &member == &depthwise_member_;
    bind_epilogue(maker, *member.instruction, member.root, binding,
                  filters ? depthwise_->bias() : bias_of_tiles(*member.instruction));
    if (member.instruction != last_member()) return;
    if (binding.side_sums && binding.side_sums->replaces_result()) return;
    binding.result = maker.write(result_of(*member.instruction));
  }

  void take_side_sums(KernelMaker& maker) {
    if (!project_)
      depthwise_->take_side_sums(maker, context_.side_sums_of(fusion_));
    else if (project_->prepared.tiles > 0)
      project_->binding->side_sums->take(maker, project_->prepared.tiles);
  }

  void bind_depthwise(KernelMaker& maker) {
    ContractionBinding& binding = depthwise_->binding();
    PackedOperand packed = depthwise_->packed_taps();
    if (!expand_) binding.scalar = maker.read(depthwise_member_.root.operands[0]);
    binding.vector = maker.parameter(taps_, packed.element, packed.elements(), false, "packed");
    bind_result_of(maker, depthwise_member_, binding);
  }

  // A part of a member's result in scratch, as many channels and lines.
  int add_part(KernelMaker& maker, const Member& member, int64_t channels, int64_t lines, const char* name,
               TensorPart& part) {
    part.type = member.instruction->type();
    part.type.dims[0] = Dim(1);
    part.type.dims[1] = Dim(channels);
    part.type.dims[2] = Dim(lines);
    kernel::Scalar element = memory_scalar(part.type.dtype);
    int64_t bytes = static_cast<int64_t>(part.type.physical_byte_size());
    return maker.scratch(element, bytes / kernel::scalar_bytes(element), name);
  }

  void bind_project(KernelMaker& maker) {
    bind_weights(maker, *project_, project_weights_);
    bind_result_of(maker, project_->member, *project_->binding);
    TensorPart part;
    int scratch = add_part(maker, depthwise_member_, depthwise_member_.instruction->type().dim(1), lines_,
                           "filtered", part);
    depthwise_->binding().result = project_->binding->scalar = scratch;
    depthwise_->binding().result_part = project_->binding->scalar_part = part;
  }

  void bind_expanded(KernelMaker& maker) {
    bind_result_of(maker, expand_->member, *expand_->binding);
    const plan::ColumnGroups groups = expand_->groups();
    TensorPart part;
    int64_t channels = std::min<int64_t>(groups.vectors, groups.total_vectors) * groups.lanes;
    int scratch = add_part(maker, expand_->member, channels, covered_lines(), "expanded", part);
    expand_->binding->result = depthwise_->binding().scalar = scratch;
    expand_->binding->result_part = depthwise_->binding().scalar_part = part;
  }

  const WindowDim& line_window() const { return depthwise_->tiles().window()[0]; }
  int64_t covered_lines() const {
    const WindowDim& window = line_window();
    return std::min((lines_ - 1) * window.stride + window.dilated_size(),
                    depthwise_->tiles().input().dim(2) + window.pad_low + window.pad_high);
  }

  void explain(const LineConvolution& lines) {
    plan::Explanation explanation = explain_direct(context_, *lines.member.instruction,
                                                   *lines.member.root.contraction, lines.prepared.tiling);
    const plan::Schedule* schedule = lines.binding->schedule;
    explanation.overruled = schedule && schedule->algorithm == explanation.chosen.algorithm;
    explanation.candidates[0].note = "in strips of " + std::to_string(lines_) + " lines";
    context_.options().explanations->push_back(std::move(explanation));
  }

  void describe(KernelMaker& maker) {
    std::string& text = maker.kernel().algorithm = "strips of " + std::to_string(lines_) + ":";
    int64_t flops = depthwise_->flops();
    if (expand_) text += " " + expand_->prepared.algorithm + ",";
    text += " " + depthwise_->algorithm();
    if (project_) text += ", " + project_->prepared.algorithm;
    for (const auto* lines : {&expand_, &project_})
      if (*lines) {
        flops += (*lines)->prepared.flops;
        if (context_.options().explanations) explain(**lines);
      }
    maker.set_flops(flops);
  }

  // One strip: where it lies.
  struct Strip {
    IntExpr image;
    IntExpr first, count;                      // lines of the result
    IntExpr covered, covered_from, covered_to; // lines of the input: covered + [from, to) are in the image
  };
  Strip strip_at(const IntExpr& image, const IntExpr& number) const {
    const WindowDim& window = line_window();
    Strip strip;
    strip.image = image;
    strip.first = number * lines_;
    strip.count = min(lines_, IntExpr(result_lines()) - strip.first);
    strip.covered = strip.first * window.stride - window.pad_low;
    strip.covered_from = max(0, strip.covered * -1);
    strip.covered_to = min(covered_lines(), IntExpr(depthwise_->tiles().input().dim(2)) - strip.covered);
    return strip;
  }
  int64_t result_lines() const { return depthwise_member_.instruction->type().dim(2); }

  // Without a projection, groups of channels are independent work too.
  void emit_loops(Builder& b) {
    int64_t strips = (result_lines() + lines_ - 1) / lines_;
    int64_t groups = expand_ ? expand_->groups().count() : 1, split = project_ ? 1 : groups;
    IntExpr p = b.set_parallel(depthwise_member_.instruction->type().dim(0) * strips * split);
    IntExpr unit = floor_div(p, split);
    Strip strip = strip_at(floor_div(unit, strips), floor_mod(unit, strips));
    if (project_)
      depthwise_->binding().result_part->first =
          project_->binding->scalar_part->first = {strip.image, 0, strip.first, 0};
    if (!expand_)
      emit_depthwise_blocks(b, strip, 0, ceil_div(depthwise_member_.instruction->type().dim(1), block()));
    else if (project_)
      b.loop(0, groups, 1, [&](const IntExpr& group) { emit_group(b, strip, group); });
    else
      emit_group(b, strip, floor_mod(p, split));
    if (!project_) return;
    b.loop(0, project_->groups().count(), 1, [&](const IntExpr& group) {
      emit_column_group(b, project_->groups(), group, [&](const IntExpr& vector, int vectors) {
        emit_lines(b, *project_, strip, vector, vectors, strip.first, 0, strip.count);
      });
    });
  }

  int64_t block() const { return depthwise_->tiles().lanes(); }

  // The channels of one column group of the expansion.
  void emit_group(Builder& b, const Strip& strip, const IntExpr& group) {
    emit_column_group(b, expand_->groups(), group, [&](const IntExpr& vector, int vectors) {
      expand_->binding->result_part->first =
          depthwise_->binding().scalar_part->first = {strip.image, vector * block(), strip.covered, 0};
      emit_lines(b, *expand_, strip, vector, vectors, strip.covered, strip.covered_from, strip.covered_to);
      emit_depthwise_blocks(b, strip, vector, vectors);
    });
  }

  void emit_depthwise_blocks(Builder& b, const Strip& strip, const IntExpr& first, const IntExpr& count) {
    b.loop(0, count, 1, [&](const IntExpr& i) {
      depthwise_->emit_block(b, strip.image, first + i, strip.first, strip.count);
    });
  }

  // Lines `first` + [lower, upper) of one column group.
  void emit_lines(Builder& b, const LineConvolution& lines, const Strip& strip, const IntExpr& vector,
                  int vectors, const IntExpr& first, const IntExpr& lower, const IntExpr& upper) {
    b.loop(lower, upper, 1, [&](const IntExpr& line) {
      TilePosition position;
      position.outer = {strip.image, first + line};
      position.column_vector = vector;
      position.vectors = vectors;
      emit_row_tiles(b, lines.prepared.spec, lines.prepared.tiling, position);
    });
  }

  LoweringContext& context_;
  const Instruction& fusion_;
  int64_t lines_ = 0; // of the result, per strip
  std::optional<LineConvolution> expand_, project_;
  std::optional<DepthwiseConvolution> depthwise_;
  Member depthwise_member_;
  Place expand_weights_, taps_, project_weights_;
};

} // namespace

Expected<bool> emit_strips(LoweringContext& context, const Instruction& fusion) {
  const Region& region = fusion.region();
  for (int i = 0; i < fusion.num_operands(); ++i) context.set_view(region.parameter(i), fusion.operand(i));
  context.set_view(region.results()[0], result_of(fusion));
  StripEmitter emitter(context, fusion);
  if (emitter.prepare()) {
    emitter.emit();
    return true;
  }
  if (Result members = context.lower_region(region, context.steps()); !members) return members.error();
  return true;
}

} // namespace firn::lower
