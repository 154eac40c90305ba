// Planned dots and convolutions as kernels.
#include "compiler/lower/contraction_fusion.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/winograd.h"

namespace firn::lower {

Place pack_operand(LoweringContext& context, const Instruction& instruction, const PackedOperand& packed,
                   Value operand) {
  int64_t bytes = packed.elements() * kernel::scalar_bytes(packed.element);
  if (plan::is_packable_constant(operand)) {
    LiteralRef literal = operand.def->literal();
    auto fill = [literal, packed](std::span<std::byte> out) { pack(packed, literal->bytes(), out); };
    return {context.add_constant(bytes, fill, operand.def->location()), 0};
  }
  Place place{context.add_scratch_buffer(bytes, "packed"), 0};
  KernelMaker maker(context, instruction, "pack");
  int source = maker.read(operand);
  int out = maker.parameter(place, packed.element, packed.elements(), true, "packed");
  emit_pack(maker.builder(), packed, source, out);
  maker.finish();
  return place;
}

std::string direct_name(const plan::ConvolutionGeometry& g, const plan::TileShape& tile) {
  std::string text;
  for (const WindowDim& dim : g.window) text += (text.empty() ? "" : "x") + std::to_string(dim.size);
  if (tile.depth > 1) text += " depth " + std::to_string(tile.depth);
  return text + " direct " + std::to_string(tile.rows) + "x" + std::to_string(tile.vectors);
}

namespace {

// Has the kernel of a convolution leave the sums of its tiles, if somebody takes them.
void take_side_sums(KernelMaker& maker, ContractionBinding& binding, SideSums* sums, int64_t tiles) {
  binding.side_sums = sums;
  if (sums) sums->take(maker, tiles);
}

void emit_convolution(LoweringContext& context, const Instruction& instruction, const plan::KernelRoot& root,
                      const plan::ContractionPlan& plan) {
  const plan::TileShape& tile = plan.tiling.tile;
  auto computed = plan::ComputedConvolution::of(root, instruction.type(), tile.lanes);
  plan::ConvolutionGeometry g = *computed.geometry(/*by_lines=*/false);
  PackedOperand packed = packed_filters(g, tile);
  Place filters = pack_operand(context, instruction, packed, computed.filter);
  KernelMaker maker(context, instruction, "convolution");
  ContractionBinding binding = make_binding(instruction, root);
  binding.polyphase = computed.polyphase;
  binding.shares_vectors = g.shares_vectors(tile.lanes);
  binding.scalar = maker.read(root.operands[0]);
  binding.vector = maker.parameter(filters, packed.element, packed.elements(), false, "packed");
  if (plan.looped_epilogue) binding.sums_in_memory = std::make_shared<SumsArray>();
  take_side_sums(maker, binding, context.side_sums_of(instruction), g.tiles(tile.rows, tile.lanes));
  bind_result(maker, instruction, root, binding, bias_of(plan));
  maker.kernel().algorithm = direct_name(g, tile);
  maker.set_flops(g.flops);
  emit_contraction(maker.builder(), convolution_spec(g, plan, binding), plan.tiling);
  maker.finish();
}

// The composite whose rows the kernel of a dot takes while they are near; null if there is none.
const Instruction* joined_rows(const LoweringContext& context, const Instruction& dot) {
  for (const Instruction* user : dot.users()) {
    const auto* rows = context.plans().find<plan::RowsPlan>(*user);
    if (rows && rows->in_producer && user->operand(0).def == &dot) return user;
  }
  return nullptr;
}

// Sums between the parts of a reduction.
struct PartialSums {
  Place place;
  int64_t elements = 0;
};

// One kernel: the whole dot, or a part of its reduction.
void emit_dot_part(LoweringContext& context, const Instruction& instruction, const plan::KernelRoot& root,
                   const plan::DotGeometry& g, const plan::ContractionPlan& plan, ReductionPart part,
                   const PartialSums& sums) {
  const plan::TileShape& tile = plan.tiling.tile;
  Value vector = root.operands[g.swapped ? 0 : 1], scalar = root.operands[g.swapped ? 1 : 0];
  PackedOperand packed = packed_columns(g, tile, part);
  Place columns = plan.unpacked ? Place{} : pack_operand(context, instruction, packed, vector);
  KernelMaker maker(context, instruction, "dot");
  ContractionBinding binding = make_binding(instruction, root);
  binding.scalar = maker.read(scalar);
  binding.vector = plan.unpacked
                       ? maker.read(vector)
                       : maker.parameter(columns, packed.element, packed.elements(), false, "packed");
  if (part.count > 1)
    binding.partial =
        maker.parameter(sums.place, kernel::Scalar::F32, sums.elements, !part.is_last(), "sums");
  if (plan.looped_epilogue) binding.sums_in_memory = std::make_shared<SumsArray>();
  const Instruction* norm = part.is_last() ? joined_rows(context, instruction) : nullptr;
  if (norm && instruction.num_uses(0) == 1 && !context.is_placed(result_of(instruction)))
    context.set_view(result_of(instruction), result_of(*norm));
  if (part.is_last()) bind_result(maker, instruction, root, binding);
  maker.kernel().algorithm = "dot " + std::to_string(tile.rows) + "x" + std::to_string(tile.vectors);
  std::function<void(const IntExpr& first, const IntExpr& end)> finish_rows;
  if (norm) {
    finish_rows = bind_rows(maker, *norm);
    maker.kernel().algorithm += " " + norm->attributes().word("name");
  }
  maker.set_flops(g.flops / part.count);
  ContractionSpec spec = dot_spec(g, plan, binding, part);
  spec.finish_rows = finish_rows;
  emit_contraction(maker.builder(), spec, plan.tiling);
  maker.finish();
}

void emit_dot(LoweringContext& context, const Instruction& instruction, const plan::KernelRoot& root,
              const plan::ContractionPlan& plan) {
  plan::DotGeometry g = *plan::DotGeometry::of(*root.op, instruction.type(), plan.lhs_columns);
  int count = plan.tiling.parts;
  PartialSums sums;
  if (count > 1) {
    sums.elements = partial_elements(g, plan.tiling.tile);
    sums.place = {context.add_scratch_buffer(sums.elements * 4, "sums"), 0};
  }
  for (int number = 0; number < count; ++number)
    emit_dot_part(context, instruction, root, g, plan, {number, count}, sums);
}

} // namespace

void emit_planned(LoweringContext& context, const Instruction& instruction,
                  const plan::ContractionPlan& plan) {
  plan::KernelRoot root = *plan::find_contraction(instruction);
  if (plan.algorithm == plan::ContractionPlan::Algorithm::Planar)
    emit_planar_convolution(context, instruction, root, plan);
  else if (root.op->is(Opcode::Dot))
    emit_dot(context, instruction, root, plan);
  else
    emit_convolution(context, instruction, root, plan);
}

void emit_planned(LoweringContext& context, const Instruction& instruction, const plan::WinogradPlan& plan) {
  plan::KernelRoot root = *plan::find_contraction(instruction);
  const TargetMachine& target = context.target();
  auto computed = plan::ComputedConvolution::of(root, instruction.type(), target.lanes(32));
  plan::WinogradGeometry g = *plan::winograd_geometry(plan, computed, target, context.model_weight_bytes());
  LiteralRef literal = computed.filter.def->literal();
  auto fill = [literal, g](std::span<std::byte> out) {
    plan::pack_winograd_filters(g, plan::aligned_filters(*literal).data(), out);
  };
  std::optional<kernel::RawForm> raw;
  if (context.options().winograd == Winograd::Init) raw = raw_winograd_filters(g, literal);
  int constant =
      context.add_constant(g.filter_elements() * 4, fill, computed.filter.def->location(), std::move(raw));
  KernelMaker maker(context, instruction, "convolution");
  ContractionBinding binding = make_binding(instruction, root);
  binding.polyphase = computed.polyphase;
  binding.scalar = maker.read(root.operands[0]);
  binding.vector = maker.parameter({constant, 0}, kernel::Scalar::F32, g.filter_elements(), false, "packed");
  if (plan.looped_epilogue) binding.sums_in_memory = std::make_shared<SumsArray>();
  take_side_sums(maker, binding, context.side_sums_of(instruction), g.tiles_high * g.tiles_wide);
  bind_result(maker, instruction, root, binding);
  int inputs = maker.scratch(kernel::Scalar::F32, g.input_scratch(), "inputs"),
      products = maker.scratch(kernel::Scalar::F32, g.product_scratch(), "products");
  maker.kernel().algorithm = g.name();
  auto direct = computed.geometry(/*by_lines=*/false);
  maker.set_flops(direct ? direct->flops : 0);
  emit_winograd(maker.builder(), g, binding, inputs, products);
  maker.finish();
}

} // namespace firn::lower
