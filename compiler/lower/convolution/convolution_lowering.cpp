// Planned convolutions as kernels: by tiles directly, and by Winograd's algorithm.
#include "compiler/lower/contraction/widen_columns.h"
#include "compiler/lower/contraction/widen_rows.h"
#include "compiler/lower/convolution/convolution.h"
#include "compiler/lower/convolution/feature_map_copy.h"
#include "compiler/lower/convolution/winograd.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/contraction/computed_convolution.h"
#include "compiler/plan/winograd/winograd.h"

namespace firn::lower {

std::string direct_name(const plan::ConvolutionGeometry& g, const plan::ContractionPlan& plan) {
  const plan::TileShape& tile = plan.tiling.tile;
  std::string text;
  for (const WindowDim& dim : g.window) text += (text.empty() ? "" : "x") + std::to_string(dim.size);
  if (tile.k_interleave > 1) text += " depth " + std::to_string(tile.k_interleave);
  return text + " direct " + std::to_string(tile.rows) + "x" + std::to_string(tile.vectors) +
         product_name(plan.mac);
}

namespace {

// The copy of the image that tiles read in its place.
BufferSlice copy_feature_map(LoweringContext& context, const Instruction& instruction, Value feature_map,
                             const plan::ConvolutionGeometry& from, const plan::ConvolutionGeometry& to,
                             plan::FeatureMapCopy copy) {
  bool of_windows = copy == plan::FeatureMapCopy::Windows;
  kernel::Scalar element = memory_scalar(to.input.dtype);
  int64_t elements = to.input.num_elements();
  BufferSlice place{context.add_scratch_buffer(elements * kernel::scalar_bytes(element), "rows"), 0};
  bool of_lines = copy == plan::FeatureMapCopy::PaddedRows;
  KernelMaker maker(context, instruction,
                    of_windows ? "pack_windows"
                    : of_lines ? "pack_lines"
                               : "pack_rows");
  int source = maker.read(feature_map), out = maker.parameter(place, element, elements, true, "rows");
  maker.kernel().algorithm = of_windows ? "windows of channels"
                             : of_lines ? "lines of channels"
                                        : "rows of channels";
  (of_windows ? emit_packed_windows : emit_packed_rows)(maker.builder(), from, to, source, out);
  maker.finish();
  return place;
}

void emit_convolution(LoweringContext& context, const Instruction& instruction, const plan::KernelRoot& root,
                      const plan::ContractionPlan& plan) {
  const plan::TileShape& tile = plan.tiling.tile;
  const plan::ComputedConvolution& computed = plan.convolution->computed;
  plan::ConvolutionGeometry g = plan.convolution->geometry;
  std::string name = direct_name(g, plan) + (plan.widened ? " widened" : "");
  PackedOperand packed = packed_filters(g, tile);
  packed.in_four_bits = plan.four_bits;
  BufferSlice filters = pack_operand(context, instruction, packed, computed.filter), rows;
  bool is_copied = plan.feature_map_copy != plan::FeatureMapCopy::None;
  if (is_copied) {
    plan::ConvolutionGeometry copied = g.over(plan.feature_map_copy);
    rows = copy_feature_map(context, instruction, root.operands[0], g, copied, plan.feature_map_copy);
    g = std::move(copied);
  }
  KernelMaker maker(context, instruction, "convolution");
  ContractionBinding binding = make_binding(instruction, root);
  binding.polyphase = computed.polyphase;
  binding.shares_vectors = g.shares_vectors(tile.lanes);
  binding.scalar =
      is_copied ? maker.parameter(rows, memory_scalar(g.input.dtype), g.input.num_elements(), false, "rows")
                : maker.read(root.operands[0]);
  binding.vector = maker.parameter(filters, packed.element, packed.places(), false, "packed");
  if (FusedSpatialSum* sum = context.spatial_sum_of(instruction))
    binding.totals = sum->bind(maker, g.tiles(tile.rows, tile.lanes));
  bind_result(maker, instruction, root, binding, bias_of(plan));
  maker.kernel().algorithm = std::move(name);
  maker.set_flops(g.flops);
  std::optional<WidenedColumns> widened;
  if (plan.widened) widened.emplace(maker, g.shape, plan.tiling);
  std::optional<WidenedRows> pairs;
  if (plan.widens_rows) pairs.emplace(maker, g.shape, plan.tiling);
  add_spill_buffer(maker.builder(), binding, g, plan);
  ContractionSpec spec = convolution_spec(g, packed, plan, binding);
  if (widened) spec = widened->over(spec, spec);
  if (pairs) spec = pairs->over(spec);
  emit_contraction(maker.builder(), spec, plan.tiling);
  maker.finish();
}

} // namespace

void emit_direct(LoweringContext& context, const Instruction& instruction,
                 const plan::ContractionPlan& plan) {
  plan::KernelRoot root = *plan::find_contraction(instruction);
  if (root.op->is(Opcode::Convolution))
    emit_convolution(context, instruction, root, plan);
  else
    emit_dot(context, instruction, root, plan);
}

void emit_polyphase(LoweringContext& context, const Instruction& instruction,
                    const plan::ContractionPlan& plan) {
  emit_convolution(context, instruction, *plan::find_contraction(instruction), plan);
}

// The element type of V, and of factors in U.
static kernel::Scalar factor_of(const plan::WinogradGeometry& g) {
  return memory_scalar(g.mac.lhs);
}

// Emits the kernel that transforms the inputs of all batches; returns their place.
static BufferSlice transform_inputs(LoweringContext& context, const Instruction& instruction, Value input,
                                    const plan::WinogradGeometry& g, ContractionBinding binding) {
  int64_t elements = g.batches * g.input_scratch();
  BufferSlice place{context.add_scratch_buffer(elements * g.input_bytes(), "transformed"), 0};
  KernelMaker maker(context, instruction, "transform");
  binding.scalar = maker.read(input);
  int inputs = maker.parameter(place, factor_of(g), elements, true, "inputs");
  maker.kernel().algorithm = g.name() + " inputs";
  emit_winograd_inputs(maker.builder(), g, binding, inputs);
  maker.finish();
  return place;
}

// The filters in the form that the kernel reads.
static int bind_filters(KernelMaker& maker, LoweringContext& context, const Instruction& filter,
                        const plan::WinogradGeometry& g) {
  auto parameter = [&](Packing packing, kernel::Scalar element) {
    int64_t elements = packing.packed_elements;
    int constant = context.add_constant(filter.literal(), std::move(packing), filter.location());
    return maker.parameter({constant, 0}, element, elements, false, "packed");
  };
  if (!g.is_integer()) return parameter(g.filter_packing(), kernel::Scalar::F32);
  PackedOperand packed = integer_filters(g);
  return parameter(packed.packing(filter.literal()->num_elements()), packed.element);
}

void emit_winograd(LoweringContext& context, const Instruction& instruction, const plan::WinogradPlan& plan) {
  plan::KernelRoot root = *plan::find_contraction(instruction);
  const plan::WinogradGeometry& g = *plan.geometry;
  const plan::ComputedConvolution& computed = *plan.computed;
  ContractionBinding binding = make_binding(instruction, root);
  binding.polyphase = computed.polyphase;
  std::optional<BufferSlice> transformed;
  if (g.separate_transform)
    transformed = transform_inputs(context, instruction, root.operands[0], g, binding);
  KernelMaker maker(context, instruction, "convolution");
  if (!g.separate_transform) binding.scalar = maker.read(root.operands[0]);
  binding.vector = bind_filters(maker, context, *computed.filter.def, g);
  binding.rolled_epilogue = plan.rolled_epilogue;
  if (FusedSpatialSum* sum = context.spatial_sum_of(instruction))
    binding.totals = sum->bind(maker, g.tiles_high * g.tiles_wide);
  bind_result(maker, instruction, root, binding);
  WinogradBuffers buffers;
  buffers.inputs = g.separate_transform ? maker.parameter(*transformed, factor_of(g),
                                                          g.batches * g.input_scratch(), false, "inputs")
                                        : maker.scratch(factor_of(g), g.input_scratch(), "inputs");
  buffers.products = maker.scratch(memory_scalar(g.mac.accumulator), g.product_scratch(), "products");
  if (g.is_integer()) buffers.filters = maker.scratch(factor_of(g), g.filter_scratch(), "filters");
  maker.kernel().algorithm = g.name();
  auto direct = computed.geometry(g.mac, /*by_rows=*/false);
  maker.set_flops(direct ? direct->flops : 0);
  emit_winograd(maker.builder(), g, binding, buffers);
  maker.finish();
}

} // namespace firn::lower
