// Planned dots as kernels.
#include "compiler/lower/contraction/contraction_fusion.h"
#include "compiler/lower/contraction/widen_columns.h"
#include "compiler/lower/contraction/widen_rows.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/contraction/contraction_plan.h"
#include "compiler/plan/rows/plan.h"

namespace firn::lower {

// A packed constant with two steps in a byte.
static LiteralRef in_four_bits(const Packing& packing, const Literal& constant) {
  std::vector<std::byte> bytes(static_cast<size_t>(packing.packed_elements));
  pack(packing, constant.bytes(), bytes);
  auto pairs = std::make_shared<Literal>(DType::U8, std::vector{packing.packed_elements / 2});
  std::span<uint8_t> out = pairs->mutable_data<uint8_t>();
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<uint8_t>((std::to_integer<int>(bytes[2 * i]) & 15) |
                                  (std::to_integer<int>(bytes[2 * i + 1]) & 15) << 4);
  return pairs;
}

BufferSlice pack_operand(LoweringContext& context, const Instruction& instruction,
                         const PackedOperand& packed, Value operand, const std::optional<IntExpr>& selected) {
  int64_t bits = operand.type().at_bound().num_elements() * bit_width(operand.dtype());
  Packing packing = packed.packing(bits / (8 * kernel::scalar_bytes(packed.element)));
  if (packed.in_four_bits)
    return {context.add_constant(in_four_bits(packing, *operand.def->literal()),
                                 padded_copy(1, packed.places(), packed.places()), operand.def->location()),
            0};
  if (plan::is_packable_constant(operand))
    return {context.add_constant(operand.def->literal(), std::move(packing), operand.def->location()), 0};
  BufferSlice place{context.add_scratch_buffer(packing.packed_elements * packing.element_bytes, "packed"), 0};
  KernelMaker maker(context, instruction, "pack");
  int source = maker.read(operand);
  int out = maker.parameter(place, packed.element, packed.elements(), true, "packed");
  emit_pack(maker.builder(), packing, packed.element, packed.tile.lanes * packed.k_group, source, out,
            selected);
  maker.finish();
  return place;
}

std::string product_name(const plan::MacInstruction& product) {
  return product == plan::MacInstruction{} ? "" : " " + to_string(product);
}

namespace {

// The composite whose rows the dot's kernel computes while they are near; null if there is none.
const Instruction* joined_rows(const LoweringContext& context, const Instruction& dot) {
  for (const Instruction* user : dot.users()) {
    const auto* rows = context.plans().find<plan::RowsPlan>(*user);
    if (rows && rows->in_producer && user->operand(0).def == &dot) return user;
  }
  return nullptr;
}

// The packed columns that tiles read: a constant of its own, or the one that lies in panels.
BufferSlice place_columns(LoweringContext& context, const Instruction& instruction,
                          const plan::DotGeometry& g, const PackedOperand& packed, Value columns) {
  if (g.panel_columns > 0) return context.place_of(columns);
  std::optional<IntExpr> selected;
  if (!columns.type().is_static()) selected = plan::as_one(g.columns.batch)->extent;
  return pack_operand(context, instruction, packed, columns, selected);
}

// The sums between the parts of a reduction.
struct PartialSums {
  BufferSlice place;
  int64_t elements = 0;
};

// Emits one kernel: the whole dot, or a part of its reduction.
void emit_dot_part(LoweringContext& context, const Instruction& instruction, const plan::KernelRoot& root,
                   const plan::DotGeometry& g, const plan::ContractionPlan& plan, ReductionPart part,
                   const PartialSums& accumulators) {
  const plan::TileShape& tile = plan.tiling.tile;
  Value vector = root.operands[g.swapped ? 0 : 1], scalar = root.operands[g.swapped ? 1 : 0];
  PackedOperand packed = packed_columns(g, plan, part);
  BufferSlice columns =
                  plan.unpacked ? BufferSlice{} : place_columns(context, instruction, g, packed, vector),
              scale_place;
  if (g.in_blocks)
    scale_place =
        pack_operand(context, instruction, packed_scales(g, tile, root.scales.dtype(), part), root.scales);
  KernelMaker maker(context, instruction, "dot");
  ContractionBinding binding = make_binding(instruction, root);
  binding.scalar = maker.read(scalar);
  binding.vector = plan.unpacked ? maker.read(vector)
                                 : maker.parameter(columns, packed.element, packed.places(), false, "packed");
  if (g.in_blocks) {
    PackedOperand scales = packed_scales(g, tile, root.scales.dtype(), part);
    binding.scales_dtype = root.scales.dtype();
    binding.scales = maker.parameter(scale_place, scales.element, scales.elements(), false, "scales");
    if (root.row_scales) {
      binding.row_scales = maker.read(root.row_scales);
      binding.row_starts = maker.read(root.row_starts);
    }
  }
  if (part.count > 1)
    binding.partial = maker.parameter(accumulators.place, memory_scalar(plan.mac.accumulator),
                                      accumulators.elements, !part.is_last(), "sums");
  const Instruction* norm = part.is_last() ? joined_rows(context, instruction) : nullptr;
  if (norm && instruction.num_uses(0) == 1 && !context.places().is_placed(result_of(instruction)))
    context.places().set_view(result_of(instruction), result_of(*norm));
  if (part.is_last()) bind_result(maker, instruction, root, binding, bias_of(plan));
  maker.kernel().algorithm =
      "dot " + std::to_string(tile.rows) + "x" + std::to_string(tile.vectors) + product_name(plan.mac);
  if (plan.tiling.tile.column_streams > 1)
    maker.kernel().algorithm += " in " + std::to_string(plan.tiling.tile.column_streams) + " streams";
  if (plan.widened) maker.kernel().algorithm += " widened";
  if (norm) {
    binding.finish_rows = bind_rows(maker, *norm, *context.plans().find<plan::RowsPlan>(*norm));
    maker.kernel().algorithm += " " + norm->attributes().word("name");
  }
  maker.set_flops(g.flops / part.count);
  plan::DotGeometry tiled = plan.widened ? g.widened() : g;
  std::optional<WidenedColumns> widened;
  if (plan.widened) widened.emplace(maker, part_shape(tiled, part), plan.tiling);
  std::optional<WidenedRows> pairs;
  if (plan.widens_rows) pairs.emplace(maker, part_shape(tiled, part), plan.tiling);
  add_spill_buffers(maker.builder(), binding, tiled, plan, part);
  ContractionSpec spec = dot_spec(tiled, plan, binding, part);
  if (widened) spec = widened->over(spec, dot_spec(g, plan, binding, part));
  if (pairs) spec = pairs->over(spec);
  emit_contraction(maker.builder(), spec, plan.tiling);
  maker.finish();
}

} // namespace

void emit_dot(LoweringContext& context, const Instruction& instruction, const plan::KernelRoot& root,
              const plan::ContractionPlan& plan) {
  const plan::DotGeometry& g = *plan.dot;
  int count = plan.tiling.split_k;
  PartialSums accumulators;
  if (count > 1) {
    accumulators.elements = partial_elements(g, plan.tiling.tile);
    accumulators.place = {context.add_scratch_buffer(accumulators.elements * 4, "sums"), 0};
  }
  for (int number = 0; number < count; ++number)
    emit_dot_part(context, instruction, root, g, plan, {number, count}, accumulators);
}

} // namespace firn::lower
