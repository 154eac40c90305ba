// Copies positions one after the other; an item is a line of the image, or the positions that one result
// reads. Each position's channels move in runs of as many as lie side by side.
#include "compiler/lower/convolution/feature_map_copy.h"

#include "compiler/lower/element/element_access.h"
#include "compiler/lower/machine_types.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Predicate;
using kernel::Register;

// Copies all channels of one position.
class ChannelRuns {
public:
  ChannelRuns(Builder& builder, const Type& feature_map, int64_t room, int source, int out)
      : b_(builder), feature_map_(feature_map), source_(source), out_(out),
        scalar_(memory_scalar(feature_map.dtype)), channels_(feature_map.dim(1)), room_(room) {}

  // Copies to the elements from `to` on. `at`: the position, with any channel.
  void copy(const Index& at, const IntExpr& to) {
    int64_t step = run(), whole = channels_ / step * step;
    b_.loop(0, whole / step, 1,
            [&](const IntExpr& number) { copy_run(at, number * step, static_cast<int>(step), to); });
    // A block has memory for all its channels, and elements behind the last channel may be anything.
    if (whole < channels_) copy_run(at, whole, static_cast<int>(channels_ - whole), to);
    for (int64_t channel = channels_; channel < room_; ++channel)
      b_.store(b_.constant({scalar_, 1}, 0), out_, to + channel);
  }

  void clear(const IntExpr& to) {
    for (int64_t channel = 0; channel < room_; channel += max())
      b_.store(b_.constant(run_type(channel), 0), out_, to + channel);
  }

  // Whether a position is inside the image, in the dims that might lie outside; none: it always is.
  Register is_inside(const Index& at) {
    Register inside;
    for (size_t d = 2; d < at.size(); ++d) {
      const IntExpr& extent = feature_map_.dims[d].extent;
      if (at[d].lower_bound() >= 0 && (at[d] - extent).upper_bound() < 0) continue;
      // An unsigned comparison tests both ends.
      Register here = b_.compare(OpKind::UCmp, Predicate::Lt, b_.index(at[d]), b_.index(extent));
      inside = inside ? b_.binary(OpKind::And, inside, here) : here;
    }
    return inside;
  }

private:
  int64_t max() const { return kCacheLineBytes / kernel::scalar_bytes(scalar_); }
  kernel::MachineType run_type(int64_t channel) const {
    return {scalar_, static_cast<int>(std::min(max(), room_ - channel))};
  }

  // Channels that are neighbours in the image: those of a block, all of them, or each alone.
  int64_t run() const {
    const Layout& layout = feature_map_.layout;
    if (!layout.blocks.empty()) return std::min<int64_t>(max(), layout.blocks.back().size);
    return !layout.order.empty() && layout.order.back() == 1 ? max() : 1;
  }

  void copy_run(Index at, const IntExpr& channel, int count, const IntExpr& to) {
    at[1] = channel;
    b_.store(b_.load({scalar_, count}, source_, feature_map_.offset_of(at)), out_, to + channel);
  }

  Builder& b_;
  const Type& feature_map_;
  int source_, out_;
  kernel::Scalar scalar_;
  int64_t channels_, room_; // channels of a position, in the image and in the copy
};

// Runs `then` if the register holds, or always without a register.
void emit_if(Builder& b, Register inside, const std::function<void()>& then,
             const std::function<void()>& otherwise) {
  if (!inside) return then();
  b.if_then_else(
      inside, [&] { return then(), std::vector<Register>{}; },
      [&] { return otherwise(), std::vector<Register>{}; });
}

class PackedRows {
public:
  PackedRows(Builder& builder, const plan::ConvolutionGeometry& from, const plan::ConvolutionGeometry& to,
             int source, int out)
      : b_(builder), from_(from), to_(to), runs_(builder, from.input, to.input.dim(1), source, out) {}

  void emit() {
    size_t last = from_.window.size() - 1;
    IntExpr map_rows = to_.batch;
    for (size_t i = 0; i < last; ++i) map_rows = map_rows * to_.in[i];
    IntExpr line = b_.set_parallel(map_rows);
    Index at(from_.window.size() + 2, IntExpr(0)); // the line's first position, in the copy
    for (size_t i = last; i-- > 0;) {
      at[i + 2] = floor_mod(line, to_.in[i]);
      line = floor_div(line, to_.in[i]);
    }
    at[0] = line;
    Index inside = in_feature_map(at);
    inside.pop_back();
    emit_if(
        b_, runs_.is_inside(inside), [&] { copy_line(at); }, [&] { clear(at, 0, to_.in[last]); });
  }

private:
  int64_t padding(size_t i) const { return from_.window[i].pad_low - to_.window[i].pad_low; }

  Index in_feature_map(const Index& at) const {
    Index index{at[0], 0};
    for (size_t i = 0; i < from_.window.size(); ++i) index.push_back(at[i + 2] - padding(i));
    return index;
  }

  void copy_line(Index& at) {
    size_t last = from_.window.size() - 1;
    int64_t pad = padding(last), length = to_.in[last].value(), begin = std::clamp<int64_t>(pad, 0, length),
            end = std::clamp<int64_t>(pad + from_.in[last].value(), begin, length);
    clear(at, 0, begin);
    b_.loop(begin, end, 1, [&](const IntExpr& position) {
      at.back() = position;
      runs_.copy(in_feature_map(at), to_.input.offset_of(at));
    });
    clear(at, end, length);
  }

  void clear(Index& at, const IntExpr& begin, const IntExpr& end) {
    b_.loop(begin, end, 1, [&](const IntExpr& position) {
      at.back() = position;
      runs_.clear(to_.input.offset_of(at));
    });
  }

  Builder& b_;
  const plan::ConvolutionGeometry &from_, &to_;
  ChannelRuns runs_;
};

class PackedWindows {
public:
  PackedWindows(Builder& builder, const plan::ConvolutionGeometry& from, const plan::ConvolutionGeometry& to,
                int source, int out)
      : b_(builder), from_(from), room_(to.input.dim(1) / from.filter_size), to_(to),
        runs_(builder, from.input, room_, source, out), order_(from.window.size()) {
    // The order of the reduction's loops, for which filters are packed.
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::sort(order_.begin(), order_.end(),
              [&](size_t a, size_t b) { return from_.window_level[a] < from_.window_level[b]; });
  }

  void emit() {
    IntExpr positions = to_.out[0], item = b_.set_parallel(to_.batch * positions);
    IntExpr position = floor_mod(item, positions);
    Index at(from_.window.size() + 2, IntExpr(0)); // the window's first position, in the image
    at[0] = floor_div(item, positions);
    IntExpr to = to_.input.offset_of({at[0], 0, position});
    for (size_t i = from_.window.size(); i-- > 0;) {
      const WindowDim& w = from_.window[i];
      at[i + 2] = floor_mod(position, from_.out[i]) * w.stride - w.pad_low;
      position = floor_div(position, from_.out[i]);
    }
    copy_window(0, at, 0, to);
  }

private:
  // `number`: the number of the position in the window, counted by the loops so far.
  void copy_window(size_t level, Index at, const IntExpr& number, const IntExpr& to) {
    if (level == order_.size()) {
      IntExpr place = to + number * room_;
      return emit_if(
          b_, runs_.is_inside(at), [&] { runs_.copy(at, place); }, [&] { runs_.clear(place); });
    }
    size_t dim = order_[level];
    const WindowDim& w = from_.window[dim];
    b_.loop(0, w.size, 1, [&](const IntExpr& k) {
      Index next = at;
      next[dim + 2] = at[dim + 2] + k * w.dilation;
      copy_window(level + 1, std::move(next), number * w.size + k, to);
    });
  }

  Builder& b_;
  const plan::ConvolutionGeometry& from_;
  int64_t room_; // room for the channels of a position
  const plan::ConvolutionGeometry& to_;
  ChannelRuns runs_;
  std::vector<size_t> order_; // spatial dims, outermost loop of the reduction first
};

} // namespace

void emit_packed_rows(Builder& builder, const plan::ConvolutionGeometry& from,
                      const plan::ConvolutionGeometry& to, int source, int out) {
  PackedRows(builder, from, to, source, out).emit();
}

void emit_packed_windows(Builder& builder, const plan::ConvolutionGeometry& from,
                         const plan::ConvolutionGeometry& to, int source, int out) {
  PackedWindows(builder, from, to, source, out).emit();
}

} // namespace firn::lower
