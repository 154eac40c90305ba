// The elementwise end of a recurrent layer's step: the gates' sums of a vector of hidden units become new
// states.
#pragma once

#include "compiler/graph/recurrent_cells.h"
#include "compiler/lower/element/element_emitter.h"
#include "compiler/plan/recurrent/recurrent.h"

namespace firn::lower {

// Buffers of the kernel; -1: there is none. `state` holds old and new h, in turn, or is y_h if there is one
// step. `z` and `reset` hand the update gate and r * h from a gru's first sweep to its second. `gates` and
// `cells` are the layer's residuals.
struct RecurrentBuffers {
  int x = -1, bias = -1, h0 = -1, c0 = -1, peepholes = -1, b_r = -1, lens = -1;
  int input_scales = -1, recurrent_scales = -1;
  int y = -1, y_h = -1, c = -1, state = -1, z = -1, reset = -1, gates = -1, cells = -1;
};

// The places that one step reads and writes.
struct StepPlaces {
  IntExpr time;
  bool is_back; // reads the weights from the end to the start
  int old_buffer, new_buffer;
  IntExpr old_state, new_state;
};

// Some batch entries and one block of units, in one sweep of a step.
struct RecurrentTile {
  const StepPlaces& at;
  size_t sweep;
  IntExpr row;
  int rows;
  IntExpr first; // vector
  int vectors, last_lanes;
};

class RecurrentCells {
public:
  RecurrentCells(kernel::Builder& builder, const RecurrentLayer& layer, const plan::RecurrentDivision& plan,
                 const RecurrentBuffers& buffers);

  // The sums of a tile: [sum][row][vector].
  using Accumulators = std::vector<kernel::Register>;
  void emit(const RecurrentTile& tile, const Accumulators& accumulators);

  // Loads a vector of the tile, which may be a partial one.
  kernel::Register load(const RecurrentTile& tile, int vector, int buffer, const IntExpr& index);

private:
  void emit_unrolled(const RecurrentTile& tile, const Accumulators& accumulators);
  // Emits an lstm's cell in parts: the value that enters its inner state, that state, and its output. Side by
  // side their functions would need more registers than there are.
  enum class Part : uint8_t { All, Entering, Inner, Shown };
  void emit_part(const RecurrentTile& tile, const Accumulators& accumulators, Part part);
  void emit_cell(const RecurrentTile& tile, const Accumulators& accumulators, Part part);
  void emit_lstm(const RecurrentTile& tile, const Accumulators& accumulators, const IntExpr& unit, Part part);
  void emit_reset(const RecurrentTile& tile, const Accumulators& accumulators, const IntExpr& element);
  void store_sums(const RecurrentTile& tile, const Accumulators& accumulators, const IntExpr& unit);
  void store_states(const RecurrentTile& tile, const IntExpr& element, kernel::Register h);
  kernel::Register is_valid(const RecurrentTile& tile);
  void store(const RecurrentTile& tile, kernel::Register value, int buffer, const IntExpr& index);
  bool is_partial(const RecurrentTile& tile, int vector) const {
    return vector + 1 == tile.vectors && tile.last_lanes < units_.lanes;
  }
  kernel::MachineType vector_type() const { return {kernel::Scalar::F32, units_.lanes}; }
  const plan::Sweep& sweep_of(const RecurrentTile& tile) const { return plan_.sweeps[tile.sweep]; }

  kernel::Builder& b_;
  const RecurrentLayer& layer_;
  const plan::RecurrentDivision& plan_;
  const plan::UnitBlocks& units_;
  const RecurrentBuffers& buffers_;
  int accumulators_ = -1;       // a tile's, in memory
  IntExpr last_accumulator_at_; // place of the current cell's last sum
  Lanes lanes_;
};

} // namespace firn::lower
