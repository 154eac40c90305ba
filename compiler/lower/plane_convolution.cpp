// Convolutions to few channels, such as the last ones of networks that make images: channels would leave most
// lanes empty, so positions of a line lie in lanes instead. The input is copied into planes with padding
// around them, once; then filters are rows of the register tile and every vector of a line is read where it
// lies, shifted by the window's position:
//
//   result[f, y, x...] += filter[f, c, i, j] * planes[c, y * stride + i, x + j ...]
#include "compiler/graph/convolution_lines.h"
#include "compiler/lower/contraction_fusion.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/relayout.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Scalar;

// Positions of the window from which the copy of the input is worth it.
constexpr int64_t kMinWindow = 4;
constexpr int64_t kLineElements = 16; // floats of 64 bytes
// With fewer channels the window is the inner part of the reduction.
constexpr int64_t kFewChannels = 8;

// The input as planes of lines with padding, plain, and some room behind the last for whole vectors.
struct Planes {
  Type type;         // of the input, as it lies within
  int64_t first = 0; // its first element
  int64_t elements = 0;
  std::vector<int64_t> strides; // of channel and spatial dims
};

class PlaneConvolution {
public:
  static std::optional<PlaneConvolution> create(const Instruction& instruction, const ContractionRoot& root,
                                                const Options& options) {
    PlaneConvolution plane(*root.contraction, options.target.lanes(32));
    if (options.optimize_size || !plane.is_covered(instruction)) return std::nullopt;
    plane.lay_out_planes();
    const Type& input = root.contraction->operand(0).type();
    std::vector<int> dims;
    for (int d = 0; d < input.rank(); ++d) dims.push_back(d);
    plane.copy_ =
        Relayout::plan({input, dims}, {plane.planes_.type, dims, plane.planes_.first}, options.target);
    if (!plane.copy_) return std::nullopt;
    return plane;
  }

  void emit(LoweringContext& context, const Instruction& instruction, const ContractionRoot& root) const {
    Place place{context.add_scratch_buffer(planes_.elements * 4, "planes"), 0};
    emit_padding(context, instruction, place);
    emit_copy(context, instruction, place, root.operands[0]);
    KernelMaker maker(context, instruction, "convolution");
    auto binding = std::make_shared<ContractionBinding>();
    binding->result_type = instruction.type();
    binding->sum_dtype = convolution_.type().dtype;
    binding->scalar = maker.read(root.operands[1]);
    binding->vector = maker.parameter(place, Scalar::F32, planes_.elements, false, "planes");
    bind_result(maker, instruction, root, *binding);
    ContractionSpec spec = describe(binding);
    plan::Tiling tiling = plan::choose_tiling(spec.shape, context.target());
    maker.kernel().algorithm = algorithm(tiling);
    maker.set_flops(2 * convolution_.type().num_elements() * channels() * window_size());
    emit_contraction(maker.builder(), spec, tiling);
    maker.finish();
  }

private:
  PlaneConvolution(const Instruction& convolution, int lanes)
      : convolution_(convolution), window_(convolution.attributes().window().dims), lanes_(lanes) {}

  const Type& input() const { return convolution_.operand(0).type(); }
  const Type& filter() const { return convolution_.operand(1).type(); }
  int64_t channels() const { return input().dim(1); }
  size_t spatial() const { return window_.size(); }
  int64_t window_size() const {
    int64_t size = 1;
    for (const WindowDim& dim : window_) size *= dim.size;
    return size;
  }

  bool is_covered(const Instruction& instruction) const {
    const Type &result = convolution_.type(), &stored = instruction.type();
    for (const Type* type : {&input(), &filter(), &result})
      if (!type->is_static() || type->dtype != DType::F32 || type->num_elements() == 0) return false;
    if (convolution_.attributes().integer("groups", 1) != 1 || !filter().layout.is_plain() ||
        !stored.layout.is_plain() || lanes_ < 4 || window_.empty())
      return false;
    for (const WindowDim& dim : window_)
      if (dim.input_dilation != 1 || dim.pad_low < 0 || dim.pad_high < 0) return false;
    return lines_fill_vectors(convolution_, lanes_) && 2 * filter().dim(0) <= lanes_ &&
           window_size() >= kMinWindow;
  }

  void lay_out_planes() {
    planes_.type = Type::tensor(DType::F32, input().dims);
    planes_.strides.assign(spatial() + 1, 1);
    for (size_t i = spatial(); i-- > 0;) {
      const WindowDim& w = window_[i];
      int64_t padded = input().dim(static_cast<int>(i) + 2) + w.pad_low + w.pad_high;
      planes_.first += w.pad_low * planes_.strides[i + 1];
      planes_.strides[i] = padded * planes_.strides[i + 1];
    }
    // An odd number of lines, so that planes start in different sets of the caches.
    planes_.strides[0] = ((planes_.strides[0] / kLineElements + 1) | 1) * kLineElements;
    planes_.type.layout.strides.push_back(channels() * planes_.strides[0]);
    for (int64_t stride : planes_.strides) planes_.type.layout.strides.push_back(stride);
    planes_.elements = input().dim(0) * channels() * planes_.strides[0] + lanes_;
  }

  // Zeros around the lines of every plane.
  void emit_padding(LoweringContext& context, const Instruction& instruction, Place place) const {
    int64_t zeros = planes_.strides[0] - planes_.type.num_elements() / (input().dim(0) * channels());
    if (zeros == 0) return;
    KernelMaker maker(context, instruction, "pad");
    Builder& b = maker.builder();
    int out = maker.parameter(place, Scalar::F32, planes_.elements, true, "planes");
    IntExpr plane = b.set_parallel(input().dim(0) * channels()) * planes_.strides[0];
    emit_padding_of(b, out, 0, plane);
    int64_t used = planes_.strides[1] * padded_extent(0);
    fill_zeros(b, out, plane + used, planes_.strides[0] - used);
    maker.finish();
  }

  int64_t padded_extent(size_t i) const {
    return input().dim(static_cast<int>(i) + 2) + window_[i].pad_low + window_[i].pad_high;
  }

  // Before, within and behind the elements along spatial dim i, which start at `at`.
  void emit_padding_of(Builder& b, int out, size_t i, const IntExpr& at) const {
    int64_t stride = planes_.strides[i + 1], extent = input().dim(static_cast<int>(i) + 2);
    fill_zeros(b, out, at, window_[i].pad_low * stride);
    if (i + 1 < spatial())
      b.loop(0, extent, 1, [&](const IntExpr& iv) {
        emit_padding_of(b, out, i + 1, at + (iv + window_[i].pad_low) * stride);
      });
    fill_zeros(b, out, at + (window_[i].pad_low + extent) * stride, window_[i].pad_high * stride);
  }

  void fill_zeros(Builder& b, int out, const IntExpr& at, int64_t count) const {
    kernel::Value zeros = b.constant({Scalar::F32, lanes_}, 0);
    b.loop(0, count / lanes_, 1, [&](const IntExpr& iv) { b.store(zeros, out, at + iv * lanes_); });
    if (int64_t rest = count % lanes_; rest > 0)
      b.store_masked(zeros, out, at + (count - rest), b.lane_mask(lanes_, rest));
  }

  void emit_copy(LoweringContext& context, const Instruction& instruction, Place place, Value image) const {
    KernelMaker maker(context, instruction, "copy");
    int from = maker.read(image);
    int to = maker.parameter(place, Scalar::F32, planes_.elements, true, "planes");
    copy_->emit(maker, from, to);
    maker.finish();
  }

  // Rows are filters, columns positions of a line; outside are images and the other spatial dims.
  ContractionSpec describe(const BindingRef& binding) const {
    ContractionSpec spec;
    const Type& result = convolution_.type();
    spec.shape.outer.push_back(result.dim(0));
    for (int d = 2; d + 1 < result.rank(); ++d) spec.shape.outer.push_back(result.dim(d));
    spec.shape.vector_outer_dims = static_cast<int>(spec.shape.outer.size());
    spec.shape.rows = filter().dim(0);
    spec.shape.columns = result.dim(result.rank() - 1);
    bool window_inside = channels() < kFewChannels;
    size_t channel_level = window_inside ? 0 : spatial(), window_level = window_inside ? 1 : 0;
    spec.shape.reduction.resize(spatial() + 1);
    spec.shape.reduction[channel_level].extent = channels();
    for (size_t i = 0; i < spatial(); ++i) spec.shape.reduction[window_level + i].extent = window_[i].size;
    spec.shape.scalar_bytes = filter().num_elements() * 4;
    spec.shape.vector_bytes = planes_.elements * 4;
    spec.scalar = [this_ = *this, binding, channel_level,
                   window_level](Builder& b, const TilePosition& at, int row, const std::vector<IntExpr>& k) {
      Index index{at.row + row, k[channel_level]};
      for (size_t i = 0; i < this_.spatial(); ++i) index.push_back(k[window_level + i]);
      return load_element(b, binding->scalar, this_.filter(), index, Lanes{});
    };
    spec.vector = [this_ = *this, binding, channel_level, window_level](
                      Builder& b, const TilePosition& at, int vector, const std::vector<IntExpr>& k) {
      IntExpr place = (at.outer[0] * this_.channels() + k[channel_level]) * this_.planes_.strides[0];
      for (size_t i = 0; i < this_.spatial(); ++i) {
        IntExpr position = i + 1 < this_.spatial() ? at.outer[i + 1] * this_.window_[i].stride
                                                   : (at.column_vector + vector) * this_.lanes_;
        place = place +
                (position + k[window_level + i] * this_.window_[i].dilation) * this_.planes_.strides[i + 1];
      }
      return b.load({Scalar::F32, this_.lanes_}, binding->vector, place);
    };
    spec.store = [this_ = *this, binding](Builder& b, const TilePosition& at, int row, int vector,
                                          kernel::Value sum, int valid) {
      Index index{at.outer[0], at.row + row};
      index.insert(index.end(), at.outer.begin() + 1, at.outer.end());
      index.push_back((at.column_vector + vector) * this_.lanes_);
      int lane_dim = static_cast<int>(index.size()) - 1;
      return finish_lanes(b, *binding, std::move(index), lane_dim, this_.lanes_, valid, sum);
    };
    return spec;
  }

  std::string algorithm(const plan::Tiling& tiling) const {
    std::string text;
    for (const WindowDim& dim : window_) text += (text.empty() ? "" : "x") + std::to_string(dim.size);
    return text + " planes " + std::to_string(tiling.tile.rows) + "x" + std::to_string(tiling.tile.vectors);
  }

  const Instruction& convolution_;
  std::vector<WindowDim> window_;
  int lanes_;
  Planes planes_;
  std::optional<Relayout> copy_;
};

} // namespace

Expected<bool> emit_plane_convolution(LoweringContext& context, const Instruction& instruction) {
  auto root = find_contraction_root(context, instruction);
  if (!root || !root->contraction->is(Opcode::Convolution)) return false;
  auto plane = PlaneConvolution::create(instruction, *root, context.options());
  if (!plane) return false;
  plane->emit(context, instruction, *root);
  return true;
}

} // namespace firn::lower
