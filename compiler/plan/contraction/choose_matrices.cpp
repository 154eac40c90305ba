// Whether tile matrices can read their rows, and whether they pay.
#include "compiler/plan/contraction/choose_matrices.h"

#include "compiler/plan/contraction/tile_matrices.h"
#include "compiler/plan/cost_model.h"

#include <cmath>

namespace firn::plan {
namespace {

double cycles_of(ContractionShape shape, const MacInstruction& mac, const Machine& target) {
  shape.multiply_in(mac);
  Tiling blocks = choose_tiling(shape, target);
  return check_tile_block(shape, blocks.tile).empty() ? blocks.cycles : INFINITY;
}

// How many neighbouring channels of the image lie side by side.
int run_of(const ConvolutionGeometry& g) {
  constexpr int kAll = 64;
  bool is_last = !g.input.layout.order.empty() && g.input.layout.order.back() == 1;
  return g.in_block > 0 ? g.in_block : is_last ? kAll : 1;
}

// Cycles with a copy of the image, which takes `run` neighbouring channels at a time.
double copied_cycles(const ConvolutionGeometry& g, FeatureMapCopy copy, const MacInstruction& mac, int run,
                     const Machine& target) {
  constexpr double kRunCycles = 2, kElementCycles = 1.5;
  ConvolutionGeometry copied = g.over(copy);
  auto elements = static_cast<double>(copied.input.num_elements());
  return elements * (run > 1 ? kRunCycles / run : kElementCycles) + cycles_of(copied.shape, mac, target);
}

// Windows of several positions copy an element several times: once the copy leaves the second cache level,
// the products wait for it. A window of one position needs no such copy: its positions are rows.
bool may_pay(const ConvolutionGeometry& g, FeatureMapCopy copy, const Machine& target) {
  if (copy != FeatureMapCopy::Windows) return true;
  return g.filter_size > 1 && static_cast<int64_t>(g.over(copy).input.byte_size()) <=
                                  share_of(target.cpu.l2_bytes, cache_share::kHandedOn);
}

} // namespace

// Rows of tiles must be rows of the operand.
std::string lacks_for_matrices(const DotGeometry& g) {
  bool is_static = g.row.stride.is_constant();
  for (const DotGeometry::Contract& axis : g.contract) is_static &= axis.row_stride.is_constant();
  if (g.in_blocks) return "tile matrices do not scale sums of blocks";
  if (!is_static || !(g.contract.back().row_stride == IntExpr(1)))
    return "tile matrices want k side by side, and rows that lie evenly";
  return g.shape.k_tail > 0 ? "tile matrices want whole groups of k" : "";
}

// Elements behind the last channel of a block meet zeros of the filters, so they may be anything but a NaN.
std::string lacks_for_matrices(const ConvolutionGeometry& g) {
  int group = g.shape.mac.k_group();
  bool is_blocked = g.in_block > 0 && g.in_block % group == 0;
  bool lie_together = is_blocked ? g.groups == 1 || g.channels % group == 0
                                 : !g.input.layout.order.empty() && g.input.layout.order.back() == 1;
  if (!lie_together || !g.input.is_static()) return "tile matrices want channels that lie side by side";
  if (g.splits_rows()) return "tile matrices want rows that no padding cuts";
  bool has_tail = is_blocked && !is_float(g.input.dtype);
  return g.shape.k_tail > 0 && !has_tail ? "tile matrices want whole groups of k" : "";
}

std::string lacks_for_copy(const ConvolutionGeometry& g, FeatureMapCopy copy) {
  if (!g.input.is_static() || !g.full_result.is_static())
    return "a copy of the feature map wants extents that do not vary";
  if (copy == FeatureMapCopy::PaddedRows && !g.splits_rows())
    return "no padding cuts the rows of the feature map";
  if (copy == FeatureMapCopy::Windows && g.groups > 1) return "windows are copied with all their channels";
  bool has_whole_groups = g.groups == 1 || g.channels % g.shape.mac.k_group() == 0;
  return has_whole_groups ? "" : "groups of channels are no whole groups of k";
}

double matrix_cycles(const DotGeometry& g, const MacInstruction& mac, const Machine& target) {
  return lacks_for_matrices(g).empty() ? cycles_of(g.shape, mac, target) : INFINITY;
}

MatrixChoice choose_matrices(const ConvolutionGeometry& g, const MacInstruction& mac, const Machine& target) {
  double there = lacks_for_matrices(g).empty() ? cycles_of(g.shape, mac, target) : INFINITY;
  MatrixChoice choice{there, FeatureMapCopy::None};
  for (FeatureMapCopy copy : {FeatureMapCopy::Rows, FeatureMapCopy::Windows}) {
    if (!lacks_for_copy(g, copy).empty() || !may_pay(g, copy, target)) continue;
    double copied = copied_cycles(g, copy, mac, run_of(g), target);
    if (copied < choice.cycles) choice = {copied, copy};
  }
  return choice;
}

int channels_of_row(const Instruction& convolution, const Machine& target, bool strict) {
  if (!target.cpu.has_tile_matrices || convolution.attributes().integer("groups", 1) > 1) return 0;
  std::optional<MacInstruction> mac = choose_mac(convolution, target, strict);
  if (mac) mac = in_tile_matrices(*mac, target, strict);
  if (!mac) return 0;
  auto g = ConvolutionGeometry::of(convolution, convolution.type(), *mac, /*by_rows=*/false,
                                   /*whole_rows=*/false);
  bool has_rows = g && lacks_for_copy(*g, FeatureMapCopy::Rows).empty();
  return has_rows ? TileMatrixFacts::kRowBytes * 8 / bit_width(mac->lhs) : 0;
}

bool is_profitable_in_bf16(const Instruction& contraction, int weights, const Machine& target) {
  constexpr int64_t kFewChannels = 8; // fewer do not fill steps of pairs
  bool has_few = contraction.is(Opcode::Convolution) && contraction.operand(1).type().dim(1) < kFewChannels;
  if (target.cpu.bf16_dot2_bits > 0) return !has_few;
  if (has_few && contraction.attributes().integer("groups", 1) > 1) return false;
  const MacInstruction wide, narrow{MacKind::Dot2, DType::BF16, DType::BF16, DType::F32};
  auto mac = in_tile_matrices(narrow, target, /*strict=*/false);
  if (!mac) return false;
  const Type& result = contraction.type();
  if (contraction.is(Opcode::Dot)) {
    auto f32 = DotGeometry::of(contraction, result, weights == 0, wide),
         bf16 = DotGeometry::of(contraction, result, weights == 0, narrow);
    return f32 && bf16 && matrix_cycles(*bf16, *mac, target) < choose_tiling(f32->shape, target).cycles;
  }
  auto f32 = ConvolutionGeometry::of(contraction, result, wide, /*by_rows=*/false, /*whole_rows=*/false),
       bf16 = ConvolutionGeometry::of(contraction, result, narrow, /*by_rows=*/false, /*whole_rows=*/false);
  if (!f32 || !bf16 || !lacks_for_copy(*bf16, FeatureMapCopy::Rows).empty()) return false;
  // Images of most convolutions lie in blocks once their layouts are chosen; the first ones do not.
  double copied =
      copied_cycles(*bf16, FeatureMapCopy::Rows, *mac, has_few ? 1 : target.cpu.channel_block(), target);
  return copied < choose_tiling(f32->shape, target).cycles;
}

} // namespace firn::plan
