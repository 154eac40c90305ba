// Convolutions to few channels, with positions of a line in lanes (plan/contraction/planar.h): a kernel that
// writes the padding of the planes, one that copies the input into them, and the contraction.
#include "compiler/lower/contraction/contraction_fusion.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/movement/relayout.h"
#include "compiler/plan/contraction/contraction_plan.h"

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;
using kernel::Scalar;

// Filters are rows of the tile, positions of a line its columns.
class PlanarTiles final : public TileOperands, public TileResult {
public:
  PlanarTiles(const plan::PlanarGeometry& geometry, const ContractionBinding& binding)
      : g_(geometry), binding_(binding) {}

  Register scalar(Builder& b, const TilePosition& at, int row, const KValues& k) const override {
    Index index{at.row + row, k[g_.channel_level]};
    for (size_t i = 0; i < g_.window.size(); ++i) index.push_back(k[g_.window_level + i]);
    return load_element(b, binding_.scalar, g_.filter, index, Lanes{});
  }

  Register vector(Builder& b, const TilePosition& at, int vector, const KValues& k) const override {
    IntExpr place = (at.outer[0] * g_.channels() + k[g_.channel_level]) * g_.strides[0];
    for (size_t i = 0; i < g_.window.size(); ++i) {
      IntExpr position = i + 1 < g_.window.size() ? at.outer[i + 1] * g_.window[i].stride
                                                  : (at.column_vector + vector) * g_.lanes;
      place = place + (position + k[g_.window_level + i] * g_.window[i].dilation) * g_.strides[i + 1];
    }
    return b.load({Scalar::F32, g_.lanes}, binding_.vector, place);
  }

  Register store(Builder& b, const TilePosition& at, int row, int vector, Register sum,
                 int valid) const override {
    Index index{at.outer[0], at.row + row};
    index.insert(index.end(), at.outer.begin() + 1, at.outer.end());
    index.push_back((at.column_vector + vector) * g_.lanes);
    int lane_dim = static_cast<int>(index.size()) - 1;
    return finish_lanes(b, binding_, std::move(index), lane_dim, g_.lanes, valid, sum);
  }

private:
  const plan::PlanarGeometry& g_;
  const ContractionBinding& binding_;
};

class PlanarCode {
public:
  explicit PlanarCode(const plan::PlanarGeometry& geometry) : g_(geometry) {}

  // Writes zeros around the lines of every plane.
  void emit_padding(LoweringContext& context, const Instruction& instruction, BufferSlice place) const {
    int64_t zeros = g_.strides[0] - g_.planes.num_elements() / (g_.input.dim(0) * g_.channels());
    if (zeros == 0) return;
    KernelMaker maker(context, instruction, "pad");
    Builder& b = maker.builder();
    int out = maker.parameter(place, Scalar::F32, g_.elements, true, "planes");
    IntExpr plane = b.set_parallel(g_.input.dim(0) * g_.channels()) * g_.strides[0];
    emit_padding_of(b, out, 0, plane);
    int64_t used = g_.strides[1] * g_.padded_extent(0);
    fill_zeros(b, out, plane + used, g_.strides[0] - used);
    maker.finish();
  }

  // Writes padding before, within and behind the elements along spatial dim i, which start at `at`.
  void emit_padding_of(Builder& b, int out, size_t i, const IntExpr& at) const {
    int64_t stride = g_.strides[i + 1], extent = g_.input.dim(static_cast<int>(i) + 2);
    fill_zeros(b, out, at, g_.window[i].pad_low * stride);
    if (i + 1 < g_.window.size())
      b.loop(0, extent, 1, [&](const IntExpr& iv) {
        emit_padding_of(b, out, i + 1, at + (iv + g_.window[i].pad_low) * stride);
      });
    fill_zeros(b, out, at + (g_.window[i].pad_low + extent) * stride, g_.window[i].pad_high * stride);
  }

  void fill_zeros(Builder& b, int out, const IntExpr& at, int64_t count) const {
    Register zeros = b.constant({Scalar::F32, g_.lanes}, 0);
    b.loop(0, count / g_.lanes, 1, [&](const IntExpr& iv) { b.store(zeros, out, at + iv * g_.lanes); });
    if (int64_t rest = count % g_.lanes; rest > 0)
      b.store_masked(zeros, out, at + (count - rest), b.lane_mask(g_.lanes, rest));
  }

  void emit_copy(LoweringContext& context, const Instruction& instruction, BufferSlice place,
                 Value feature_map) const {
    KernelMaker maker(context, instruction, "copy");
    int from = maker.read(feature_map);
    int to = maker.parameter(place, Scalar::F32, g_.elements, true, "planes");
    emit_relayout(maker, g_.copy, g_.copy_lanes, DType::F32, from, to);
    maker.finish();
  }

  ContractionSpec spec(const ContractionBinding& binding) const {
    auto tiles = std::make_shared<const PlanarTiles>(g_, binding);
    ContractionSpec spec;
    spec.shape = g_.shape;
    spec.operands = tiles;
    spec.result = tiles;
    return spec;
  }

  std::string algorithm(const plan::TileShape& tile) const {
    std::string text;
    for (const WindowDim& dim : g_.window) text += (text.empty() ? "" : "x") + std::to_string(dim.size);
    return text + " planes " + std::to_string(tile.rows) + "x" + std::to_string(tile.vectors);
  }

private:
  const plan::PlanarGeometry& g_;
};

} // namespace

void emit_planar(LoweringContext& context, const Instruction& instruction,
                 const plan::ContractionPlan& plan) {
  plan::KernelRoot root = *plan::find_contraction(instruction);
  const plan::PlanarGeometry& g = *plan.planes;
  PlanarCode code(g);
  BufferSlice planes{context.add_scratch_buffer(g.elements * 4, "planes"), 0};
  code.emit_padding(context, instruction, planes);
  code.emit_copy(context, instruction, planes, root.operands[0]);
  KernelMaker maker(context, instruction, "convolution");
  ContractionBinding binding = make_binding(instruction, root);
  binding.scalar = maker.read(root.operands[1]);
  binding.vector = maker.parameter(planes, Scalar::F32, g.elements, false, "planes");
  bind_result(maker, instruction, root, binding);
  maker.kernel().algorithm = code.algorithm(plan.tiling.tile);
  maker.set_flops(g.flops);
  emit_contraction(maker.builder(), code.spec(binding), plan.tiling);
  maker.finish();
}

} // namespace firn::lower
