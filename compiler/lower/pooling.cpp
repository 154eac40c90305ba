// Pooling over blocked channels: maximum, minimum or sum over a window of positions, and the elementwise ops
// behind it. Where the whole window is inside, a column of it is reduced once for all pixels of the tile that
// it belongs to.
#include "compiler/lower/contraction_fusion.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/window_tiles.h"

#include "compiler/graph/builder.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Scalar;
using Values = WindowTiles::Values;

constexpr int kMaxPixels = 8;
// Window positions of one tile that are emitted as straight code.
constexpr int64_t kStraightSteps = 200;

// The reduce_window of an instruction, and what it reads from outside a fusion.
std::optional<ContractionRoot> find_pooling(const Instruction& instruction) {
  ContractionRoot root;
  if (instruction.is(Opcode::ReduceWindow)) {
    root = {&instruction, {instruction.operand(0), instruction.operand(1)}};
  } else if (instruction.is(Opcode::Fusion)) {
    const Region& region = instruction.region();
    for (const auto& inner : region.instructions()) {
      if (inner->is(Opcode::ReduceWindow) && !root.contraction)
        root.contraction = inner.get();
      else if (!ElementEmitter::can_emit(*inner) || inner->is(Opcode::ReduceWindow))
        return std::nullopt;
    }
    if (!root.contraction || region.results().size() != 1) return std::nullopt;
    if (region.results()[0].type().dims != root.contraction->type().dims) return std::nullopt;
    for (size_t p = 0; p < region.parameters().size(); ++p)
      if (region.parameters()[p] == root.contraction->operand(0).def)
        root.operands[0] = instruction.operand(static_cast<int>(p));
    root.operands[1] = root.contraction->operand(1);
  }
  if (!root.contraction || !root.operands[0] || root.contraction->num_operands() != 2) return std::nullopt;
  return root;
}

bool starts_from(const Instruction& reduce, const Literal& identity) {
  const Instruction& initial = *reduce.operand(1).def;
  return initial.is(Opcode::Constant) && !initial.literal()->is_opaque() &&
         initial.literal()->num_elements() == 1 && initial.literal()->get_double(0) == identity.get_double(0);
}

class PoolingEmitter {
public:
  PoolingEmitter(LoweringContext& context, const Instruction& instruction, const ContractionRoot& root,
                 WindowTiles tiles, Opcode reducer)
      : context_(context), instruction_(instruction), root_(root), tiles_(std::move(tiles)),
        reducer_(reducer) {}

  void emit(double identity) {
    if (context_.options().optimize_size)
      tiles_.cut(1, 0);
    else
      tiles_.cut(std::min(kMaxPixels, context_.target().vector_registers / 2), kStraightSteps);
    KernelMaker maker(context_, instruction_, "pooling");
    Builder& b = maker.builder();
    binding_.result_type = instruction_.type();
    binding_.sum_dtype = root_.contraction->type().dtype;
    binding_.scalar = maker.read(root_.operands[0]);
    bind_result(maker, instruction_, root_, binding_);
    maker.set_flops(root_.contraction->type().num_elements() * tiles_.window_size());
    tiles_.emit(
        b, [](const WindowTiles::Position&) {},
        [&](const WindowTiles::Segment& segment, const WindowTiles::Position& position, bool clipped) {
          Values starts(static_cast<size_t>(segment.pixels),
                        b.constant({Scalar::F32, tiles_.lanes()}, identity));
          Values pixels =
              clipped ? pool_lines(b, segment, position, starts) : pool_columns(b, segment, position, starts);
          for (int p = 0; p < segment.pixels; ++p) {
            Index index = position.pixel;
            index[tiles_.along() + 2] = index[tiles_.along() + 2] + p;
            finish_lanes(b, binding_, std::move(index), 1, tiles_.lanes(), tiles_.lanes(),
                         pixels[static_cast<size_t>(p)]);
          }
        });
    maker.finish();
  }

private:
  kernel::Value load(Builder& b, const WindowTiles::Position& position, const std::vector<IntExpr>& k,
                     int64_t column) const {
    return load_channels(b, binding_.scalar, tiles_.input(), tiles_.input_index(position, k, column),
                         tiles_.lanes());
  }

  // The machine's maximum ignores a NaN in its first operand, which is put in its place then.
  kernel::Value combine(Builder& b, kernel::Value input, kernel::Value reduced) const {
    if (reducer_ == Opcode::Add) return b.binary(OpKind::FAdd, reduced, input);
    kernel::Value larger =
        b.binary(reducer_ == Opcode::Maximum ? OpKind::FMaxFast : OpKind::FMinFast, input, reduced);
    return b.select(b.compare(OpKind::FCmp, kernel::Predicate::Ne, input, input), input, larger);
  }

  // Line by line of the window, or column by column.
  Values pool_lines(Builder& b, const WindowTiles::Segment& segment, const WindowTiles::Position& position,
                    Values starts) const {
    return tiles_.over_window(b, position, true, std::move(starts),
                              [&](std::vector<IntExpr>& k, Values pixels) {
                                for (const auto& [column, uses] : segment.columns) {
                                  kernel::Value input = load(b, position, k, column);
                                  for (const WindowUse& use : uses) {
                                    kernel::Value& pixel = pixels[static_cast<size_t>(use.pixel)];
                                    pixel = combine(b, input, pixel);
                                  }
                                }
                                return pixels;
                              });
  }

  Values pool_columns(Builder& b, const WindowTiles::Segment& segment, const WindowTiles::Position& position,
                      Values pixels) const {
    for (const auto& [column, uses] : segment.columns) {
      kernel::Value reduced;
      tiles_.over_window(b, position, false, {}, [&](std::vector<IntExpr>& k, const Values&) {
        kernel::Value input = load(b, position, k, column);
        reduced = reduced ? combine(b, input, reduced) : input;
        return Values{};
      });
      for (const WindowUse& use : uses) {
        kernel::Value& pixel = pixels[static_cast<size_t>(use.pixel)];
        pixel = combine(b, reduced, pixel);
      }
    }
    return pixels;
  }

  LoweringContext& context_;
  const Instruction& instruction_;
  ContractionRoot root_;
  WindowTiles tiles_;
  Opcode reducer_;
  ContractionBinding binding_;
};

} // namespace

Expected<bool> emit_pooling(LoweringContext& context, const Instruction& instruction) {
  auto root = find_pooling(instruction);
  if (!root) return false;
  const Instruction& pooling = *root->contraction;
  DType dtype = pooling.type().dtype;
  std::optional<Opcode> reducer = simple_reducer(pooling);
  if (!reducer || (*reducer != Opcode::Maximum && *reducer != Opcode::Minimum && *reducer != Opcode::Add))
    return false;
  if (dtype != DType::F32 && dtype != DType::F16 && dtype != DType::BF16) return false;
  LiteralRef identity = reducer_identity(*reducer, dtype);
  std::vector<WindowDim> window = pooling.attributes().window().dims;
  if (window.size() < 3 || !(window[0] == WindowDim{}) || !(window[1] == WindowDim{}) ||
      !starts_from(pooling, *identity))
    return false;
  auto tiles = WindowTiles::create(root->operands[0].type(), instruction.type(),
                                   {window.begin() + 2, window.end()}, context.target().lanes(32));
  if (!tiles) return false;
  PoolingEmitter(context, instruction, *root, std::move(*tiles), *reducer).emit(identity->get_double(0));
  return true;
}

} // namespace firn::lower
