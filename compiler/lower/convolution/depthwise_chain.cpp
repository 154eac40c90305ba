// Depthwise chains: [convolution ->] depthwise convolution [-> 1x1 convolution] as one kernel, so that what
// passes between the members stays in the second cache level:
//
//   for every strip of output lines
//     for every group of channels
//       expand: the input lines that the strip's windows cover -> scratch of that group
//       depthwise: scratch -> lines of the strip, of all channels
//     project: lines of the strip -> result
//
// Lines of the expanded map outside the image are never made: windows are clipped at them. Lines that two
// strips cover are made twice. The members are emitted by what emits them in kernels of their own.
#include "compiler/plan/windows/depthwise_chain.h"
#include "compiler/lower/convolution/row_convolution.h"
#include "compiler/lower/emitters.h"
#include "compiler/plan/contraction/plan.h"

namespace firn::lower {
namespace {

using kernel::Builder;

class StripEmitter {
public:
  StripEmitter(LoweringContext& context, const Instruction& fusion, const plan::DepthwiseChain& chain,
               int64_t map_rows)
      : context_(context), fusion_(fusion), map_rows_(map_rows),
        depthwise_(make_row_depthwise(context, *chain.depthwise)) {
    if (chain.expand) expand_.emplace(make_row_convolution(context, *chain.expand));
    if (chain.project) project_.emplace(make_row_convolution(context, *chain.project));
  }

  void emit() {
    if (expand_) pack_filters(context_, *expand_);
    pack_filters(context_, depthwise_);
    if (project_) pack_filters(context_, *project_);
    KernelMaker maker(context_, fusion_, "depthwise_chain");
    take_spatial_sum(maker);
    if (expand_) bind_operands(maker, *expand_);
    bind_depthwise(maker);
    if (project_) bind_project(maker);
    if (expand_) bind_expanded(maker);
    describe(maker);
    add_spill_buffers(maker.builder());
    emit_loops(maker.builder());
    maker.finish();
  }

private:
  const Instruction& last_member() const { return project_ ? project_->instruction : depthwise_.instruction; }

  void bind_operands(KernelMaker& maker, RowConvolution& map_rows) {
    map_rows.binding.scalar = maker.read(map_rows.root.operands[0]);
    bind_filters(maker, map_rows);
  }

  template <class Plan>
  void bind_result_of(KernelMaker& maker, const Instruction& member, const plan::KernelRoot& root,
                      const Plan& plan, ContractionBinding& binding) {
    if (&member == &last_member())
      bind_result(maker, member, root, binding, bias_of(plan));
    else
      bind_epilogue(maker, member, root, binding, bias_of(plan));
  }

  void take_spatial_sum(KernelMaker& maker) {
    FusedSpatialSum* sum = context_.spatial_sum_of(fusion_);
    if (!sum) return;
    const plan::TileShape* tile = project_ ? &project_->plan.tiling.tile : nullptr;
    (project_ ? project_->binding : depthwise_.binding).totals = sum->bind(
        maker, tile ? project_->geometry.tiles(tile->rows, tile->lanes) : depthwise_.code.tiles().count());
  }

  void bind_depthwise(KernelMaker& maker) {
    ContractionBinding& binding = depthwise_.binding;
    if (!expand_) binding.scalar = maker.read(depthwise_.root.operands[0]);
    bind_filters(maker, depthwise_);
    bind_result_of(maker, depthwise_.instruction, depthwise_.root, depthwise_.plan, binding);
  }

  // A part of a member's result in scratch, with that many channels and lines.
  int add_part(KernelMaker& maker, const Instruction& member, int64_t channels, int64_t map_rows,
               const char* name, TensorPart& part) {
    part.type = member.type();
    part.type.dims[0] = Dim(1);
    part.type.dims[1] = Dim(channels);
    part.type.dims[2] = Dim(map_rows);
    kernel::Scalar element = memory_scalar(part.type.dtype);
    int64_t bytes = static_cast<int64_t>(part.type.physical_byte_size());
    return maker.scratch(element, bytes / kernel::scalar_bytes(element), name);
  }

  void bind_project(KernelMaker& maker) {
    bind_filters(maker, *project_);
    bind_result_of(maker, project_->instruction, project_->root, project_->plan, project_->binding);
    TensorPart part;
    const Instruction& filtered = depthwise_.instruction;
    int scratch = add_part(maker, filtered, filtered.type().dim(1), map_rows_, "filtered", part);
    depthwise_.binding.result = project_->binding.scalar = scratch;
    depthwise_.binding.result_part = project_->binding.scalar_part = part;
  }

  void bind_expanded(KernelMaker& maker) {
    bind_result_of(maker, expand_->instruction, expand_->root, expand_->plan, expand_->binding);
    const plan::ColumnGroups groups = expand_->groups();
    TensorPart part;
    int64_t channels = std::min<int64_t>(groups.vectors, groups.total_vectors) * groups.lanes;
    int scratch = add_part(maker, expand_->instruction, channels, covered_lines(), "expanded", part);
    expand_->binding.result = depthwise_.binding.scalar = scratch;
    expand_->binding.result_part = depthwise_.binding.scalar_part = part;
  }

  void add_spill_buffers(Builder& b) {
    if (expand_) add_spill_buffer(b, expand_->binding, expand_->geometry, expand_->plan);
    depthwise_.code.add_spill_buffer(b, depthwise_.binding);
    if (project_) add_spill_buffer(b, project_->binding, project_->geometry, project_->plan);
  }

  const WindowDim& line_window() const { return depthwise_.code.tiles().window()[0]; }
  int64_t covered_lines() const {
    const WindowDim& window = line_window();
    return std::min((map_rows_ - 1) * window.stride + window.dilated_size(),
                    depthwise_.code.tiles().input().dim(2) + window.pad_low + window.pad_high);
  }

  void describe(KernelMaker& maker) {
    std::string& text = maker.kernel().algorithm = "depthwise_chain rows " + std::to_string(map_rows_) + ":";
    int64_t flops = depthwise_.code.flops();
    if (expand_) text += " " + direct_name(expand_->geometry, expand_->plan) + ",";
    text += " " + depthwise_.code.algorithm();
    if (project_) text += ", " + direct_name(project_->geometry, project_->plan);
    for (const auto* map_rows : {&expand_, &project_})
      if (*map_rows) flops += (*map_rows)->geometry.flops;
    maker.set_flops(flops);
  }

  // The place of one strip.
  struct Strip {
    IntExpr feature_map;
    IntExpr first, count;                      // lines of the result
    IntExpr covered, covered_from, covered_to; // lines of the input: covered + [from, to) are in the image
  };
  Strip strip_at(const IntExpr& feature_map, const IntExpr& number) const {
    const WindowDim& window = line_window();
    Strip strip;
    strip.feature_map = feature_map;
    strip.first = number * map_rows_;
    strip.count = min(map_rows_, IntExpr(result_lines()) - strip.first);
    strip.covered = strip.first * window.stride - window.pad_low;
    strip.covered_from = max(0, strip.covered * -1);
    strip.covered_to = min(covered_lines(), IntExpr(depthwise_.code.tiles().input().dim(2)) - strip.covered);
    return strip;
  }
  int64_t result_lines() const { return depthwise_.instruction.type().dim(2); }

  // Without a projection, groups of channels are independent work too.
  void emit_loops(Builder& b) {
    int64_t strips = (result_lines() + map_rows_ - 1) / map_rows_;
    int64_t groups = expand_ ? expand_->groups().count() : 1, split = project_ ? 1 : groups;
    IntExpr p = b.set_parallel(depthwise_.instruction.type().dim(0) * strips * split);
    IntExpr unit = floor_div(p, split);
    Strip strip = strip_at(floor_div(unit, strips), floor_mod(unit, strips));
    if (!expand_)
      emit_depthwise_blocks(b, strip, 0, ceil_div(depthwise_.instruction.type().dim(1), block()));
    else if (project_)
      b.loop(0, groups, 1, [&](const IntExpr& group) { emit_group(b, strip, group); });
    else
      emit_group(b, strip, floor_mod(p, split));
    if (!project_) return;
    ContractionBinding binding = project_->binding;
    binding.scalar_part->first = filtered_from(strip);
    b.loop(0, project_->groups().count(), 1, [&](const IntExpr& group) {
      emit_column_group(b, project_->groups(), group, [&](const IntExpr& vector, int vectors) {
        emit_lines(b, *project_, binding, strip.feature_map, vector, vectors, {strip.first, 0, strip.count});
      });
    });
  }

  static Index filtered_from(const Strip& strip) { return {strip.feature_map, 0, strip.first, 0}; }

  int64_t block() const { return depthwise_.code.tiles().lanes(); }

  // The channels of one column group of the expansion.
  void emit_group(Builder& b, const Strip& strip, const IntExpr& group) {
    emit_column_group(b, expand_->groups(), group, [&](const IntExpr& vector, int vectors) {
      Index expanded_from{strip.feature_map, vector * block(), strip.covered, 0};
      ContractionBinding expand = expand_->binding;
      expand.result_part->first = expanded_from;
      emit_lines(b, *expand_, expand, strip.feature_map, vector, vectors,
                 {strip.covered, strip.covered_from, strip.covered_to});
      emit_depthwise_blocks(b, strip, vector, vectors, expanded_from);
    });
  }

  // `expanded_from`: where the strip's part of the input begins, if it has one of its own.
  void emit_depthwise_blocks(Builder& b, const Strip& strip, const IntExpr& first, const IntExpr& count,
                             const Index& expanded_from = {}) {
    ContractionBinding binding = depthwise_.binding;
    if (expand_) binding.scalar_part->first = expanded_from;
    if (project_) binding.result_part->first = filtered_from(strip);
    b.loop(0, count, 1, [&](const IntExpr& i) {
      depthwise_.code.emit_block(b, binding, strip.feature_map, first + i, strip.first, strip.count);
    });
  }

  LoweringContext& context_;
  const Instruction& fusion_;
  int64_t map_rows_; // rows of the result per strip
  RowDepthwise depthwise_;
  std::optional<RowConvolution> expand_, project_;
};

} // namespace

void emit_depthwise_chain(LoweringContext& context, const Instruction& fusion,
                          const plan::DepthwiseChainPlan& plan) {
  auto chain = plan::find_depthwise_chain(fusion, context.plan_options());
  StripEmitter(context, fusion, *chain, plan.rows).emit();
}

} // namespace firn::lower
