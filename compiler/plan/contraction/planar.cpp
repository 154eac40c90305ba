// Works out the planes of convolutions to few channels.
#include "compiler/plan/contraction/planar.h"

namespace firn::plan {
namespace {

constexpr int64_t kLineElements = 16; // floats of 64 bytes
// With fewer channels, the window is the inner part of the reduction.
constexpr int64_t kFewChannels = 8;
constexpr int kMinLanes = 4;

bool is_covered(const Instruction& convolution, const Type& stored, int lanes) {
  const Type &filter = convolution.operand(1).type(), &result = convolution.type();
  for (const Type* type : {&convolution.operand(0).type(), &filter, &result})
    if (!type->is_static() || type->dtype != DType::F32 || type->num_elements() == 0) return false;
  const std::vector<WindowDim>& window = convolution.attributes().window().dims;
  if (convolution.attributes().integer("groups", 1) != 1 || !filter.layout.is_plain() ||
      !stored.layout.is_plain() || lanes < kMinLanes || window.empty() || window.back().stride != 1)
    return false;
  for (const WindowDim& dim : window)
    if (dim.input_dilation != 1 || dim.pad_low < 0 || dim.pad_high < 0) return false;
  return true;
}

void lay_out_planes(PlanarGeometry& g) {
  size_t spatial = g.window.size();
  g.planes = Type::tensor(DType::F32, g.input.dims);
  g.strides.assign(spatial + 1, 1);
  for (size_t i = spatial; i-- > 0;) {
    g.first += g.window[i].pad_low * g.strides[i + 1];
    g.strides[i] = g.padded_extent(i) * g.strides[i + 1];
  }
  // An odd number of cache lines makes planes start in different sets of the caches.
  g.strides[0] = ((g.strides[0] / kLineElements + 1) | 1) * kLineElements;
  g.planes.layout.strides.push_back(g.channels() * g.strides[0]);
  for (int64_t stride : g.strides) g.planes.layout.strides.push_back(stride);
  g.elements = g.input.dim(0) * g.channels() * g.strides[0] + g.lanes;
}

void set_shape(PlanarGeometry& g) {
  g.shape.outer.push_back(g.result.dim(0));
  for (int d = 2; d + 1 < g.result.rank(); ++d) g.shape.outer.push_back(g.result.dim(d));
  g.shape.vector_outer_dims = static_cast<int>(g.shape.outer.size());
  g.shape.m = g.filter.dim(0);
  g.shape.n = g.result.dim(g.result.rank() - 1);
  bool window_inside = g.channels() < kFewChannels;
  g.channel_level = window_inside ? 0 : g.window.size();
  g.window_level = window_inside ? 1 : 0;
  g.shape.k.resize(g.window.size() + 1);
  g.shape.k[g.channel_level].extent = g.channels();
  for (size_t i = 0; i < g.window.size(); ++i) g.shape.k[g.window_level + i].extent = g.window[i].size;
  g.shape.scalar_bytes = g.filter.num_elements() * 4;
  g.shape.vector_bytes = g.elements * 4;
  g.flops = 2 * g.result.num_elements() * g.channels() * g.window_size();
}

} // namespace

std::optional<PlanarGeometry> PlanarGeometry::of(const Instruction& convolution, const Type& stored,
                                                 const Machine& target) {
  if (!is_covered(convolution, stored, target.cpu.lanes(32))) return std::nullopt;
  PlanarGeometry g;
  g.input = convolution.operand(0).type();
  g.filter = convolution.operand(1).type();
  g.result = convolution.type();
  g.window = convolution.attributes().window().dims;
  g.lanes = target.cpu.lanes(32);
  lay_out_planes(g);
  std::vector<int> dims;
  for (int d = 0; d < g.input.rank(); ++d) dims.push_back(d);
  auto copy = Relayout::of({g.input, dims}, {g.planes, dims, g.first}, target);
  if (!copy) return std::nullopt;
  g.copy = std::move(*copy);
  g.copy_lanes = relayout_lanes(target);
  set_shape(g);
  return g;
}

int64_t PlanarGeometry::window_size() const {
  int64_t size = 1;
  for (const WindowDim& dim : window) size *= dim.size;
  return size;
}

int64_t PlanarGeometry::padded_extent(size_t dim) const {
  return input.dim(static_cast<int>(dim) + 2) + window[dim].pad_low + window[dim].pad_high;
}

} // namespace firn::plan
