// Depthwise convolutions over blocked channels. The accumulators of a tile of pixels live in registers; per
// line of the window every input vector is loaded once and multiplied into all pixels that it reaches:
//
//   acc[p] += input[column] * tap[j]   where column = p * stride + j * dilation
//
// Taps stay in registers for all tiles of a block when the register file holds the whole window, else one
// line of them at a time.
#include "compiler/lower/contraction_fusion.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/window_tiles.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Scalar;
using Values = WindowTiles::Values;

constexpr int64_t kMinPixels = 6, kMaxPixels = 14;
constexpr int64_t kCompactPixels = 6; // where small code comes before speed
// FMAs of one tile that are emitted as straight code.
constexpr int64_t kStraightFmas = 160;

bool is_small_float(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

class DepthwiseEmitter {
public:
  DepthwiseEmitter(LoweringContext& context, const Instruction& instruction, const ContractionRoot& root,
                   WindowTiles tiles)
      : context_(context), instruction_(instruction), root_(root), tiles_(std::move(tiles)) {}

  void emit() {
    choose_tiles();
    PackedOperand packed = describe_packing();
    Place taps = pack_operand(context_, instruction_, packed, root_.operands[1]);
    KernelMaker maker(context_, instruction_, "depthwise");
    Builder& b = maker.builder();
    tap_element_ = packed.element;
    binding_.result_type = instruction_.type();
    binding_.sum_dtype = root_.contraction->type().dtype;
    binding_.scalar = maker.read(root_.operands[0]);
    binding_.vector = maker.parameter(taps, packed.element, packed.elements(), false, "packed");
    bind_result(maker, instruction_, root_, binding_);
    maker.kernel().algorithm = algorithm();
    maker.set_flops(2 * root_.contraction->type().num_elements() * tiles_.window_size());
    tiles_.emit(
        b,
        [&](const WindowTiles::Position& position) {
          if (hoisted_) load_all_taps(b, position);
        },
        [&](const WindowTiles::Segment& segment, const WindowTiles::Position& position, bool clipped) {
          emit_tile(b, segment, position, clipped);
        });
    maker.finish();
  }

private:
  // As many pixels as leave registers for taps and epilogue; enough to hide the latency of FMAs all the same.
  void choose_tiles() {
    int64_t line = 0;
    for (const WindowDim& dim : tiles_.window()) line = std::max(line, dim.size);
    int64_t registers = context_.target().vector_registers;
    int64_t spare = 3 + epilogue_constants(); // an input vector, one on its way
    int64_t window = tiles_.window_size();
    bool fits = window + kMinPixels + spare <= registers;
    int64_t most = registers - spare - (fits ? window : std::min(line, registers / 2));
    if (context_.options().optimize_size)
      tiles_.cut(kCompactPixels, 0);
    else
      tiles_.cut(std::clamp<int64_t>(most, kMinPixels, kMaxPixels), kStraightFmas);
    hoisted_ = tiles_.is_straight() && fits;
  }

  // Constants that the epilogue wants in registers: a transcendental function brings its polynomial.
  int64_t epilogue_constants() const {
    if (!instruction_.is(Opcode::Fusion)) return 0;
    int64_t count = 0;
    for (const auto& inner : instruction_.region().instructions()) {
      switch (inner->opcode()) {
      case Opcode::Logistic:
      case Opcode::Tanh:
      case Opcode::Exponential:
      case Opcode::Erf: return 12;
      case Opcode::Add:
      case Opcode::Multiply:
      case Opcode::Maximum:
      case Opcode::Minimum: count += 1; break;
      case Opcode::Clamp: count += 2; break;
      default: break;
      }
    }
    return std::min<int64_t>(count, 6);
  }

  PackedOperand describe_packing() const {
    PackedOperand packed;
    packed.tile = {1, 1, tiles_.lanes(), 1};
    packed.element = memory_scalar(root_.operands[1].dtype());
    packed.columns = root_.operands[1].dim(0);
    packed.column_stride = tiles_.window_size();
    int64_t stride = tiles_.window_size();
    for (const WindowDim& dim : tiles_.window()) {
      stride /= dim.size;
      packed.extents.push_back(dim.size);
      packed.strides.push_back(stride);
    }
    return packed;
  }

  std::string algorithm() const {
    std::string text;
    for (const WindowDim& dim : tiles_.window()) text += (text.empty() ? "" : "x") + std::to_string(dim.size);
    return text + " depthwise " + std::to_string(tiles_.pixels());
  }

  void emit_tile(Builder& b, const WindowTiles::Segment& segment, const WindowTiles::Position& position,
                 bool clipped) {
    Values sums(static_cast<size_t>(segment.pixels), b.constant({Scalar::F32, tiles_.lanes()}, 0.0));
    sums = tiles_.over_window(b, position, clipped, std::move(sums),
                              [&](std::vector<IntExpr>& k, const Values& carried) {
                                return add_line(b, segment, position, clipped, k, carried);
                              });
    for (int p = 0; p < segment.pixels; ++p) {
      Index index = position.pixel;
      index[tiles_.along() + 2] = index[tiles_.along() + 2] + p;
      finish_lanes(b, binding_, std::move(index), 1, tiles_.lanes(), tiles_.lanes(),
                   sums[static_cast<size_t>(p)]);
    }
  }

  Values add_line(Builder& b, const WindowTiles::Segment& segment, const WindowTiles::Position& position,
                  bool clipped, std::vector<IntExpr>& k, Values sums) {
    Values taps;
    for (int64_t j = 0; j < tiles_.window()[tiles_.along()].size; ++j) {
      k[tiles_.along()] = j;
      taps.push_back(hoisted_ && !clipped ? taps_[static_cast<size_t>(flat_tap(k).value())]
                                          : load_tap(b, position, k));
    }
    for (const auto& [column, uses] : segment.columns) {
      kernel::Value input = load_channels(b, binding_.scalar, tiles_.input(),
                                          tiles_.input_index(position, k, column), tiles_.lanes());
      for (const WindowUse& use : uses) {
        kernel::Value& sum = sums[static_cast<size_t>(use.pixel)];
        sum = b.fma(input, taps[static_cast<size_t>(use.tap)], sum);
      }
    }
    return sums;
  }

  IntExpr flat_tap(const std::vector<IntExpr>& k) const {
    IntExpr flat = 0;
    for (size_t i = 0; i < k.size(); ++i) flat = flat * tiles_.window()[i].size + k[i];
    return flat;
  }

  kernel::Value load_tap(Builder& b, const WindowTiles::Position& position,
                         const std::vector<IntExpr>& k) const {
    IntExpr at = (position.block * tiles_.window_size() + flat_tap(k)) * tiles_.lanes();
    kernel::Value tap = b.load({tap_element_, tiles_.lanes()}, binding_.vector, at,
                               tiles_.lanes() * kernel::scalar_bytes(tap_element_));
    return tap_element_ == Scalar::F32 ? tap : b.cast(kernel::OpKind::FExt, tap, Scalar::F32);
  }

  void load_all_taps(Builder& b, const WindowTiles::Position& position) {
    std::vector<IntExpr> k(tiles_.window().size(), IntExpr(0));
    std::function<void(size_t)> nest = [&](size_t dim) {
      if (dim == k.size()) return taps_.push_back(load_tap(b, position, k));
      for (int64_t i = 0; i < tiles_.window()[dim].size; ++i) {
        k[dim] = i;
        nest(dim + 1);
      }
    };
    nest(0);
  }

  LoweringContext& context_;
  const Instruction& instruction_;
  ContractionRoot root_;
  WindowTiles tiles_;
  bool hoisted_ = false; // taps are in registers
  ContractionBinding binding_;
  Scalar tap_element_ = Scalar::F32;
  Values taps_;
};

} // namespace

Expected<bool> emit_depthwise(LoweringContext& context, const Instruction& instruction) {
  auto root = find_contraction_root(instruction);
  if (!root || !root->contraction->is(Opcode::Convolution)) return false;
  const Instruction& convolution = *root->contraction;
  const Type &input = root->operands[0].type(), &filter = root->operands[1].type();
  int64_t groups = convolution.attributes().integer("groups", 1);
  if (groups == 1 || filter.dim(1) != 1 || filter.dim(0) != groups || !filter.layout.is_plain()) return false;
  if (!is_small_float(input.dtype) || input.dtype != filter.dtype ||
      !is_small_float(convolution.type().dtype))
    return false;
  auto tiles = WindowTiles::create(input, instruction.type(), convolution.attributes().window().dims,
                                   context.target().lanes(32));
  if (!tiles) return false;
  DepthwiseEmitter(context, instruction, *root, std::move(*tiles)).emit();
  return true;
}

} // namespace firn::lower
