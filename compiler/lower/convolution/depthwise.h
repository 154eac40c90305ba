// Depthwise convolutions, and those with narrow groups, over blocked channels: the tiles of one, for a kernel
// of its own or for kernels that hold other work too.
#pragma once

#include "compiler/lower/contraction/contraction_fusion.h"
#include "compiler/lower/convolution/window_tiles.h"
#include "compiler/plan/windows/plan.h"

namespace firn::lower {

class DepthwiseConvolution {
public:
  // `root`: the convolution of `instruction`.
  DepthwiseConvolution(const Instruction& instruction, const plan::KernelRoot& root,
                       const plan::DepthwisePlan& plan, const Machine& target);

  const WindowTiles& tiles() const { return tiles_; }
  PackedOperand packed_taps() const;
  std::string algorithm() const;
  int64_t flops() const {
    return 2 * convolution_->type().at_bound().num_elements() * tiles_.window_size() * channels_;
  }

  // Adds the array through which a tile's sums pass to a long epilogue. Call it when all parameters of the
  // kernel are bound, before emission.
  void add_spill_buffer(kernel::Builder& builder, ContractionBinding& binding) const;
  // Emits the kernel's parallel loop with all its code.
  void emit(kernel::Builder& builder, const ContractionBinding& binding);
  // Emits lines `first` + [0, count) of one block of channels of one image.
  void emit_block(kernel::Builder& builder, const ContractionBinding& binding, const IntExpr& feature_map,
                  const IntExpr& block, const IntExpr& first, const IntExpr& count);

private:
  using Registers = WindowTiles::Registers;
  void start_block(kernel::Builder& b, const WindowTiles::Position& position);
  void emit_tile(kernel::Builder& b, const WindowTiles::Segment& segment,
                 const WindowTiles::Position& position, bool clipped);
  bool is_summed() const { return binding_->totals.has_value(); }
  kernel::Register store_pixel(kernel::Builder& b, const WindowTiles::Position& position,
                               const IntExpr& pixel, kernel::Register sum) const;
  kernel::Register store_pixels(kernel::Builder& b, const WindowTiles::Position& position,
                                const Registers& accumulators) const;
  kernel::Register store_in_loop(kernel::Builder& b, const WindowTiles::Position& position,
                                 const Registers& accumulators) const;
  kernel::MachineType sum_type() const;
  Registers add_line(kernel::Builder& b, const WindowTiles::Segment& segment,
                     const WindowTiles::Position& position, bool clipped, std::vector<IntExpr>& k,
                     Registers accumulators);
  Registers add_rolled_line(kernel::Builder& b, const WindowTiles::Segment& segment,
                            const WindowTiles::Position& position, std::vector<IntExpr>& k,
                            Registers accumulators);
  bool sums_integers() const { return product_.accumulator == DType::I32; }
  // Products of several steps take as many lines; these functions add them.
  bool has_row_groups() const { return product_.k_group() > 1; }
  int64_t row_groups() const;
  Registers add_line_groups(kernel::Builder& b, const WindowTiles::Segment& segment,
                            const WindowTiles::Position& position, bool clipped, Registers accumulators);
  kernel::Register load_group_taps(kernel::Builder& b, const WindowTiles::Position& position, int64_t group,
                                   int64_t tap) const;
  kernel::Register load_input(kernel::Builder& b, WindowTiles::Index index) const;
  kernel::Register load_operand(kernel::Builder& b,
                                WindowTiles::Index index) const; // in its form for products
  kernel::Register load_tap(kernel::Builder& b, const WindowTiles::Position& position,
                            const std::vector<IntExpr>& k, int64_t channel) const;
  kernel::Register spread_channel(kernel::Builder& b, kernel::Register input, int64_t channel) const;
  IntExpr flat_tap(const std::vector<IntExpr>& k) const;

  const Instruction* convolution_;
  plan::MacInstruction product_;
  WindowTiles tiles_;
  int64_t channels_;                            // channels of a group
  const ContractionBinding* binding_ = nullptr; // binding of the current code
  bool hoisted_;                                // taps are in registers
  Registers taps_;                              // taps of the current block
  bool rolled_epilogue_;
};

} // namespace firn::lower
