// Motifs of recurrent layers.
#include "tests/random/motifs.h"

namespace firn::test {
namespace {

std::string recurrent(Growth& g) {
  std::string x = g.random.chance(0.5) ? g.float_of_rank(3) : "";
  DType dtype = g.random.pick({DType::F32, DType::F32, DType::F32, DType::F16, DType::F64});
  if (x.empty() || g.dims(x)[0] > 12 || g.literal(x).num_elements() > 2000)
    x = g.input(g.draw_literal(dtype, {g.random.between(1, 7), g.random.pick({1, 1, 2, 3}), g.draw_dim()}));
  dtype = g.dtype(x);
  if (dtype == DType::BF16) return "";
  struct Cell {
    const char* op;
    int64_t gates;
  };
  Cell cell = g.random.pick<Cell>(std::vector<Cell>{{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}});
  int64_t hidden = g.random.pick({1, 3, 5, 8, 11, 16, 17, 24});
  const char* direction = g.random.pick({"forward", "forward", "reverse", "bidirectional"});
  int64_t directions = std::string(direction) == "bidirectional" ? 2 : 1;
  int64_t time = g.dims(x)[0], batch = g.dims(x)[1], width = g.dims(x)[2];
  bool is_narrow = dtype == DType::F32 && g.random.chance(0.3);
  auto weights = [&](int64_t steps) {
    Dims dims{directions, cell.gates * hidden, steps};
    return is_narrow ? dequantized_weights(g, dims, 1) : g.weights(dtype, dims);
  };
  Names operands{x, weights(width)};
  operands.push_back(weights(hidden));
  operands.push_back(g.random.chance(0.7) ? g.weights(dtype, {directions, 2 * cell.gates * hidden})
                                          : Growth::kAbsent);
  std::string lengths = Growth::kAbsent;
  if (g.random.chance(0.25)) {
    auto literal = std::make_shared<Literal>(DType::I32, Dims{batch});
    for (int64_t i = 0; i < batch; ++i) literal->set_int(i, g.random.between(1, time));
    lengths = g.random.chance(0.5) ? g.constant(literal) : g.input(literal);
  }
  operands.push_back(lengths);
  bool has_state = g.random.chance(0.5);
  operands.push_back(has_state ? g.fresh(dtype, {directions, batch, hidden}) : Growth::kAbsent);
  std::vector<Message> attributes{attribute("hidden_size", hidden), attribute_text("direction", direction)};
  bool lstm = cell.gates == 4;
  if (lstm) {
    operands.push_back(has_state ? g.fresh(dtype, {directions, batch, hidden}) : Growth::kAbsent);
    if (g.random.chance(0.15)) operands.push_back(g.weights(dtype, {directions, 3 * hidden}));
  }
  if (cell.gates == 3) attributes.push_back(attribute("linear_before_reset", g.random.between(0, 1)));
  return g.add_many(cell.op, operands, lstm ? 3 : 2, attributes)[0];
}

} // namespace

std::span<const Motif> recurrent_motifs() {
  static constexpr Motif motifs[] = {{"recurrent", 4, recurrent}};
  return motifs;
}

} // namespace firn::test
