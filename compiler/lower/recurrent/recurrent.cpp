// Recurrent layers as one kernel per direction: the loop over time is inside, and a step computes all gates
// of a block of hidden units in registers, from the packed weights to the new state. The input's products
// come from a dot of their own over the whole sequence (project-recurrent-inputs), or are computed by the
// same kernel.
#include "compiler/lower/contraction/packed_operand.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/recurrent/gate_gemm.h"
#include "compiler/lower/recurrent/recurrent_cell.h"
#include "compiler/plan/recurrent/plan.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

namespace firn::lower {
namespace {

using kernel::Builder;

class RecurrentKernel {
public:
  RecurrentKernel(LoweringContext& context, const Instruction& composite, RecurrentLayer layer,
                  const plan::RecurrentPlan& plan)
      : context_(context), composite_(composite), layer_(std::move(layer)),
        maker_(context, composite, composite.word("name")), b_(maker_.builder()),
        plan_(plan::divide(layer_, plan, context.target())), units_(plan_.units), sweeps_(plan_.sweeps),
        hidden_(layer_.hidden), steps_(layer_.steps()), batch_(layer_.batch()),
        has_one_step_(steps_ == IntExpr(1)), max_rows_(batch_.upper_bound()),
        cells_(b_, layer_, plan_, buffers_) {}

  void emit() {
    bind_buffers();
    maker_.set_flops(2 * steps_.upper_bound() * max_rows_ * layer_.gates * hidden_ *
                     (hidden_ + (layer_.projected() ? 0 : inputs())));
    if (plan_.cooperative) return emit_cooperative();
    if (plan_.item_rows > 0) item_ = b_.set_parallel(items());
    if (!has_one_step_) {
      copy(buffers_.h0, 0, buffers_.state, 0);
      if (is_lstm()) copy(buffers_.c0, 0, buffers_.c, 0);
    }
    emit_steps();
    if (!has_one_step_) copy(buffers_.state, floor_mod(steps_, 2) * state_elements(), buffers_.y_h, 0);
    maker_.finish();
  }

private:
  bool is_lstm() const { return layer_.kind == RecurrentKind::Lstm; }
  int64_t inputs() const { return layer_.operands.x.dim(2); }

  void bind_buffers() {
    const RecurrentOperands& o = layer_.operands;
    for (size_t sweep = 0; sweep < sweeps_.size(); ++sweep) {
      input_buffers_.push_back(bind_panels(o.w, plan_.input_panels[sweep]));
      recurrent_buffers_.push_back(bind_panels(o.r, plan_.recurrent_panels[sweep]));
    }
    buffers_.x = maker_.read(o.x);
    if (o.b) buffers_.bias = maker_.read(o.b);
    if (o.w_scales) buffers_.input_scales = maker_.read(o.w_scales);
    if (o.r_scales) buffers_.recurrent_scales = maker_.read(o.r_scales);
    buffers_.h0 = maker_.read(o.h0);
    if (o.c0) buffers_.c0 = maker_.read(o.c0);
    if (o.peepholes) buffers_.peepholes = maker_.read(o.peepholes);
    if (o.b_r) buffers_.b_r = maker_.read(o.b_r);
    if (o.lens) buffers_.lens = maker_.read(o.lens);
    if (const_cast<Instruction&>(composite_).num_uses(0) > 0)
      buffers_.y = maker_.write(result_of(composite_, 0));
    buffers_.y_h = maker_.write(result_of(composite_, 1));
    if (is_lstm()) buffers_.c = maker_.write(result_of(composite_, 2));
    if (layer_.options.residuals) buffers_.gates = maker_.write(result_of(composite_, is_lstm() ? 3 : 2));
    if (layer_.options.residuals && is_lstm()) buffers_.cells = maker_.write(result_of(composite_, 4));
    buffers_.state = buffers_.y_h;
    if (!has_one_step_) {
      state_ = {context_.add_scratch_buffer(2 * state_elements() * 4, "state"), 0};
      buffers_.state = maker_.parameter(state_, kernel::Scalar::F32, 2 * state_elements(), true, "state");
    }
    if (sweeps_.size() > 1) {
      buffers_.z = scratch(state_elements(), "update");
      buffers_.reset = scratch(state_elements(), "reset");
    }
  }

  int scratch(int64_t elements, const char* name) {
    BufferSlice place{context_.add_scratch_buffer(elements * 4, name), 0};
    return maker_.parameter(place, kernel::Scalar::F32, elements, true, name);
  }

  int bind_panels(Value weights, const plan::GatePanels& panels) {
    if (panels.gates.empty()) return -1;
    int64_t elements = panels.elements(), bytes = elements * panels.element_bytes();
    kernel::Scalar scalar = memory_scalar(panels.dtype);
    Packing packing = panels.packing(weights.type().num_elements());
    BufferSlice place;
    if (weights.def->is(Opcode::Constant) && !weights.def->literal()->is_opaque()) {
      place = {context_.add_constant(weights.def->literal(), packing, weights.def->location()), 0};
    } else {
      place = {context_.add_scratch_buffer(bytes, "packed"), 0};
      KernelMaker packer(context_, composite_, "pack");
      int from = packer.read(weights);
      int to = packer.parameter(place, scalar, elements, true, "packed");
      emit_pack(packer.builder(), packing, scalar, units_.lanes, from, to);
      packer.finish();
    }
    maker_.kernel().bytes += bytes;
    return maker_.parameter(place, scalar, elements, false, "packed");
  }

  // Counts at the bound of the batch: the distance of old and new states does not vary.
  int64_t state_elements() const { return max_rows_ * hidden_; }
  int64_t tiles() const { return (max_rows_ + plan_.rows - 1) / plan_.rows; } // tiles of the batch
  int64_t item_tiles() const { return plan_.item_rows / plan_.rows; }
  int64_t items() const { return (tiles() + item_tiles() - 1) / item_tiles(); }

  // Places of the states of the batch, or of the item's part of it.
  void copy(int from, const IntExpr& from_offset, int to, const IntExpr& to_offset) {
    IntExpr count = batch_ * hidden_;
    int64_t lanes = std::min<int64_t>(units_.lanes, state_elements());
    auto move = [&](const IntExpr& at, int64_t width) {
      b_.store(b_.load({kernel::Scalar::F32, static_cast<int>(width)}, from, at + from_offset), to,
               at + to_offset);
    };
    if (plan_.item_rows > 0) {
      int64_t part = plan_.item_rows * hidden_;
      lanes = std::gcd(std::gcd(lanes, part), count.value());
      return b_.loop(item_ * (part / lanes), min((item_ + 1) * (part / lanes), floor_div(count, lanes)), 1,
                     [&](const IntExpr& i) { move(i * lanes, lanes); });
    }
    b_.loop(0, floor_div(count, lanes), 1, [&](const IntExpr& i) { move(i * lanes, lanes); });
    b_.loop(floor_div(count, lanes) * lanes, count, 1, [&](const IntExpr& i) { move(i, 1); });
  }

  // An item is a block of units; threads wait for each other behind every sweep. Code before the first and
  // after the last step has kernels of its own.
  void emit_cooperative() {
    auto copy_state = [&](BufferSlice from, BufferSlice to) {
      emit_copy(context_, from, to, layer_.operands.h0.type(), composite_.location());
    };
    if (!has_one_step_) {
      copy_state(context_.place_of(layer_.operands.h0), state_);
      if (is_lstm())
        copy_state(context_.place_of(layer_.operands.c0), context_.place_of(result_of(composite_, 2)));
    }
    item_ = b_.set_parallel(units_.whole_blocks() + (units_.rest_vectors() > 0 ? 1 : 0));
    auto sweeps = static_cast<int64_t>(sweeps_.size());
    IntExpr phase = b_.set_phases(steps_.value() * sweeps);
    StepPlaces at = places_of(floor_div(phase, sweeps), /*is_back=*/false);
    if (sweeps == 1)
      emit_item_block(at, 0);
    else
      choose(
          floor_mod(phase, sweeps), 1, [&] { emit_item_block(at, 0); }, [&] { emit_item_block(at, 1); });
    maker_.finish();
    int64_t last = steps_.value() % 2 * state_elements() * 4;
    if (!has_one_step_)
      copy_state({state_.buffer, state_.byte_offset + last}, context_.place_of(result_of(composite_, 1)));
  }

  void emit_item_block(const StepPlaces& at, size_t sweep) {
    auto whole = [&] { emit_block(at, sweep, item_ * units_.vectors, units_.vectors, units_.lanes); };
    auto rest = [&] { emit_rest_block(at, sweep); };
    if (units_.rest_vectors() == 0) return whole();
    choose(item_, units_.whole_blocks(), whole, rest);
  }

  // Selects `below` if the index is below `limit`, else `others`.
  void choose(const IntExpr& index, int64_t limit, const std::function<void()>& below,
              const std::function<void()>& others) {
    auto body = [](const std::function<void()>& emit) {
      return [&emit] {
        emit();
        return std::vector<kernel::Register>{};
      };
    };
    kernel::Register is_below =
        b_.compare(kernel::OpKind::SCmp, kernel::Predicate::Lt, b_.index(index), b_.index(limit));
    b_.if_then_else(is_below, body(below), body(others));
  }

  void emit_steps() {
    if (!plan_.alternate_direction)
      return b_.loop(0, steps_, 1, [&](const IntExpr& step) { emit_step(step, false); });
    b_.loop(0, floor_div(steps_, 2), 1, [&](const IntExpr& pair) {
      emit_step(pair * 2, false);
      emit_step(pair * 2 + 1, true);
    });
    IntExpr odd = floor_mod(steps_, 2);
    b_.loop(steps_ - odd, steps_, 1, [&](const IntExpr& step) { emit_step(step, false); });
  }

  StepPlaces places_of(const IntExpr& step, bool is_back) const {
    int64_t size = state_elements();
    StepPlaces at;
    at.time = layer_.options.reverse ? steps_ - 1 - step : step;
    at.is_back = is_back;
    at.old_buffer = has_one_step_ ? buffers_.h0 : buffers_.state;
    at.new_buffer = buffers_.state;
    at.old_state = has_one_step_ ? IntExpr(0) : floor_mod(step, 2) * size;
    at.new_state = has_one_step_ ? IntExpr(0) : IntExpr(size) - floor_mod(step, 2) * size;
    return at;
  }

  void emit_step(const IntExpr& step, bool is_back) {
    StepPlaces at = places_of(step, is_back);
    for (size_t sweep = 0; sweep < sweeps_.size(); ++sweep) {
      if (is_back) emit_rest_block(at, sweep);
      b_.loop(0, units_.whole_blocks(), 1, [&](const IntExpr& i) {
        IntExpr block = is_back ? IntExpr(units_.whole_blocks() - 1) - i : i;
        emit_block(at, sweep, block * units_.vectors, units_.vectors, units_.lanes);
      });
      if (!is_back) emit_rest_block(at, sweep);
    }
  }

  void emit_rest_block(const StepPlaces& at, size_t sweep) {
    if (int rest = units_.rest_vectors(); rest > 0)
      emit_block(at, sweep, units_.whole_blocks() * units_.vectors, rest, units_.last_lanes());
  }

  void emit_block(const StepPlaces& at, size_t sweep, const IntExpr& first, int vectors, int last_lanes) {
    IntExpr whole_tiles = floor_div(batch_, plan_.rows);
    bool has_items = plan_.item_rows > 0;
    IntExpr from = has_items ? item_ * item_tiles() : IntExpr(0), end = whole_tiles;
    if (has_items) end = min(from + item_tiles(), whole_tiles);
    b_.loop(from, end, 1, [&](const IntExpr& tile) {
      emit_tile({at, sweep, tile * plan_.rows, plan_.rows, first, vectors, last_lanes});
    });
    if (!batch_.is_constant()) return emit_rest_rows(at, sweep, first, vectors, last_lanes);
    int rest = static_cast<int>(batch_.value() % plan_.rows);
    if (rest == 0) return;
    auto emit_rest = [&] {
      emit_tile({at, sweep, whole_tiles * plan_.rows, rest, first, vectors, last_lanes});
    };
    if (!has_items || items() == 1) return emit_rest();
    choose(
        item_, items() - 1, [] {}, emit_rest);
  }

  // Emits the rest of a batch that varies: tiles of half as many rows, and so on.
  void emit_rest_rows(const StepPlaces& at, size_t sweep, const IntExpr& first, int vectors, int last_lanes) {
    IntExpr from = floor_div(batch_, plan_.rows) * plan_.rows, rest = batch_ - from;
    for (auto rows = static_cast<int>(std::bit_floor(static_cast<unsigned>(plan_.rows - 1))); rows > 0;
         rows /= 2) {
      IntExpr before = from + floor_div(rest, 2 * rows) * (2 * rows);
      b_.loop(0, floor_mod(floor_div(rest, rows), 2), 1, [&](const IntExpr& i) {
        emit_tile({at, sweep, before + i * rows, rows, first, vectors, last_lanes});
      });
    }
  }

  using Tile = RecurrentTile;
  using Accumulators = RecurrentCells::Accumulators;
  static size_t place(const Tile& tile, size_t sum, int row, int vector) {
    return (sum * static_cast<size_t>(tile.rows) + static_cast<size_t>(row)) *
               static_cast<size_t>(tile.vectors) +
           static_cast<size_t>(vector);
  }

  void emit_tile(const Tile& tile) {
    const plan::Sweep& sweep = sweeps_[tile.sweep];
    Accumulators accumulators = first_accumulators(tile);
    if (!layer_.projected()) {
      Operands inputs{plan_.input_panels[tile.sweep], input_buffers_[tile.sweep], buffers_.input_scales,
                      buffers_.x, tile.at.time * (batch_ * this->inputs())};
      accumulate(tile, inputs, &plan::GateSum::input, accumulators);
    }
    Operands states{plan_.recurrent_panels[tile.sweep], recurrent_buffers_[tile.sweep],
                    buffers_.recurrent_scales, sweep.reads_reset_state ? buffers_.reset : tile.at.old_buffer,
                    sweep.reads_reset_state ? IntExpr(0) : tile.at.old_state};
    accumulate(tile, states, &plan::GateSum::recurrent, accumulators);
    cells_.emit(tile, accumulators);
  }

  // The input's part of the gates if it is known, else the bias.
  Accumulators first_accumulators(const Tile& tile) {
    const plan::Sweep& sweep = sweeps_[tile.sweep];
    Accumulators accumulators;
    for (const plan::GateSum& sum : sweep.accumulators)
      for (int row = 0; row < tile.rows; ++row)
        for (int vector = 0; vector < tile.vectors; ++vector) {
          IntExpr unit = (tile.first + vector) * units_.lanes;
          if (sum.input < 0)
            accumulators.push_back(b_.constant({kernel::Scalar::F32, units_.lanes}, 0));
          else if (layer_.projected())
            accumulators.push_back(cells_.load(
                tile, vector, buffers_.x,
                ((tile.at.time * batch_ + tile.row + row) * layer_.gates + sum.input) * hidden_ + unit));
          else
            accumulators.push_back(cells_.load(tile, vector, buffers_.bias, unit + sum.input * hidden_));
        }
    return accumulators;
  }

  // The operands of a product: packed weights, with scales if they are integers, and rows of inputs or
  // states.
  struct Operands {
    const plan::GatePanels& panels;
    int buffer, scales;
    int source;
    IntExpr source_offset;
  };

  // Adds panel times source[row][k] to the sums whose gate the panel has.
  void accumulate(const Tile& tile, const Operands& operands, int plan::GateSum::*gate_of,
                  Accumulators& accumulators) {
    std::vector<size_t> places;
    std::vector<IntExpr> scales; // their places
    const std::vector<plan::GateSum>& all = sweeps_[tile.sweep].accumulators;
    for (size_t sum = 0; sum < all.size(); ++sum) {
      if (all[sum].*gate_of < 0) continue;
      for (int row = 0; row < tile.rows; ++row)
        for (int vector = 0; vector < tile.vectors; ++vector) {
          places.push_back(place(tile, sum, row, vector));
          scales.push_back((tile.first + vector) * units_.lanes + all[sum].*gate_of * hidden_);
        }
    }
    const bool is_scaled = operands.scales >= 0;
    Accumulators added;
    for (size_t at : places)
      added.push_back(is_scaled ? b_.constant({kernel::Scalar::F32, units_.lanes}, 0) : accumulators[at]);
    added = add_gate_gemm(b_, gate_gemm(tile, operands, places.size()), std::move(added));
    for (size_t i = 0; i < places.size(); ++i) {
      auto vector = static_cast<int>(i % static_cast<size_t>(tile.vectors));
      kernel::Register& sum = accumulators[places[i]];
      sum =
          is_scaled ? b_.fma(added[i], cells_.load(tile, vector, operands.scales, scales[i]), sum) : added[i];
    }
  }

  GateGemm gate_gemm(const Tile& tile, const Operands& operands, size_t accumulators) const {
    return {operands.panels,
            operands.buffer,
            tile.first,
            tile.vectors,
            operands.source,
            operands.source_offset + tile.row * operands.panels.reduction,
            tile.rows,
            tile.at.is_back,
            plan_.prefetch_distance,
            plan_.unroll,
            plan_.splits_of(static_cast<int64_t>(accumulators), operands.panels.reduction)};
  }

  LoweringContext& context_;
  const Instruction& composite_;
  RecurrentLayer layer_;
  KernelMaker maker_;
  Builder& b_;
  plan::RecurrentDivision plan_;
  const plan::UnitBlocks& units_;
  const std::vector<plan::Sweep>& sweeps_;
  int64_t hidden_;
  IntExpr steps_, batch_;
  bool has_one_step_;
  int64_t max_rows_;                                   // bound of the batch
  BufferSlice state_;                                  // old and new h
  IntExpr item_ = 0;                                   // rows of the batch, or a block of units
  std::vector<int> input_buffers_, recurrent_buffers_; // buffers of panels by sweep; -1: none
  RecurrentBuffers buffers_;
  RecurrentCells cells_;
};

} // namespace

void emit_recurrent(LoweringContext& context, const Instruction& composite, const plan::RecurrentPlan& plan) {
  RecurrentKernel(context, composite, *plan::find_recurrent(composite), plan).emit();
}

} // namespace firn::lower
