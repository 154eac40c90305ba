// See transposed_convolution.h. Along one dim of stride s, result o = s*q + r of the whole sum combines
// inputs q - t with taps s*t + r. So phase r is a convolution with every s-th tap, and all phases have
// equally many results.
#include "compiler/frontend/onnx/ops/transposed_convolution.h"

#include <algorithm>

namespace firn::onnx {

namespace {

size_t at(int i) {
  return static_cast<size_t>(i);
}

class Phases {
public:
  Phases(NodeContext& node, Value x, Value w, const Window& window, int64_t groups)
      : node_(node), x_(x), w_(w), window_(window), groups_(groups), dims_(w.type().static_dims()),
        spatial_(static_cast<int>(window.dims.size())) {
    for (const WindowDim& dim : window.dims) {
      strides_.push_back(dim.input_dilation);
      taps_.push_back((dim.dilated_size() + dim.input_dilation - 1) / dim.input_dilation);
    }
  }

  Value emit() {
    Window plain;
    for (int64_t taps : taps_) {
      WindowDim dim;
      dim.size = taps;
      dim.pad_low = dim.pad_high = taps - 1;
      plain.dims.push_back(dim);
    }
    Attributes made{{"window", plain}, {"groups", groups_}};
    DType dtype = node_.input(0).dtype(),
          sums = node_.has_input(2) ? NodeContext::widened_dtype(dtype) : dtype;
    if (sums != dtype) made.set("result", sums);
    Value y = interleaved(node_.op(Opcode::Convolution, {x_, filters()}, made));
    for (int i = 0; i < spatial_ && y; ++i) y = cut(y, i);
    return y;
  }

private:
  // [C, M/g, k...] as [g * s... * M/g, C/g, taps...], taps in the order of a convolution.
  Value filters() {
    size_t rank = dims_.size();
    Ints low(rank, 0), high(rank, 0), interior(rank, 0), split{groups_, dims_[0] / groups_, dims_[1]};
    Ints order{0}, joined{groups_ * dims_[1], dims_[0] / groups_}, last;
    for (int i = 0; i < spatial_; ++i) {
      const WindowDim& dim = window_.dims[at(i)];
      interior[at(i) + 2] = dim.dilation - 1;
      high[at(i) + 2] = taps_[at(i)] * strides_[at(i)] - dim.dilated_size();
      split.insert(split.end(), {taps_[at(i)], strides_[at(i)]});
      order.push_back(4 + 2 * i);
      joined[0] *= strides_[at(i)];
      joined.push_back(taps_[at(i)]);
      last.push_back(2 + i);
    }
    order.insert(order.end(), {2, 1});
    for (int i = 0; i < spatial_; ++i) order.push_back(3 + 2 * i);
    Value w = node_.pad(w_, node_.scalar(w_.dtype(), 0), low, high, interior);
    w = node_.reshape_to(node_.transpose(node_.reshape_to(w, split), order), joined);
    return node_.op(Opcode::Reverse, {w}, {{"dims", last}});
  }

  // [n, g * s... * M/g, q...] as [n, M, q * s...].
  Value interleaved(Value y) {
    if (!y) return {};
    const std::vector<Dim> dims = y.type().dims;
    std::vector<Dim> split{dims[0], Dim(groups_)}, joined{dims[0], Dim(groups_ * dims_[1])};
    for (int64_t stride : strides_) split.emplace_back(stride);
    split.emplace_back(dims_[1]);
    Ints order{0, 1, 2 + spatial_};
    for (int i = 0; i < spatial_; ++i) {
      const Dim& positions = dims[at(i) + 2];
      split.push_back(positions);
      order.insert(order.end(), {3 + spatial_ + i, 2 + i});
      auto all = node_.product({positions, Dim(strides_[at(i)])});
      if (!all) return {};
      joined.push_back(*all);
    }
    return node_.reshape(node_.transpose(node_.reshape(y, split), order), joined);
  }

  // The part of the whole sum that the window selects along one dim, padded with zeros beyond the sum.
  Value cut(Value y, int spatial) {
    const WindowDim& dim = window_.dims[at(spatial)];
    int axis = spatial + 2;
    IntExpr in = x_.type().dims[at(axis)].extent;
    IntExpr size = (in - 1) * dim.input_dilation + 2 + dim.pad_low + dim.pad_high - dim.dilated_size();
    int64_t first = dim.dilated_size() - 1 - dim.pad_low;
    IntExpr rest = y.type().dims[at(axis)].extent - first - size;
    if (!rest.is_constant()) return node_.fail_unsupported("sums of " + rest.to_string()), Value{};
    Ints low(at(y.rank()), 0), high = low;
    low[at(axis)] = std::max<int64_t>(0, -first);
    high[at(axis)] = std::max<int64_t>(0, -rest.value());
    if (low[at(axis)] > 0 || high[at(axis)] > 0) y = node_.pad(y, node_.scalar(y.dtype(), 0), low, high);
    if (!y || y.type().dims[at(axis)].extent == size) return y;
    return node_.slice_symbolic(y, axis, std::max<int64_t>(0, first), size);
  }

  NodeContext& node_;
  Value x_, w_;
  const Window& window_;
  int64_t groups_;
  Ints dims_; // dims of w
  int spatial_;
  Ints strides_, taps_; // by spatial dim; taps of one phase
};

} // namespace

Value convolution_by_phases(NodeContext& node, Value x, Value w, const Window& window, int64_t groups) {
  return Phases(node, x, w, window, groups).emit();
}

} // namespace firn::onnx
