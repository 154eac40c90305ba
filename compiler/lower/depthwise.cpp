// Depthwise convolutions over blocked channels. A tile is a run of output pixels along one spatial dim (`along`), one
// vector of channels each; its accumulators live in registers. Per line of the window every input vector is loaded once
// and multiplied into all pixels that it reaches:
//
//   for the tile's lines of the window:  acc[p] += input[column] * tap[j]   where column = p * stride + j * dilation
//
// Taps stay in registers for all tiles of a block when the register file holds the whole window, else one line of them
// at a time. Tiles whose taps fall outside the input get code of their own that leaves these taps out; lines outside are
// left out by the bounds of the loop over the window's lines.
#include "compiler/lower/contraction_fusion.h"
#include "compiler/lower/emitters.h"

#include <algorithm>
#include <map>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Value;

constexpr int kMaxPixels = 14;
// FMAs of one tile that are emitted as straight code.
constexpr int64_t kStraightFmas = 160;
// Independent pieces of work that a kernel is cut into for threads.
constexpr int64_t kPieces = 16;

// Where the tap of one pixel falls on an input column of the tile.
struct Use {
  int pixel;
  int64_t tap;
};
// By column, counted from the first pixel's position without padding.
using Columns = std::map<int64_t, std::vector<Use>>;

// Tiles in a row that take the same taps.
struct Segment {
  int64_t first = 0, tiles = 0;
  int pixels = 0;
  Columns columns;
};

bool operator==(const Use& a, const Use& b) { return a.pixel == b.pixel && a.tap == b.tap; }

class DepthwiseEmitter {
public:
  DepthwiseEmitter(LoweringContext& context, const Instruction& instruction, const ContractionRoot& root)
      : context_(context), instruction_(instruction), root_(root), input_(root.operands[0].type()),
        result_(instruction.type()), window_(root.contraction->attributes().window().dims),
        lanes_(context.target().lanes(32)) {}

  bool is_covered() const {
    const Instruction& convolution = *root_.contraction;
    const Type& filter = convolution.operand(1).type();
    int64_t groups = convolution.attributes().integer("groups", 1);
    auto is_small_float = [](DType dtype) { return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16; };
    if (groups == 1 || filter.dim(1) != 1 || filter.dim(0) != groups || lanes_ < 2) return false;
    if (!is_small_float(input_.dtype) || input_.dtype != filter.dtype || !is_small_float(convolution.type().dtype)) return false;
    if (!filter.layout.is_plain() || filter.num_elements() == 0 || result_.num_elements() == 0) return false;
    for (const WindowDim& dim : window_)
      if (dim.input_dilation != 1) return false;
    return is_blocked(input_) && is_blocked(result_);
  }

  void emit() {
    choose_tiles();
    PackedOperand packed = describe_packing();
    Place taps = pack_operand(context_, instruction_, packed, root_.operands[1]);
    KernelMaker maker(context_, instruction_, "depthwise");
    b_ = &maker.builder();
    binding_.result_type = result_;
    binding_.sum_dtype = root_.contraction->type().dtype;
    binding_.scalar = maker.read(root_.operands[0]);
    binding_.vector = maker.parameter(taps, packed.element, packed.elements(), false, "packed");
    tap_element_ = packed.element;
    bind_result(maker, instruction_, root_, binding_);
    maker.kernel().algorithm = algorithm();
    maker.set_flops(2 * root_.contraction->type().num_elements() * window_size());
    emit_pieces();
    maker.finish();
  }

private:
  // Plain but for one block of channels as wide as a vector.
  bool is_blocked(const Type& type) const {
    const Layout& layout = type.layout;
    if (layout.blocks.size() != 1 || layout.blocks[0].dim != 1 || layout.blocks[0].size != lanes_) return false;
    for (size_t i = 0; i < layout.order.size(); ++i)
      if (layout.order[i] != static_cast<int>(i)) return false;
    return layout.strides.empty();
  }

  int64_t window_size() const {
    int64_t size = 1;
    for (const WindowDim& dim : window_) size *= dim.size;
    return size;
  }
  int64_t in_extent(size_t i) const { return input_.dim(static_cast<int>(i) + 2); }
  int64_t out_extent(size_t i) const { return result_.dim(static_cast<int>(i) + 2); }

  // --- Choices.

  // Tiles lie along the last spatial dim unless it is too short to hide the latency of FMAs and another is longer.
  void choose_tiles() {
    along_ = window_.size() - 1;
    if (out_extent(along_) < 6)
      for (size_t i = 0; i < window_.size(); ++i)
        if (out_extent(i) > out_extent(along_)) along_ = i;
    int64_t line = window_[along_].size;
    int registers = context_.target().vector_registers;
    int64_t spare = 3;  // an input vector, one on its way, and a constant of the epilogue
    hoisted_ = window_size() + kMaxPixels + spare <= registers;
    int64_t most = std::clamp<int64_t>(registers - spare - std::min<int64_t>(line, registers / 2), 2, kMaxPixels);
    int64_t extent = out_extent(along_);
    int64_t pixels = (extent + (extent + most - 1) / most - 1) / ((extent + most - 1) / most);
    straight_ = window_size() * pixels <= kStraightFmas;
    hoisted_ &= straight_;
    for (int64_t first = 0; first < extent; first += pixels) add_tile(first, static_cast<int>(std::min(pixels, extent - first)));
  }

  void add_tile(int64_t first, int pixels) {
    const WindowDim& w = window_[along_];
    Columns columns;
    for (int p = 0; p < pixels; ++p)
      for (int64_t j = 0; j < w.size; ++j) {
        int64_t at = (first + p) * w.stride + j * w.dilation - w.pad_low;
        if (at >= 0 && at < in_extent(along_)) columns[p * w.stride + j * w.dilation].push_back({p, j});
      }
    if (!segments_.empty() && segments_.back().pixels == pixels && segments_.back().columns == columns)
      ++segments_.back().tiles;
    else
      segments_.push_back({first, 1, pixels, std::move(columns)});
  }

  PackedOperand describe_packing() const {
    PackedOperand packed;
    packed.tile = {1, 1, lanes_, 1};
    packed.element = memory_scalar(root_.operands[1].type().dtype);
    packed.columns = root_.operands[1].type().dim(0);
    packed.column_stride = window_size();
    int64_t stride = window_size();
    for (const WindowDim& dim : window_) {
      stride /= dim.size;
      packed.extents.push_back(dim.size);
      packed.strides.push_back(stride);
    }
    return packed;
  }

  std::string algorithm() const {
    std::string text;
    for (const WindowDim& dim : window_) text += (text.empty() ? "" : "x") + std::to_string(dim.size);
    return text + " depthwise " + std::to_string(segments_[0].pixels);
  }

  // --- Loops.

  // Blocks of channels outermost, so that a block's taps and the lines of its image stay near; cut along the first
  // spatial dim where blocks alone are too few for threads.
  void emit_pieces() {
    int64_t blocks = (result_.dim(1) + lanes_ - 1) / lanes_, images = result_.dim(0) * blocks;
    int64_t cut = along_ == 0 ? 1 : std::clamp<int64_t>(kPieces / images, 1, out_extent(0));
    int64_t chunk = along_ == 0 ? 1 : (out_extent(0) + cut - 1) / cut;
    if (along_ != 0) cut = (out_extent(0) + chunk - 1) / chunk;
    IntExpr p = b_->set_parallel(images * cut);
    IntExpr image = floor_div(p, cut), piece = floor_mod(p, cut);
    block_ = floor_mod(image, blocks);
    position_.assign(window_.size() + 2, IntExpr(0));
    position_[0] = floor_div(image, blocks);
    position_[1] = block_ * lanes_;
    if (hoisted_) load_all_taps();
    emit_lines(0, piece * chunk, min(piece * chunk + chunk, along_ == 0 ? IntExpr(1) : IntExpr(out_extent(0))));
  }

  void emit_lines(size_t dim, const IntExpr& lower, const IntExpr& upper) {
    if (dim == window_.size()) return emit_line();
    if (dim == along_) return emit_lines(dim + 1, 0, dim + 1 < window_.size() ? out_extent(dim + 1) : 0);
    b_->loop(lower, upper, 1, [&](const IntExpr& iv) {
      position_[dim + 2] = iv;
      emit_lines(dim + 1, 0, dim + 1 < window_.size() ? out_extent(dim + 1) : 0);
    });
  }

  // One line of output: straight code where the whole window is inside in all other dims, loops over the part that is
  // inside elsewhere.
  void emit_line() {
    Value inside;
    bool never = false;
    for (size_t i = 0; i < window_.size(); ++i) {
      if (i == along_) continue;
      const WindowDim& w = window_[i];
      int64_t low = (w.pad_low + w.stride - 1) / w.stride;
      int64_t room = in_extent(i) + w.pad_low - w.dilated_size();
      int64_t high = room < 0 ? 0 : std::min(room / w.stride + 1, out_extent(i));
      low = std::max<int64_t>(low, 0);
      never |= low >= high;
      if (low > 0) require(inside, kernel::Predicate::Ge, position_[i + 2], low);
      if (high < out_extent(i)) require(inside, kernel::Predicate::Lt, position_[i + 2], high);
    }
    if (!straight_ || never) return emit_segments(/*clipped=*/true);
    if (!inside) return emit_segments(/*clipped=*/false);
    auto branch = [&](bool clipped) {
      return [this, clipped] { return emit_segments(clipped), std::vector<Value>{}; };
    };
    b_->if_then_else(inside, branch(false), branch(true));
  }

  void require(Value& inside, kernel::Predicate predicate, const IntExpr& at, int64_t bound) {
    Value holds = b_->compare(kernel::OpKind::SCmp, predicate, b_->index(at), b_->index(bound));
    inside = inside ? b_->binary(kernel::OpKind::And, inside, holds) : holds;
  }

  void emit_segments(bool clipped) {
    for (const Segment& segment : segments_)
      b_->loop(0, segment.tiles, 1, [&](const IntExpr& tile) {
        position_[along_ + 2] = tile * segment.pixels + segment.first;
        emit_tile(segment, clipped);
      });
  }

  // --- One tile.

  void emit_tile(const Segment& segment, bool clipped) {
    std::vector<Value> sums(static_cast<size_t>(segment.pixels), b_->constant({kernel::Scalar::F32, lanes_}, 0.0));
    std::vector<IntExpr> k(window_.size(), IntExpr(0));
    sums = emit_window(segment, clipped, 0, k, std::move(sums));
    for (int p = 0; p < segment.pixels; ++p) {
      Index index = position_;
      index[along_ + 2] = index[along_ + 2] + p;
      finish_lanes(*b_, binding_, std::move(index), 1, lanes_, lanes_, sums[static_cast<size_t>(p)]);
    }
  }

  // The lines of the window: all of them one after the other, or a loop over those inside the input.
  std::vector<Value> emit_window(const Segment& segment, bool clipped, size_t dim, std::vector<IntExpr>& k,
                                 std::vector<Value> sums) {
    if (dim == window_.size()) return add_line(segment, clipped, k, std::move(sums));
    const WindowDim& w = window_[dim];
    if (dim == along_) return emit_window(segment, clipped, dim + 1, k, std::move(sums));
    if (!clipped) {
      for (int64_t i = 0; i < w.size; ++i) {
        k[dim] = i;
        sums = emit_window(segment, clipped, dim + 1, k, std::move(sums));
      }
      return sums;
    }
    IntExpr start = position_[dim + 2] * w.stride - w.pad_low;
    IntExpr lower = max(0, ceil_div(start * -1, w.dilation));
    IntExpr upper = min(w.size, floor_div(IntExpr(in_extent(dim) - 1) - start, w.dilation) + 1);
    return b_->loop_carried(lower, upper, 1, std::move(sums), [&](const IntExpr& iv, const std::vector<Value>& carried) {
      k[dim] = iv;
      return emit_window(segment, clipped, dim + 1, k, carried);
    });
  }

  // One line of the window: each input vector goes to all pixels that it reaches.
  std::vector<Value> add_line(const Segment& segment, bool clipped, std::vector<IntExpr>& k, std::vector<Value> sums) {
    std::vector<Value> taps;
    for (int64_t j = 0; j < window_[along_].size; ++j) {
      k[along_] = j;
      taps.push_back(hoisted_ && !clipped ? taps_[static_cast<size_t>(flat_tap(k))] : load_tap(k));
    }
    Index index{position_[0], position_[1]};
    for (size_t i = 0; i < window_.size(); ++i) {
      const WindowDim& w = window_[i];
      IntExpr offset = i == along_ ? IntExpr(0) : k[i] * w.dilation;
      index.push_back(position_[i + 2] * w.stride + offset - w.pad_low);
    }
    IntExpr first = index[along_ + 2];
    for (const auto& [column, uses] : segment.columns) {
      index[along_ + 2] = first + column;
      Value input = load_channels(*b_, binding_.scalar, input_, index, lanes_);
      for (const Use& use : uses) {
        Value& sum = sums[static_cast<size_t>(use.pixel)];
        sum = b_->fma(input, taps[static_cast<size_t>(use.tap)], sum);
      }
    }
    return sums;
  }

  int64_t flat_tap(const std::vector<IntExpr>& k) const {
    int64_t flat = 0;
    for (size_t i = 0; i < k.size(); ++i) flat = flat * window_[i].size + k[i].value();
    return flat;
  }

  Value load_tap(const std::vector<IntExpr>& k) {
    IntExpr flat = 0;
    for (size_t i = 0; i < k.size(); ++i) flat = flat * window_[i].size + k[i];
    Value tap = b_->load({tap_element_, lanes_}, binding_.vector, (block_ * window_size() + flat) * lanes_,
                         lanes_ * kernel::scalar_bytes(tap_element_));
    return tap_element_ == kernel::Scalar::F32 ? tap : b_->cast(kernel::OpKind::FExt, tap, kernel::Scalar::F32);
  }

  void load_all_taps() {
    std::vector<IntExpr> k(window_.size(), IntExpr(0));
    std::function<void(size_t)> nest = [&](size_t dim) {
      if (dim == k.size()) return taps_.push_back(load_tap(k));
      for (int64_t i = 0; i < window_[dim].size; ++i) {
        k[dim] = i;
        nest(dim + 1);
      }
    };
    nest(0);
  }

  LoweringContext& context_;
  const Instruction& instruction_;
  ContractionRoot root_;
  Type input_, result_;
  std::vector<WindowDim> window_;  // spatial dims
  int lanes_;
  size_t along_ = 0;
  bool hoisted_ = false, straight_ = false;
  std::vector<Segment> segments_;
  // While the kernel is built.
  Builder* b_ = nullptr;
  ContractionBinding binding_;
  kernel::Scalar tap_element_ = kernel::Scalar::F32;
  IntExpr block_ = 0;
  Index position_;  // of the tile's first pixel: batch, first channel, spatial dims
  std::vector<Value> taps_;
};

} // namespace

Expected<bool> emit_depthwise(LoweringContext& context, const Instruction& instruction) {
  auto root = find_contraction_root(instruction);
  if (!root || !root->contraction->is(Opcode::Convolution)) return false;
  DepthwiseEmitter emitter(context, instruction, *root);
  if (!emitter.is_covered()) return false;
  emitter.emit();
  return true;
}

} // namespace firn::lower
