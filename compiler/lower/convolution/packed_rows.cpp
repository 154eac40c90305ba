// Positions one after the other, a line of the image an item; of each the channels, as many at a time as lie
// side by side.
#include "compiler/lower/convolution/packed_rows.h"

#include "compiler/lower/element/element_access.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Predicate;
using kernel::Register;

constexpr int kRunBytes = 64;

class PackedRows {
public:
  PackedRows(Builder& builder, const plan::ConvolutionGeometry& from, const plan::ConvolutionGeometry& to,
             int source, int out)
      : b_(builder), from_(from), to_(to), source_(source), out_(out),
        scalar_(memory_scalar(from.input.dtype)), channels_(from.input.dim(1)), room_(to.input.dim(1)) {}

  void emit() {
    size_t last = from_.window.size() - 1;
    IntExpr lines = to_.batch;
    for (size_t i = 0; i < last; ++i) lines = lines * to_.in[i];
    IntExpr line = b_.set_parallel(lines);
    std::vector<IntExpr> at(from_.window.size() + 1); // image, then positions in the copy
    for (size_t i = last; i-- > 0;) {
      at[i + 1] = floor_mod(line, to_.in[i]);
      line = floor_div(line, to_.in[i]);
    }
    at[0] = line;
    auto copied = [&] {
      copy_line(at);
      return std::vector<Register>{};
    };
    auto cleared = [&] {
      clear(at, 0, to_.in[last]);
      return std::vector<Register>{};
    };
    if (Register inside = is_inside(at))
      b_.if_then_else(inside, copied, cleared);
    else
      copied();
  }

private:
  // Whether a line is one of the image; none: all are.
  Register is_inside(const std::vector<IntExpr>& at) {
    Register inside;
    for (size_t i = 0; i + 1 < from_.window.size(); ++i) {
      IntExpr place = at[i + 1] - from_.window[i].pad_low;
      if (place.lower_bound() >= 0 && (place - from_.in[i]).upper_bound() < 0) continue;
      // An unsigned comparison tests both ends.
      Register here = b_.compare(OpKind::UCmp, Predicate::Lt, b_.index(place), b_.index(from_.in[i]));
      inside = inside ? b_.binary(OpKind::And, inside, here) : here;
    }
    return inside;
  }

  void copy_line(std::vector<IntExpr>& at) {
    size_t last = from_.window.size() - 1;
    int64_t pad = from_.window[last].pad_low, length = to_.in[last].value(),
            begin = std::clamp<int64_t>(pad, 0, length),
            end = std::clamp<int64_t>(pad + from_.in[last].value(), begin, length);
    clear(at, 0, begin);
    b_.loop(begin, end, 1, [&](const IntExpr& position) {
      at[last + 1] = position;
      copy_channels(at);
    });
    clear(at, end, length);
  }

  void clear(std::vector<IntExpr>& at, const IntExpr& begin, const IntExpr& end) {
    b_.loop(begin, end, 1, [&](const IntExpr& position) {
      at.back() = position;
      for (int64_t channel = 0; channel < room_; channel += most())
        store(at, channel, b_.constant(run_type(channel), 0));
    });
  }

  int64_t most() const { return kRunBytes / kernel::scalar_bytes(scalar_); }
  kernel::MachineType run_type(int64_t channel) const {
    return {scalar_, static_cast<int>(std::min(most(), room_ - channel))};
  }

  // Neighbours in the image: those of a block, all of them, or each alone.
  int64_t run() const {
    const Layout& layout = from_.input.layout;
    if (!layout.blocks.empty()) return std::min<int64_t>(most(), layout.blocks.back().size);
    return !layout.order.empty() && layout.order.back() == 1 ? most() : 1;
  }

  void copy_channels(const std::vector<IntExpr>& at) {
    int64_t step = run(), whole = channels_ / step * step;
    b_.loop(0, whole / step, 1,
            [&](const IntExpr& number) { copy_run(at, number * step, static_cast<int>(step)); });
    // Of a block all channels are there, and may be anything behind the last one.
    if (whole < channels_) copy_run(at, whole, static_cast<int>(channels_ - whole));
    for (int64_t channel = channels_; channel < room_; ++channel)
      store(at, channel, b_.constant({scalar_, 1}, 0));
  }

  void copy_run(const std::vector<IntExpr>& at, const IntExpr& channel, int count) {
    Index index{at[0], channel};
    for (size_t i = 0; i < from_.window.size(); ++i) index.push_back(at[i + 1] - from_.window[i].pad_low);
    store(at, channel, b_.load({scalar_, count}, source_, from_.input.offset_of(index)));
  }

  void store(const std::vector<IntExpr>& at, const IntExpr& channel, Register value) {
    Index index{at[0], channel};
    index.insert(index.end(), at.begin() + 1, at.end());
    b_.store(value, out_, to_.input.offset_of(index));
  }

  Builder& b_;
  const plan::ConvolutionGeometry &from_, &to_;
  int source_, out_;
  kernel::Scalar scalar_;
  int64_t channels_, room_; // of a position, in the image and in the copy
};

} // namespace

void emit_packed_rows(Builder& builder, const plan::ConvolutionGeometry& from,
                      const plan::ConvolutionGeometry& to, int source, int out) {
  PackedRows(builder, from, to, source, out).emit();
}

} // namespace firn::lower
