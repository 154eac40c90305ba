// Recurrent layers as one kernel per direction: the loop over time is inside, and a step computes all gates
// of a block of hidden units in registers, from the packed weights to the new state. The input's products
// come from a dot of their own over the whole sequence (project-recurrent-inputs), or are computed by the
// same kernel.
#include "compiler/graph/recurrent_cells.h"
#include "compiler/lower/element_emitter.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/panel_product.h"
#include "compiler/lower/recurrent_plan.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;

// The elementwise code of one sweep as a region on vectors of [hidden].
class CellBody {
public:
  explicit CellBody(int64_t hidden) : module_("cell"), type_(Type::tensor(DType::F32, {hidden})) {
    region_ = &module_.add_function("cell").body();
  }
  Value parameter() { return region_->add_parameter(type_)->result(); }
  firn::Builder builder() { return firn::Builder(*region_); }

private:
  Module module_;
  Type type_;
  Region* region_;
};

bool is_plain_f32(Value value) {
  const Type& type = value.type();
  return type.is_static() && type.dtype == DType::F32 && type.layout.is_plain() && type.num_elements() > 0;
}

class RecurrentKernel {
public:
  RecurrentKernel(LoweringContext& context, const Instruction& composite, RecurrentLayer layer)
      : context_(context), composite_(composite), layer_(std::move(layer)),
        maker_(context, composite, composite.word("name")), b_(maker_.builder()),
        plan_(plan_recurrence(layer_, context.target(), context.options().optimize_size)),
        units_(plan_.units), sweeps_(plan_.sweeps), hidden_(layer_.hidden), steps_(layer_.operands.x.dim(0)),
        batch_(layer_.operands.x.dim(1)) {
    if (units_.lanes > 1)
      lanes_ = {std::make_shared<Symbol>(Symbol{"unit", 0, units_.lanes - 1}), 0, units_.lanes};
  }

  void emit() {
    bind_buffers();
    if (steps_ > 1) {
      copy(h0_, 0, state_, 0);
      if (is_lstm()) copy(c0_, 0, c_, 0);
    }
    emit_steps();
    if (steps_ > 1) copy(state_, steps_ % 2 * batch_ * hidden_, y_h_, 0);
    maker_.set_flops(2 * steps_ * batch_ * layer_.gates * hidden_ *
                     (hidden_ + (layer_.projected() ? 0 : inputs())));
    maker_.finish();
  }

private:
  bool is_lstm() const { return layer_.kind == RecurrentKind::Lstm; }
  int64_t inputs() const { return layer_.operands.x.dim(2); }

  void bind_buffers() {
    const RecurrentOperands& o = layer_.operands;
    for (const Sweep& sweep : sweeps_) {
      std::vector<int> input, recurrent;
      for (const GateSum& sum : sweep.sums) {
        if (sum.input >= 0 && !layer_.projected()) input.push_back(sum.input);
        if (sum.recurrent >= 0) recurrent.push_back(sum.recurrent);
      }
      input_panels_.push_back(bind_panels(o.w, input, layer_.projected() ? 1 : inputs()));
      recurrent_panels_.push_back(bind_panels(o.r, recurrent, hidden_));
    }
    int64_t weight_bytes = 0;
    for (const auto* list : {&input_panels_, &recurrent_panels_})
      for (const BoundPanels& bound : *list)
        if (bound.buffer >= 0) weight_bytes += bound.panels.elements() * 4;
    const TargetMachine& target = context_.target();
    fetches_ahead_ = weight_bytes > target.l2_bytes * 3 / 4;
    turns_ = steps_ > 2 && weight_bytes > target.l1_bytes && !context_.options().optimize_size;
    x_ = maker_.read(o.x);
    if (o.b) bias_ = maker_.read(o.b);
    h0_ = maker_.read(o.h0);
    if (o.c0) c0_ = maker_.read(o.c0);
    if (o.peepholes) peepholes_ = maker_.read(o.peepholes);
    if (o.b_r) b_r_ = maker_.read(o.b_r);
    if (o.lens) lens_ = maker_.read(o.lens);
    if (const_cast<Instruction&>(composite_).num_uses(0) > 0) y_ = maker_.write(result_of(composite_, 0));
    y_h_ = maker_.write(result_of(composite_, 1));
    if (is_lstm()) c_ = maker_.write(result_of(composite_, 2));
    allow_states_in_place();
    state_ = y_h_;
    if (steps_ > 1) state_ = scratch(2 * batch_ * hidden_, "state");
    if (sweeps_.size() > 1) {
      z_ = scratch(batch_ * hidden_, "update");
      reset_ = scratch(batch_ * hidden_, "reset");
    }
  }

  // A unit's c is read before it is written. The old h is read by all units of a step: it may be written over
  // only by what is copied when all steps are done.
  void allow_states_in_place() {
    if (is_lstm() && c0_ != h0_ && c0_ != x_) maker_.allow_in_place(c_, c0_);
    if (steps_ > 1 && h0_ != c0_ && h0_ != x_) maker_.allow_in_place(y_h_, h0_);
  }

  int scratch(int64_t elements, const char* name) {
    Place place{context_.add_scratch_buffer(elements * 4, name), 0};
    return maker_.parameter(place, kernel::Scalar::F32, elements, true, name);
  }

  struct BoundPanels {
    GatePanels panels;
    int buffer = -1;
  };
  BoundPanels bind_panels(Value weights, const std::vector<int>& gates, int64_t reduction) {
    BoundPanels bound{{units_, gates, reduction}, -1};
    if (gates.empty()) return bound;
    int64_t elements = bound.panels.elements();
    Place place;
    if (weights.def->is(Opcode::Constant) && !weights.def->literal()->is_opaque()) {
      auto fill = [literal = weights.def->literal(), panels = bound.panels](std::span<std::byte> out) {
        pack_gates(panels, literal->bytes(), out);
      };
      place = {context_.add_constant(elements * 4, fill, weights.def->location()), 0};
    } else {
      place = {context_.add_scratch_buffer(elements * 4, "packed"), 0};
      KernelMaker packing(context_, composite_, "pack");
      int from = packing.read(weights);
      int to = packing.parameter(place, kernel::Scalar::F32, elements, true, "packed");
      emit_pack_gates(packing.builder(), bound.panels, from, to);
      packing.finish();
    }
    bound.buffer = maker_.parameter(place, kernel::Scalar::F32, elements, false, "packed");
    maker_.kernel().bytes += elements * 4;
    return bound;
  }

  void copy(int from, int64_t from_offset, int to, int64_t to_offset) {
    int64_t count = batch_ * hidden_, lanes = std::min<int64_t>(units_.lanes, count);
    auto move = [&](const IntExpr& at, int64_t width) {
      b_.store(b_.load({kernel::Scalar::F32, static_cast<int>(width)}, from, at + from_offset), to,
               at + to_offset);
    };
    b_.loop(0, count / lanes, 1, [&](const IntExpr& i) { move(i * lanes, lanes); });
    b_.loop(count / lanes * lanes, count, 1, [&](const IntExpr& i) { move(i, 1); });
  }

  // What one step reads and writes.
  struct StepPlaces {
    IntExpr time;
    bool is_back; // reads the weights from the end to the start
    int old_buffer, new_buffer;
    IntExpr old_state, new_state;
  };

  // With turns every other step reads the weights from the end to the start: what the step before read last
  // is in the nearest cache still.
  void emit_steps() {
    if (!turns_) return b_.loop(0, steps_, 1, [&](const IntExpr& step) { emit_step(step, false); });
    b_.loop(0, steps_ / 2, 1, [&](const IntExpr& pair) {
      emit_step(pair * 2, false);
      emit_step(pair * 2 + 1, true);
    });
    if (steps_ % 2 != 0) emit_step(steps_ - 1, false);
  }

  void emit_step(const IntExpr& step, bool is_back) {
    int64_t size = batch_ * hidden_;
    StepPlaces at;
    at.time = layer_.options.reverse ? IntExpr(steps_ - 1) - step : step;
    at.is_back = is_back;
    at.old_buffer = steps_ > 1 ? state_ : h0_;
    at.new_buffer = state_;
    at.old_state = steps_ > 1 ? floor_mod(step, 2) * size : IntExpr(0);
    at.new_state = steps_ > 1 ? IntExpr(size) - floor_mod(step, 2) * size : IntExpr(0);
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
    int64_t tiles = batch_ / plan_.rows;
    b_.loop(0, tiles, 1, [&](const IntExpr& tile) {
      emit_tile({at, sweep, tile * plan_.rows, plan_.rows, first, vectors, last_lanes});
    });
    if (int rest = static_cast<int>(batch_ % plan_.rows); rest > 0)
      emit_tile({at, sweep, tiles * plan_.rows, rest, first, vectors, last_lanes});
  }

  // Some batch entries and one block of units, of one sweep of a step.
  struct Tile {
    const StepPlaces& at;
    size_t sweep;
    IntExpr row;
    int rows;
    IntExpr first; // vector
    int vectors, last_lanes;
  };

  // The sums of a tile: [sum][row][vector].
  using Sums = std::vector<kernel::Value>;
  static size_t place(const Tile& tile, size_t sum, int row, int vector) {
    return (sum * static_cast<size_t>(tile.rows) + static_cast<size_t>(row)) *
               static_cast<size_t>(tile.vectors) +
           static_cast<size_t>(vector);
  }

  void emit_tile(const Tile& tile) {
    const Sweep& sweep = sweeps_[tile.sweep];
    Sums sums = first_sums(tile);
    if (!layer_.projected()) {
      std::vector<size_t> with_input;
      for (size_t s = 0; s < sweep.sums.size(); ++s)
        if (sweep.sums[s].input >= 0) with_input.push_back(s);
      accumulate(tile, input_panels_[tile.sweep], with_input, x_, tile.at.time * (batch_ * inputs()), sums);
    }
    std::vector<size_t> with_state;
    for (size_t s = 0; s < sweep.sums.size(); ++s)
      if (sweep.sums[s].recurrent >= 0) with_state.push_back(s);
    accumulate(tile, recurrent_panels_[tile.sweep], with_state,
               sweep.reads_reset_state ? reset_ : tile.at.old_buffer,
               sweep.reads_reset_state ? IntExpr(0) : tile.at.old_state, sums);
    for (int row = 0; row < tile.rows; ++row)
      for (int vector = 0; vector < tile.vectors; ++vector) emit_cell(tile, row, vector, sums);
  }

  // The input's part of the gates where it is known, else the bias.
  Sums first_sums(const Tile& tile) {
    const Sweep& sweep = sweeps_[tile.sweep];
    Sums sums;
    for (const GateSum& sum : sweep.sums)
      for (int row = 0; row < tile.rows; ++row)
        for (int vector = 0; vector < tile.vectors; ++vector) {
          IntExpr unit = (tile.first + vector) * units_.lanes;
          if (sum.input < 0)
            sums.push_back(b_.constant(vector_type(), 0));
          else if (layer_.projected())
            sums.push_back(
                load(tile, vector, x_,
                     ((tile.at.time * batch_ + tile.row + row) * layer_.gates + sum.input) * hidden_ + unit));
          else
            sums.push_back(load(tile, vector, bias_, unit + sum.input * hidden_));
        }
    return sums;
  }

  // Adds panel times source[row][k] to the sums listed.
  void accumulate(const Tile& tile, const BoundPanels& bound, const std::vector<size_t>& listed, int source,
                  const IntExpr& source_offset, Sums& sums) {
    Sums listed_sums;
    for (size_t sum : listed)
      for (int row = 0; row < tile.rows; ++row)
        for (int vector = 0; vector < tile.vectors; ++vector)
          listed_sums.push_back(sums[place(tile, sum, row, vector)]);
    PanelProduct product{bound.panels, bound.buffer,    tile.first,
                         tile.vectors, source,          source_offset + tile.row * bound.panels.reduction,
                         tile.rows,    tile.at.is_back, fetches_ahead_};
    listed_sums = add_panel_product(b_, context_.target(), product, std::move(listed_sums));
    size_t next = 0;
    for (size_t sum : listed)
      for (int row = 0; row < tile.rows; ++row)
        for (int vector = 0; vector < tile.vectors; ++vector)
          sums[place(tile, sum, row, vector)] = listed_sums[next++];
  }

  kernel::Type vector_type() const { return {kernel::Scalar::F32, units_.lanes}; }
  bool is_partial(const Tile& tile, int vector) const {
    return vector + 1 == tile.vectors && tile.last_lanes < units_.lanes;
  }
  kernel::Value load(const Tile& tile, int vector, int buffer, const IntExpr& index) {
    if (!is_partial(tile, vector)) return b_.load(vector_type(), buffer, index);
    return b_.load_masked(vector_type(), buffer, index, b_.lane_mask(units_.lanes, tile.last_lanes),
                          b_.constant(vector_type(), 0));
  }
  void store(const Tile& tile, int vector, kernel::Value value, int buffer, const IntExpr& index) {
    if (!is_partial(tile, vector)) return b_.store(value, buffer, index);
    b_.store_masked(value, buffer, index, b_.lane_mask(units_.lanes, tile.last_lanes));
  }

  // The gates' sums become new states.
  void emit_cell(const Tile& tile, int row, int vector, const Sums& sums) {
    const Sweep& sweep = sweeps_[tile.sweep];
    IntExpr unit = (tile.first + vector) * units_.lanes;
    IntExpr element = (tile.row + row) * hidden_ + unit;
    auto sum = [&](size_t s) { return sums[place(tile, s, row, vector)]; };
    auto old_h = [&] { return load(tile, vector, tile.at.old_buffer, tile.at.old_state + element); };
    int old_c_buffer = steps_ > 1 ? c_ : c0_;

    CellBody body(hidden_);
    firn::Builder g = body.builder();
    RecurrentCell cell(g, layer_.kind, layer_.options);
    ElementEmitter emitter(b_, lanes_);
    auto bind = [&](kernel::Value made) {
      Value parameter = body.parameter();
      emitter.bind(parameter, [made](const Index&, const Lanes&) { return made; });
      return parameter;
    };
    auto compute = [&](Value value) { return emitter.emit(value, {0}); };

    if (sweep.gates_reset) {
      Value z = cell.gru_gate(bind(sum(0))), r = cell.gru_gate(bind(sum(1)));
      store(tile, vector, compute(z), z_, element);
      store(tile, vector, compute(g.binary(Opcode::Multiply, r, bind(old_h()))), reset_, element);
      return;
    }
    kernel::Value h, c, old_c;
    if (is_lstm()) {
      std::vector<Value> peepholes;
      for (int i = 0; peepholes_ >= 0 && i < 3; ++i)
        peepholes.push_back(bind(load(tile, vector, peepholes_, unit + i * hidden_)));
      old_c = load(tile, vector, old_c_buffer, element);
      auto next = cell.lstm({bind(sum(0)), bind(sum(1)), bind(sum(2)), bind(sum(3))}, bind(old_c), peepholes);
      c = compute(next.c);
      h = compute(next.h);
    } else if (layer_.kind == RecurrentKind::Rnn) {
      h = compute(cell.rnn(bind(sum(0))));
    } else {
      Value z, candidate;
      if (sweep.reads_reset_state) {
        z = bind(load(tile, vector, z_, element));
        candidate = bind(sum(0));
      } else {
        z = cell.gru_gate(bind(sum(0)));
        Value inner = g.binary(Opcode::Add, bind(sum(3)), bind(load(tile, vector, b_r_, unit)));
        candidate = g.binary(Opcode::Add, bind(sum(2)),
                             g.binary(Opcode::Multiply, cell.gru_gate(bind(sum(1))), inner));
      }
      h = compute(cell.gru(z, candidate, bind(old_h())));
    }
    kernel::Value y = h;
    if (lens_ >= 0) { // beyond its length an entry keeps its state and gives zeros
      kernel::Value length = b_.cast(
          OpKind::IndexCast, b_.load({kernel::Scalar::I32, 1}, lens_, tile.row + row), kernel::Scalar::Index);
      kernel::Value valid = b_.compare(OpKind::SCmp, kernel::Predicate::Lt, b_.index(tile.at.time), length);
      y = b_.select(valid, h, b_.constant(vector_type(), 0));
      h = b_.select(valid, h, old_h());
      if (is_lstm()) c = b_.select(valid, c, old_c);
    }
    if (y_ >= 0) store(tile, vector, y, y_, tile.at.time * (batch_ * hidden_) + element);
    store(tile, vector, h, tile.at.new_buffer, tile.at.new_state + element);
    if (is_lstm()) store(tile, vector, c, c_, element);
  }

  LoweringContext& context_;
  const Instruction& composite_;
  RecurrentLayer layer_;
  KernelMaker maker_;
  Builder& b_;
  RecurrentPlan plan_;
  const UnitBlocks& units_;
  const std::vector<Sweep>& sweeps_;
  int64_t hidden_, steps_, batch_;
  bool fetches_ahead_ = false, turns_ = false;
  std::vector<BoundPanels> input_panels_, recurrent_panels_; // by sweep
  // Parameters; `state_` holds old and new h, in turn, or is y_h where there is one step.
  int x_ = -1, bias_ = -1, h0_ = -1, c0_ = -1, peepholes_ = -1, b_r_ = -1, lens_ = -1;
  int y_ = -1, y_h_ = -1, c_ = -1, state_ = -1, z_ = -1, reset_ = -1;
  Lanes lanes_;
};

} // namespace

bool has_recurrent_form(const Instruction& composite) {
  auto layer = read_recurrent(composite);
  if (!layer) return false;
  const RecurrentOperands& o = layer->operands;
  for (Value value : {o.x, o.w, o.r, o.b, o.h0, o.c0, o.peepholes, o.b_r})
    if (value && !is_plain_f32(value)) return false;
  for (int i = 0; i < composite.num_results(); ++i)
    if (!composite.type(i).layout.is_plain()) return false;
  return !o.lens || o.lens.dtype() == DType::I32;
}

Expected<bool> emit_recurrence(LoweringContext& context, const Instruction& composite) {
  if (!has_recurrent_form(composite)) return false;
  RecurrentKernel(context, composite, *read_recurrent(composite)).emit();
  return true;
}

} // namespace firn::lower
