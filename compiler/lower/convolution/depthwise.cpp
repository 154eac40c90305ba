// Depthwise convolutions, and those with narrow groups, over blocked channels. The accumulators of a tile of
// pixels live in registers; per line of the window every input vector is loaded once and multiplied into all
// pixels that it reaches:
//
//   acc[p] += input[column] * tap[j]   where column = p * stride + j * dilation
//
// Taps stay in registers for all tiles of a block when the register file holds the whole window, else one
// line of them at a time; a long line is a loop over them instead. Groups of several channels that divide a
// vector take a step per channel, with that channel of every group in all of the group's lanes. Bytes are
// multiplied four lines of the window at a time where the CPU has such products; on machines without vectors,
// channel by channel in i32; else they are widened to f32, which has their sums exactly.
#include "compiler/lower/convolution/depthwise.h"

#include "compiler/lower/contraction/operand_loads.h"
#include "compiler/lower/convolution/line_group.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/windows/plan.h"
#include "compiler/plan/windows/windows.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Scalar;

// Converts factors that are bytes to f32; others are f32 already.
kernel::Register as_f32(Builder& b, kernel::Register operands, DType dtype) {
  if (is_float(dtype)) return operands;
  kernel::Register wide =
      b.cast(is_signed(dtype) ? kernel::OpKind::SExt : kernel::OpKind::ZExt, operands, Scalar::I32);
  return b.cast(kernel::OpKind::SIToF, wide, Scalar::F32);
}

} // namespace

DepthwiseConvolution::DepthwiseConvolution(const Instruction& instruction, const plan::KernelRoot& root,
                                           const plan::DepthwisePlan& plan, const Machine& target)
    : convolution_(root.op), product_(plan.mac),
      tiles_(convolution_->operand(0).type(), instruction.type(), convolution_->attributes().window().dims,
             plan::window_lanes(target), plan.tiling),
      channels_(convolution_->operand(1).dim(1)), hoisted_(plan.taps_in_registers),
      rolled_epilogue_(plan.rolled_epilogue) {}

PackedOperand DepthwiseConvolution::packed_taps() const {
  const Type& filter = convolution_->operand(1).type();
  PackedOperand packed;
  packed.tile = {1, 1, tiles_.lanes(), 1};
  packed.element = memory_scalar(filter.dtype);
  packed.columns = filter.dim(0);
  packed.column_stride = tiles_.window_size() * channels_;
  if (has_row_groups()) {
    packed.k_group = product_.k_group();
    int64_t line = tiles_.window()[1].size;
    for (size_t dim : {tiles_.along(), tiles_.across()}) {
      packed.extents.push_back(tiles_.window()[dim].size);
      packed.strides.push_back(dim == 0 ? line : 1);
    }
    return packed;
  }
  int64_t stride = tiles_.window_size();
  for (const WindowDim& dim : tiles_.window()) {
    stride /= dim.size;
    packed.extents.push_back(dim.size);
    packed.strides.push_back(stride);
  }
  packed.extents.push_back(channels_);
  packed.strides.push_back(tiles_.window_size());
  return packed;
}

std::string DepthwiseConvolution::algorithm() const {
  std::string text;
  for (const WindowDim& dim : tiles_.window()) text += (text.empty() ? "" : "x") + std::to_string(dim.size);
  if (channels_ > 1)
    return text + " groups of " + std::to_string(channels_) + " " + std::to_string(tiles_.pixels());
  text += " depthwise " + std::to_string(tiles_.pixels());
  return has_row_groups() ? text + " " + plan::to_string(product_) : text;
}

void DepthwiseConvolution::add_spill_buffer(Builder& b, ContractionBinding& binding) const {
  if (rolled_epilogue_ && tiles_.pixels() > 1)
    binding.spill_buffer =
        b.add_scratch("sums", sum_type().scalar, int64_t{tiles_.pixels()} * sum_type().lanes);
}

void DepthwiseConvolution::emit(Builder& b, const ContractionBinding& binding) {
  binding_ = &binding;
  tiles_.emit(
      b, [&](const WindowTiles::Position& position) { start_block(b, position); },
      [&](const WindowTiles::Segment& segment, const WindowTiles::Position& position, bool clipped) {
        emit_tile(b, segment, position, clipped);
      });
}

void DepthwiseConvolution::emit_block(Builder& b, const ContractionBinding& binding,
                                      const IntExpr& feature_map, const IntExpr& block, const IntExpr& first,
                                      const IntExpr& count) {
  binding_ = &binding;
  tiles_.emit_block(
      b, feature_map, block, first, count,
      [&](const WindowTiles::Position& position) { start_block(b, position); },
      [&](const WindowTiles::Segment& segment, const WindowTiles::Position& position, bool clipped) {
        emit_tile(b, segment, position, clipped);
      });
}

// Loads all taps if they stay in registers.
void DepthwiseConvolution::start_block(Builder& b, const WindowTiles::Position& position) {
  taps_.clear();
  if (!hoisted_) return;
  if (has_row_groups()) {
    for (int64_t group = 0; group < row_groups(); ++group)
      for (int64_t tap = 0; tap < tiles_.window()[tiles_.along()].size; ++tap)
        taps_.push_back(load_group_taps(b, position, group, tap));
    return;
  }
  std::vector<IntExpr> k(tiles_.window().size(), IntExpr(0));
  std::function<void(size_t)> nest = [&](size_t dim) {
    if (dim == k.size()) {
      for (int64_t channel = 0; channel < channels_; ++channel)
        taps_.push_back(load_tap(b, position, k, channel));
      return;
    }
    for (int64_t i = 0; i < tiles_.window()[dim].size; ++i) {
      k[dim] = i;
      nest(dim + 1);
    }
  };
  nest(0);
}

void DepthwiseConvolution::emit_tile(Builder& b, const WindowTiles::Segment& segment,
                                     const WindowTiles::Position& position, bool clipped) {
  kernel::Register start = binding_->initial
                               ? initial_of_channels(b, *binding_, position.pixel[1], tiles_.lanes())
                           : sums_integers() ? b.constant_int(sum_type(), 0)
                                             : b.constant(sum_type(), 0.0);
  Registers accumulators(static_cast<size_t>(segment.pixels), start);
  if (has_row_groups())
    accumulators = add_line_groups(b, segment, position, clipped, std::move(accumulators));
  else
    accumulators = tiles_.over_window(b, position, clipped, std::move(accumulators),
                                      [&](std::vector<IntExpr>& k, const Registers& carried) {
                                        return add_line(b, segment, position, clipped, k, carried);
                                      });
  kernel::Register total = binding_->spill_buffer >= 0 && segment.pixels > 1
                               ? store_in_loop(b, position, accumulators)
                               : store_pixels(b, position, accumulators);
  if (is_summed())
    binding_->totals->store(b, position.pixel[0], position.block, tiles_.tile_number(position), total);
}

kernel::Register DepthwiseConvolution::store_pixel(Builder& b, const WindowTiles::Position& position,
                                                   const IntExpr& pixel, kernel::Register sum) const {
  Index index = position.pixel;
  index[tiles_.along() + 2] = index[tiles_.along() + 2] + pixel;
  if (binding_->sum_dtype == DType::I32 && !sums_integers())
    sum = b.cast(kernel::OpKind::FToSI, sum, Scalar::I32);
  return finish_lanes(b, *binding_, std::move(index), 1, tiles_.lanes(), tiles_.lanes(), sum);
}

// Both ways of storing the tile return the total of the stored values, if it is wanted.
kernel::Register DepthwiseConvolution::store_pixels(Builder& b, const WindowTiles::Position& position,
                                                    const Registers& accumulators) const {
  kernel::Register total;
  for (size_t p = 0; p < accumulators.size(); ++p) {
    kernel::Register stored = store_pixel(b, position, static_cast<int64_t>(p), accumulators[p]);
    if (is_summed()) total = p == 0 ? stored : b.binary(kernel::OpKind::FAdd, total, stored);
  }
  return total;
}

// Stores by way of memory, so that first the window and then the epilogue has all registers.
kernel::Register DepthwiseConvolution::store_in_loop(Builder& b, const WindowTiles::Position& position,
                                                     const Registers& accumulators) const {
  kernel::MachineType type = sum_type(), stored_type{Scalar::F32, tiles_.lanes()};
  int alignment = tiles_.lanes() * kernel::scalar_bytes(type.scalar);
  for (size_t p = 0; p < accumulators.size(); ++p)
    b.store(accumulators[p], binding_->spill_buffer, static_cast<int64_t>(p) * type.lanes, alignment);
  Registers start(is_summed() ? 1 : 0, b.constant(stored_type, 0.0));
  Registers totals = b.loop_carried(
      0, static_cast<int64_t>(accumulators.size()), 1, start, [&](const IntExpr& pixel, Registers carried) {
        kernel::Register sum = b.load(type, binding_->spill_buffer, pixel * type.lanes, alignment);
        kernel::Register stored = store_pixel(b, position, pixel, sum);
        for (kernel::Register& total : carried) total = b.binary(kernel::OpKind::FAdd, total, stored);
        return carried;
      });
  return is_summed() ? totals[0] : kernel::Register{};
}

DepthwiseConvolution::Registers DepthwiseConvolution::add_line(Builder& b,
                                                               const WindowTiles::Segment& segment,
                                                               const WindowTiles::Position& position,
                                                               bool clipped, std::vector<IntExpr>& k,
                                                               Registers accumulators) {
  if (tiles_.is_rolled()) return add_rolled_line(b, segment, position, k, std::move(accumulators));
  Registers taps; // taps of all channels at the first place of the line, then at the next
  for (int64_t j = 0; j < tiles_.window()[tiles_.along()].size; ++j) {
    k[tiles_.along()] = j;
    for (int64_t channel = 0; channel < channels_; ++channel)
      taps.push_back(hoisted_ && !clipped
                         ? taps_[static_cast<size_t>(flat_tap(k).value() * channels_ + channel)]
                         : load_tap(b, position, k, channel));
  }
  for (const auto& [column, uses] : segment.columns)
    accumulators =
        tiles_.at_column(b, segment, position, column, std::move(accumulators), [&](Registers added) {
          kernel::Register input = load_operand(b, tiles_.input_index(position, k, column));
          for (int64_t channel = 0; channel < channels_; ++channel) {
            kernel::Register lanes = spread_channel(b, input, channel);
            for (const WindowUse& use : uses) {
              kernel::Register& sum = added[static_cast<size_t>(use.pixel)];
              sum = multiply_add(b, product_, lanes, taps[static_cast<size_t>(use.tap * channels_ + channel)],
                                 sum);
            }
          }
          return added;
        });
  return accumulators;
}

// Every pixel loads its own vector at a tap; the FMA folds the load.
DepthwiseConvolution::Registers DepthwiseConvolution::add_rolled_line(Builder& b,
                                                                      const WindowTiles::Segment& segment,
                                                                      const WindowTiles::Position& position,
                                                                      std::vector<IntExpr>& k,
                                                                      Registers accumulators) {
  auto add_tap = [&](const IntExpr& tap, int first, const Registers& carried) {
    k[tiles_.along()] = tap;
    Registers taps, added = carried;
    for (int64_t channel = 0; channel < channels_; ++channel)
      taps.push_back(load_tap(b, position, k, channel));
    for (size_t i = 0; i < added.size(); ++i) {
      IntExpr column = tiles_.column_of(first + static_cast<int>(i), tap);
      kernel::Register input = load_operand(b, tiles_.input_index(position, k, column));
      for (int64_t channel = 0; channel < channels_; ++channel)
        added[i] = multiply_add(b, product_, spread_channel(b, input, channel),
                                taps[static_cast<size_t>(channel)], added[i]);
    }
    return added;
  };
  return tiles_.over_taps(b, segment, position, std::move(accumulators), add_tap);
}

// Spreads one channel of every group over all lanes of the group.
kernel::Register DepthwiseConvolution::spread_channel(Builder& b, kernel::Register input,
                                                      int64_t channel) const {
  if (channels_ == 1) return input;
  std::vector<int64_t> order;
  for (int64_t lane = 0; lane < tiles_.lanes(); ++lane)
    order.push_back(lane / channels_ * channels_ + channel);
  return b.shuffle(input, input, std::move(order));
}

kernel::Register DepthwiseConvolution::load_input(Builder& b, WindowTiles::Index index) const {
  const std::optional<TensorPart>& part = binding_->scalar_part;
  if (part) index = part->within(index);
  return load_channels(b, binding_->scalar, part ? part->type : tiles_.input(), index, tiles_.lanes());
}

// Bytes stay as they are where lanes are multiplied in i32.
kernel::Register DepthwiseConvolution::load_operand(Builder& b, WindowTiles::Index index) const {
  kernel::Register input = load_input(b, std::move(index));
  return sums_integers() ? input : as_f32(b, input, tiles_.input().dtype);
}

kernel::MachineType DepthwiseConvolution::sum_type() const {
  return {sums_integers() ? Scalar::I32 : Scalar::F32, tiles_.lanes()};
}

int64_t DepthwiseConvolution::row_groups() const {
  return (tiles_.window()[tiles_.across()].size + product_.k_group() - 1) / product_.k_group();
}

DepthwiseConvolution::Registers DepthwiseConvolution::add_line_groups(Builder& b,
                                                                      const WindowTiles::Segment& segment,
                                                                      const WindowTiles::Position& position,
                                                                      bool clipped, Registers accumulators) {
  for (int64_t number = 0; number < row_groups(); ++number) {
    RowGroup map_rows(b, tiles_, position, number, clipped);
    int64_t length = tiles_.window()[tiles_.along()].size;
    Registers taps;
    for (int64_t tap = 0; tap < length; ++tap)
      taps.push_back(hoisted_ ? taps_[static_cast<size_t>(number * length + tap)]
                              : load_group_taps(b, position, number, tap));
    for (const auto& [column, uses] : segment.columns)
      accumulators =
          tiles_.at_column(b, segment, position, column, std::move(accumulators), [&](Registers added) {
            kernel::Register bytes = map_rows.bytes_of(
                b, column, [&](const WindowTiles::Index& index) { return load_input(b, index); });
            for (const WindowUse& use : uses) {
              kernel::Register& sum = added[static_cast<size_t>(use.pixel)];
              sum = multiply_add(b, product_, bytes, taps[static_cast<size_t>(use.tap)], sum);
            }
            return added;
          });
  }
  return accumulators;
}

// The taps of a line group at one place along its lines.
kernel::Register DepthwiseConvolution::load_group_taps(Builder& b, const WindowTiles::Position& position,
                                                       int64_t group, int64_t tap) const {
  int lanes = tiles_.lanes() * product_.k_group();
  IntExpr first = position.block * tiles_.window()[tiles_.along()].size + tap;
  return b.load({Scalar::I8, lanes}, binding_->vector, (first * row_groups() + group) * lanes, lanes);
}

IntExpr DepthwiseConvolution::flat_tap(const std::vector<IntExpr>& k) const {
  IntExpr flat = 0;
  for (size_t i = 0; i < k.size(); ++i) flat = flat * tiles_.window()[i].size + k[i];
  return flat;
}

kernel::Register DepthwiseConvolution::load_tap(Builder& b, const WindowTiles::Position& position,
                                                const std::vector<IntExpr>& k, int64_t channel) const {
  Scalar element = memory_scalar(convolution_->operand(1).dtype());
  IntExpr at = ((position.block * tiles_.window_size() + flat_tap(k)) * channels_ + channel) * tiles_.lanes();
  kernel::Register tap =
      b.load({element, tiles_.lanes()}, binding_->vector, at, tiles_.lanes() * kernel::scalar_bytes(element));
  if (element == Scalar::I8 && sums_integers()) return tap;
  if (element == Scalar::I8) return as_f32(b, tap, convolution_->operand(1).dtype());
  return element == Scalar::F32 ? tap : b.cast(kernel::OpKind::FExt, tap, Scalar::F32);
}

void emit_depthwise(LoweringContext& context, const Instruction& instruction,
                    const plan::DepthwisePlan& plan) {
  plan::KernelRoot root = *plan::find_contraction(instruction);
  DepthwiseConvolution depthwise(instruction, root, plan, context.target());
  PackedOperand packed = depthwise.packed_taps();
  BufferSlice taps = pack_operand(context, instruction, packed, root.operands[1]);
  KernelMaker maker(context, instruction, "depthwise");
  ContractionBinding binding = make_binding(instruction, root);
  binding.scalar = maker.read(root.operands[0]);
  binding.vector = maker.parameter(taps, packed.element, packed.elements(), false, "packed");
  if (FusedSpatialSum* sum = context.spatial_sum_of(instruction))
    binding.totals = sum->bind(maker, depthwise.tiles().count());
  bind_result(maker, instruction, root, binding, bias_of(plan));
  maker.kernel().algorithm = depthwise.algorithm();
  maker.set_flops(depthwise.flops());
  depthwise.add_spill_buffer(maker.builder(), binding);
  depthwise.emit(maker.builder(), binding);
  maker.finish();
}

} // namespace firn::lower
