// See recurrent_cell.h.
#include "compiler/lower/recurrent/recurrent_cell.h"

namespace firn::lower {
namespace {

using kernel::OpKind;

// The elementwise code of one sweep as a region on vectors of [hidden], whose parameters are bound to values.
class CellBody {
public:
  CellBody(kernel::Builder& b, const Lanes& lanes, int64_t hidden)
      : module_("cell"), type_(Type::tensor(DType::F32, {hidden})),
        region_(module_.add_function("cell").body()), emitter_(b, lanes) {}

  firn::GraphBuilder builder() { return firn::GraphBuilder(region_); }
  Value bind(kernel::Register made) {
    Value parameter = region_.add_parameter(type_)->result();
    rebind(parameter, made);
    return parameter;
  }
  void rebind(Value value, kernel::Register made) {
    emitter_.bind(value, [made](const Index&, const Lanes&) { return made; });
  }
  kernel::Register compute(Value value) { return emitter_.emit(value, {0}); }

private:
  Module module_;
  Type type_;
  Region& region_;
  ElementEmitter emitter_;
};

} // namespace

RecurrentCells::RecurrentCells(kernel::Builder& builder, const RecurrentLayer& layer,
                               const plan::RecurrentDivision& plan, const RecurrentBuffers& buffers)
    : b_(builder), layer_(layer), plan_(plan), units_(plan.units), buffers_(buffers) {
  if (units_.lanes > 1)
    lanes_ = {std::make_shared<Symbol>(Symbol{"unit", 0, units_.lanes - 1}), 0, units_.lanes};
}

kernel::Register RecurrentCells::load(const RecurrentTile& tile, int vector, int buffer,
                                      const IntExpr& index) {
  if (!is_partial(tile, vector)) return b_.load(vector_type(), buffer, index);
  return b_.load_masked(vector_type(), buffer, index, b_.lane_mask(units_.lanes, tile.last_lanes),
                        b_.constant(vector_type(), 0));
}

void RecurrentCells::store(const RecurrentTile& tile, kernel::Register value, int buffer,
                           const IntExpr& index) {
  if (!is_partial(tile, 0)) return b_.store(value, buffer, index);
  b_.store_masked(value, buffer, index, b_.lane_mask(units_.lanes, tile.last_lanes));
}

void RecurrentCells::emit(const RecurrentTile& tile, const Accumulators& accumulators) {
  if (!plan_.rolled_cells || tile.rows * tile.vectors == 1) return emit_unrolled(tile, accumulators);
  if (accumulators_ < 0) {
    size_t max = 0;
    for (const plan::Sweep& sweep : plan_.sweeps) max = std::max(max, sweep.accumulators.size());
    accumulators_ = b_.add_scratch("sums", kernel::Scalar::F32,
                                   static_cast<int64_t>(max) * plan_.rows * units_.vectors * units_.lanes);
  }
  for (size_t i = 0; i < accumulators.size(); ++i)
    b_.store(accumulators[i], accumulators_, static_cast<int64_t>(i) * units_.lanes, units_.lanes * 4);
  if (layer_.kind != RecurrentKind::Lstm) return emit_part(tile, accumulators, Part::All);
  emit_part(tile, accumulators, Part::Entering);
  emit_part(tile, accumulators, Part::Inner);
  emit_part(tile, accumulators, Part::Shown);
}

// Emits the cells one after the other, with their sums in registers.
void RecurrentCells::emit_unrolled(const RecurrentTile& tile, const Accumulators& accumulators) {
  auto cells = static_cast<size_t>(tile.rows * tile.vectors);
  for (int row = 0; row < tile.rows; ++row)
    for (int vector = 0; vector < tile.vectors; ++vector) {
      Accumulators cell;
      for (auto at = static_cast<size_t>(row * tile.vectors + vector); at < accumulators.size(); at += cells)
        cell.push_back(accumulators[at]);
      int last_lanes = is_partial(tile, vector) ? tile.last_lanes : units_.lanes;
      emit_cell({tile.at, tile.sweep, tile.row + row, 1, tile.first + vector, 1, last_lanes}, cell,
                Part::All);
    }
}

// Emits a loop over the cells of a tile whose sums are in memory.
void RecurrentCells::emit_part(const RecurrentTile& tile, const Accumulators& accumulators, Part part) {
  int64_t sum_elements =
      static_cast<int64_t>(accumulators.size() / sweep_of(tile).accumulators.size()) * units_.lanes;
  auto emit_one = [&](const IntExpr& row, const IntExpr& vector, int last_lanes) {
    Accumulators cell;
    for (size_t sum = 0; sum < sweep_of(tile).accumulators.size(); ++sum) {
      last_accumulator_at_ =
          (row * tile.vectors + vector) * units_.lanes + static_cast<int64_t>(sum) * sum_elements;
      cell.push_back(b_.load(vector_type(), accumulators_, last_accumulator_at_, units_.lanes * 4));
    }
    emit_cell({tile.at, tile.sweep, tile.row + row, 1, tile.first + vector, 1, last_lanes}, cell, part);
  };
  int whole = tile.vectors - (is_partial(tile, tile.vectors - 1) ? 1 : 0);
  b_.loop(0, tile.rows, 1, [&](const IntExpr& row) {
    b_.loop(0, whole, 1, [&](const IntExpr& vector) { emit_one(row, vector, units_.lanes); });
    if (whole < tile.vectors) emit_one(row, whole, tile.last_lanes);
  });
}

// Emits a cell, or a part of one: `tile` has one row and one vector.
void RecurrentCells::emit_cell(const RecurrentTile& tile, const Accumulators& accumulators, Part part) {
  IntExpr unit = tile.first * units_.lanes, element = tile.row * layer_.hidden + unit;
  if (buffers_.gates >= 0 && (part == Part::All || part == Part::Entering))
    store_sums(tile, accumulators, unit);
  if (sweep_of(tile).gates_reset) return emit_reset(tile, accumulators, element);
  if (layer_.kind == RecurrentKind::Lstm) return emit_lstm(tile, accumulators, unit, part);
  CellBody body(b_, lanes_, layer_.hidden);
  firn::GraphBuilder g = body.builder();
  RecurrentCell cell(g, layer_.kind, layer_.options);
  if (layer_.kind == RecurrentKind::Rnn)
    return store_states(tile, element, body.compute(cell.rnn(body.bind(accumulators[0]))));
  Value z, candidate;
  if (sweep_of(tile).reads_reset_state) {
    z = body.bind(load(tile, 0, buffers_.z, element));
    candidate = body.bind(accumulators[0]);
  } else {
    z = cell.gru_gate(body.bind(accumulators[0]));
    Value inner =
        g.binary(Opcode::Add, body.bind(accumulators[3]), body.bind(load(tile, 0, buffers_.b_r, unit)));
    candidate = g.binary(Opcode::Add, body.bind(accumulators[2]),
                         g.binary(Opcode::Multiply, cell.gru_gate(body.bind(accumulators[1])), inner));
  }
  Value old_h = body.bind(load(tile, 0, tile.at.old_buffer, tile.at.old_state + element));
  store_states(tile, element, body.compute(cell.gru(z, candidate, old_h)));
}

void RecurrentCells::emit_lstm(const RecurrentTile& tile, const Accumulators& accumulators,
                               const IntExpr& unit, Part part) {
  IntExpr element = tile.row * layer_.hidden + unit;
  CellBody body(b_, lanes_, layer_.hidden);
  firn::GraphBuilder g = body.builder();
  std::vector<Value> peepholes;
  for (int i = 0; buffers_.peepholes >= 0 && i < 3; ++i)
    peepholes.push_back(body.bind(load(tile, 0, buffers_.peepholes, unit + i * layer_.hidden)));
  int old_buffer = layer_.steps() == IntExpr(1) ? buffers_.c0 : buffers_.c;
  kernel::Register old_c;
  if (part != Part::Shown) old_c = load(tile, 0, old_buffer, element);
  auto next = RecurrentCell(g, layer_.kind, layer_.options)
                  .lstm({body.bind(accumulators[0]), body.bind(accumulators[1]), body.bind(accumulators[2]),
                         body.bind(accumulators[3])},
                        body.bind(old_c), peepholes);
  // The entering value waits in the place of its candidate's sum.
  Value entering = next.c.def->operand(1);
  if (part == Part::Entering)
    return b_.store(body.compute(entering), accumulators_, last_accumulator_at_, units_.lanes * 4);
  if (part == Part::Inner) body.rebind(entering, accumulators[3]);
  if (part == Part::Shown) {
    body.rebind(next.c, load(tile, 0, buffers_.c, element));
  } else {
    kernel::Register c = body.compute(next.c);
    if (buffers_.lens >= 0) c = b_.select(is_valid(tile), c, old_c);
    store(tile, c, buffers_.c, element);
    if (buffers_.cells >= 0)
      store(tile, c, buffers_.cells, tile.at.time * (layer_.batch() * layer_.hidden) + element);
  }
  if (part != Part::Inner) store_states(tile, element, body.compute(next.h));
}

// Computes the input of a gru's second sweep: z and r * h.
void RecurrentCells::emit_reset(const RecurrentTile& tile, const Accumulators& accumulators,
                                const IntExpr& element) {
  CellBody body(b_, lanes_, layer_.hidden);
  firn::GraphBuilder g = body.builder();
  RecurrentCell cell(g, layer_.kind, layer_.options);
  Value z = cell.gru_gate(body.bind(accumulators[0])), r = cell.gru_gate(body.bind(accumulators[1]));
  store(tile, body.compute(z), buffers_.z, element);
  Value old_h = body.bind(load(tile, 0, tile.at.old_buffer, tile.at.old_state + element));
  store(tile, body.compute(g.binary(Opcode::Multiply, r, old_h)), buffers_.reset, element);
}

// Stores what enters the gates; a gru's second sweep has the last of its sums.
void RecurrentCells::store_sums(const RecurrentTile& tile, const Accumulators& accumulators,
                                const IntExpr& unit) {
  IntExpr row = (tile.at.time * layer_.batch() + tile.row) * (layer_.sums * layer_.hidden) + unit;
  int64_t first = sweep_of(tile).reads_reset_state ? layer_.sums - 1 : 0;
  for (size_t sum = 0; sum < accumulators.size(); ++sum)
    store(tile, accumulators[sum], buffers_.gates, row + (first + static_cast<int64_t>(sum)) * layer_.hidden);
}

// Whether the batch entry is within its length; beyond it, the entry keeps its state and gives zeros.
kernel::Register RecurrentCells::is_valid(const RecurrentTile& tile) {
  kernel::Register length = b_.cast(
      OpKind::IndexCast, b_.load({kernel::Scalar::I32, 1}, buffers_.lens, tile.row), kernel::Scalar::Index);
  return b_.compare(OpKind::SCmp, kernel::Predicate::Lt, b_.index(tile.at.time), length);
}

void RecurrentCells::store_states(const RecurrentTile& tile, const IntExpr& element, kernel::Register h) {
  kernel::Register y = h;
  if (buffers_.lens >= 0) {
    kernel::Register valid = is_valid(tile);
    y = b_.select(valid, h, b_.constant(vector_type(), 0));
    h = b_.select(valid, h, load(tile, 0, tile.at.old_buffer, tile.at.old_state + element));
  }
  if (buffers_.y >= 0) store(tile, y, buffers_.y, tile.at.time * (layer_.batch() * layer_.hidden) + element);
  store(tile, h, tile.at.new_buffer, tile.at.new_state + element);
}

} // namespace firn::lower
