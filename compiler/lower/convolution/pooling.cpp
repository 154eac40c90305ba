// Pooling over blocked channels: maximum, minimum or sum over a window of positions, and the elementwise ops
// behind it. If the whole window is inside, each of its columns is reduced once for all pixels of the tile
// that share it.
#include "compiler/lower/contraction/contraction_fusion.h"
#include "compiler/lower/convolution/window_tiles.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"

#include "compiler/graph/builder.h"
#include "compiler/plan/windows/plan.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Scalar;
using Registers = WindowTiles::Registers;

std::vector<WindowDim> spatial_window(const Instruction& pooling) {
  const std::vector<WindowDim>& window = pooling.attributes().window().dims;
  return {window.begin() + 2, window.end()};
}

class PoolingEmitter {
public:
  PoolingEmitter(LoweringContext& context, const Instruction& instruction, const plan::KernelRoot& root,
                 const plan::PoolingPlan& plan)
      : context_(context), instruction_(instruction), root_(root),
        tiles_(root.operands[0].type(), instruction.type(), spatial_window(*root.op),
               context.target().cpu.lanes(32), plan.tiling),
        reducer_(*simple_reducer(*root.op)) {}

  void emit() {
    double identity = reducer_identity(reducer_, root_.op->type().dtype)->get_double(0);
    KernelMaker maker(context_, instruction_, "pooling");
    Builder& b = maker.builder();
    binding_.result_type = instruction_.type();
    binding_.sum_dtype = root_.op->type().dtype;
    binding_.scalar = maker.read(root_.operands[0]);
    bind_result(maker, instruction_, root_, binding_);
    maker.set_flops(root_.op->type().at_bound().num_elements() * tiles_.window_size());
    tiles_.emit(
        b, [](const WindowTiles::Position&) {},
        [&](const WindowTiles::Segment& segment, const WindowTiles::Position& position, bool clipped) {
          Registers starts(static_cast<size_t>(segment.pixels), start_of(b, identity));
          Registers pixels =
              clipped ? pool_rows(b, segment, position, starts) : pool_columns(b, segment, position, starts);
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
  kernel::Register load(Builder& b, const WindowTiles::Position& position, const std::vector<IntExpr>& k,
                        const IntExpr& column) const {
    return load_channels(b, binding_.scalar, tiles_.input(), tiles_.input_index(position, k, column),
                         tiles_.lanes());
  }

  bool is_of_bytes() const { return is_integer(root_.op->type().dtype); }
  kernel::Register start_of(Builder& b, double identity) const {
    if (is_of_bytes()) return b.constant_int({Scalar::I8, tiles_.lanes()}, static_cast<int64_t>(identity));
    return b.constant({Scalar::F32, tiles_.lanes()}, identity);
  }

  // The machine's maximum ignores a NaN in its first operand, so the NaN is selected afterwards.
  kernel::Register combine(Builder& b, kernel::Register input, kernel::Register reduced) const {
    if (is_of_bytes()) {
      bool has_sign = is_signed(root_.op->type().dtype), largest = reducer_ == Opcode::Maximum;
      return b.binary(largest ? (has_sign ? OpKind::SMax : OpKind::UMax)
                              : (has_sign ? OpKind::SMin : OpKind::UMin),
                      input, reduced);
    }
    if (reducer_ == Opcode::Add) return b.binary(OpKind::FAdd, reduced, input);
    kernel::Register larger =
        b.binary(reducer_ == Opcode::Maximum ? OpKind::FMaxFast : OpKind::FMinFast, input, reduced);
    return b.select(b.compare(OpKind::FCmp, kernel::Predicate::Ne, input, input), input, larger);
  }

  // Reduces the window line by line, or column by column.
  Registers pool_rows(Builder& b, const WindowTiles::Segment& segment, const WindowTiles::Position& position,
                      Registers starts) const {
    return tiles_.over_window(
        b, position, true, std::move(starts), [&](std::vector<IntExpr>& k, Registers pixels) {
          if (tiles_.is_rolled()) return pool_taps(b, segment, position, k, std::move(pixels));
          for (const auto& [column, uses] : segment.columns)
            pixels =
                tiles_.at_column(b, segment, position, column, std::move(pixels), [&](Registers reduced) {
                  kernel::Register input = load(b, position, k, column);
                  for (const WindowUse& use : uses) {
                    kernel::Register& pixel = reduced[static_cast<size_t>(use.pixel)];
                    pixel = combine(b, input, pixel);
                  }
                  return reduced;
                });
          return pixels;
        });
  }

  // Reduces a long window, each pixel by itself.
  Registers pool_taps(Builder& b, const WindowTiles::Segment& segment, const WindowTiles::Position& position,
                      const std::vector<IntExpr>& k, Registers pixels) const {
    return tiles_.over_taps(
        b, segment, position, std::move(pixels), [&](const IntExpr& tap, int first, Registers reduced) {
          for (kernel::Register& pixel : reduced)
            pixel = combine(b, load(b, position, k, tiles_.column_of(first++, tap)), pixel);
          return reduced;
        });
  }

  Registers pool_columns(Builder& b, const WindowTiles::Segment& segment,
                         const WindowTiles::Position& position, Registers pixels) const {
    for (const auto& [column, uses] : segment.columns) {
      kernel::Register reduced;
      tiles_.over_window(b, position, false, {}, [&](std::vector<IntExpr>& k, const Registers&) {
        kernel::Register input = load(b, position, k, column);
        reduced = reduced ? combine(b, input, reduced) : input;
        return Registers{};
      });
      for (const WindowUse& use : uses) {
        kernel::Register& pixel = pixels[static_cast<size_t>(use.pixel)];
        pixel = combine(b, reduced, pixel);
      }
    }
    return pixels;
  }

  LoweringContext& context_;
  const Instruction& instruction_;
  plan::KernelRoot root_;
  WindowTiles tiles_;
  Opcode reducer_;
  ContractionBinding binding_;
};

} // namespace

void emit_pooling(LoweringContext& context, const Instruction& instruction, const plan::PoolingPlan& plan) {
  PoolingEmitter(context, instruction, *plan::find_pooling(instruction), plan).emit();
}

} // namespace firn::lower
