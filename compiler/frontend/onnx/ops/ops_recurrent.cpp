// Importers of LSTM, GRU and RNN: each direction becomes one composite.
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/import_context.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/movement_operators.h"
#include "compiler/frontend/onnx/ops/quantization_operators.h"
#include "compiler/graph/recurrent_cells.h"

#include <algorithm>

namespace firn::onnx {

namespace {

enum class Cell { Lstm, Gru, Rnn };

// The node's form after its checks, in layout 0.
struct Recurrent {
  Cell cell;
  int gates;     // weights per hidden unit
  int functions; // activations per direction
  int64_t directions = 1, hidden = 0;
  bool reverse = false; // whether the first direction runs backwards
  bool batch_first = false;
  bool quantized = false; // weights are integers [direction, in, gates * h], as a product takes them
  Value x;                // [seq, batch, in]
  RecurrentOptions options[2];
};

// Default parameters of an activation; both 0 if it has none.
void default_parameters(const std::string& name, double& alpha, double& beta) {
  alpha = name == "leakyrelu" ? 0.01f : name == "hardsigmoid" ? 0.2f : 0;
  alpha = name == "elu" || name == "thresholdedrelu" || name == "affine" || name == "scaledtanh" ? 1 : alpha;
  beta = name == "hardsigmoid" ? 0.5 : name == "scaledtanh" ? 1 : 0;
}
bool takes_alpha(const std::string& name) {
  return name == "affine" || name == "leakyrelu" || name == "thresholdedrelu" || name == "scaledtanh" ||
         name == "hardsigmoid" || name == "elu";
}
bool takes_beta(const std::string& name) {
  return name == "affine" || name == "scaledtanh" || name == "hardsigmoid";
}

// Activations of all directions; activation_alpha and activation_beta list numbers only for activations that
// take them.
bool read_activations(NodeContext& node, Recurrent& layer) {
  std::vector<std::string> names = node.strings_attribute("activations");
  if (names.empty()) return true;
  std::vector<double> alphas = node.floats_attribute("activation_alpha"),
                      betas = node.floats_attribute("activation_beta");
  size_t wanted = static_cast<size_t>(layer.functions) * static_cast<size_t>(layer.directions);
  // The schema's default lists two activations even for one direction.
  if (names.size() > wanted && layer.cell == Cell::Rnn) names.resize(wanted);
  if (!node.check(names.size() == wanted, "attribute activations has " + std::to_string(names.size()) +
                                              " names, wants " + std::to_string(wanted)))
    return false;
  static constexpr const char* kDefaults[][3] = {
      {"sigmoid", "tanh", "tanh"}, {"sigmoid", "tanh", ""}, {"tanh", "", ""}};
  size_t next_alpha = 0, next_beta = 0;
  for (size_t direction = 0; direction < static_cast<size_t>(layer.directions); ++direction) {
    RecurrentOptions& options = layer.options[direction];
    bool all_default = true;
    for (size_t i = 0; i < static_cast<size_t>(layer.functions); ++i) {
      std::string name = names[direction * static_cast<size_t>(layer.functions) + i];
      std::transform(name.begin(), name.end(), name.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
      if (!node.check(is_recurrent_activation(name),
                      "attribute activations has the unknown name '" + name + "'"))
        return false;
      double alpha, beta;
      default_parameters(name, alpha, beta);
      if (takes_alpha(name) && next_alpha < alphas.size()) alpha = alphas[next_alpha++];
      if (takes_beta(name) && next_beta < betas.size()) beta = betas[next_beta++];
      all_default &= name == kDefaults[static_cast<int>(layer.cell)][i];
      options.activations.push_back(name);
      options.alpha.push_back(alpha);
      options.beta.push_back(beta);
    }
    if (!all_default) continue;
    options.activations.clear();
    options.alpha.clear();
    options.beta.clear();
  }
  return true;
}

bool read_layer(NodeContext& node, Recurrent& layer) {
  if (!node.check_rank(0, 3) || !node.check_rank(1, 3) || !node.check_rank(2, 3)) return false;
  layer.batch_first = node.opset() >= 14 && node.flag_attribute("layout", false);
  std::string direction =
      node.choice_attribute("direction", "forward", {"forward", "reverse", "bidirectional"});
  layer.directions = direction == "bidirectional" ? 2 : 1;
  auto w = node.static_dims(1), r = node.static_dims(2);
  auto features = node.static_dim(0, 2);
  if (!w || !r || !features || node.failed()) return false;
  layer.hidden = (*r)[layer.quantized ? 1 : 2];
  if (!node.check(node.int_attribute("hidden_size", layer.hidden) == layer.hidden,
                  "attribute hidden_size is " + std::to_string(node.int_attribute("hidden_size", 0)) + ", " +
                      node.input_label(2) + " has " + std::to_string(layer.hidden)) ||
      !node.check(layer.hidden > 0, node.input_label(2) + " has hidden size 0"))
    return false;
  int64_t gates = layer.gates * layer.hidden;
  Ints w_dims{layer.directions, gates, *features}, r_dims{layer.directions, gates, layer.hidden};
  if (layer.quantized) std::swap(w_dims[1], w_dims[2]), std::swap(r_dims[1], r_dims[2]);
  if (!node.check_dims(1, w_dims) || !node.check_dims(2, r_dims) ||
      (node.has_input(3) && !node.check_dims(3, {layer.directions, 2 * gates})))
    return false;
  double clip = node.has_attribute("clip") ? node.float_attribute("clip", 0) : 0;
  if (!node.check(clip >= 0, "attribute clip is negative") || !read_activations(node, layer)) return false;
  for (int64_t d = 0; d < layer.directions; ++d) {
    layer.options[d].reverse = d == 1 || direction == "reverse";
    layer.options[d].clip = clip;
    layer.options[d].input_forget = layer.cell == Cell::Lstm && node.flag_attribute("input_forget", false);
    layer.options[d].linear_before_reset =
        layer.cell == Cell::Gru && node.flag_attribute("linear_before_reset", false);
  }
  layer.x = layer.batch_first ? node.transpose(node.input(0), {1, 0, 2}) : node.input(0);
  return !node.failed();
}

// Row `direction` of an input whose dim 0 counts directions.
Value row(NodeContext& node, Value value, int64_t direction) {
  return node.squeeze(node.slice_dim(value, 0, direction, direction + 1), 0);
}

// The first state [batch, h] of a direction: input number `input`, or zeros.
Value first_state(NodeContext& node, const Recurrent& layer, int input, int64_t direction) {
  std::vector<Dim> dims{layer.x.type().dims[1], Dim(layer.hidden)};
  if (!node.has_input(input)) return node.splat(layer.x.dtype(), dims, 0);
  std::vector<Dim> wanted{Dim(layer.directions), dims[0], dims[1]};
  if (layer.batch_first) std::swap(wanted[0], wanted[1]);
  Value states = input_with_extents(node, input, wanted);
  if (layer.batch_first) states = node.transpose(states, {1, 0, 2});
  return row(node, states, direction);
}

// The bias [gates * h], the sum of the input's and the recurrent one. If `apart` is given, the last gate's
// recurrent bias is not added but stored in *apart.
Value bias(NodeContext& node, const Recurrent& layer, int64_t direction, Value* apart) {
  int64_t gates = layer.gates * layer.hidden, h = layer.hidden;
  DType dtype = layer.x.dtype();
  if (!node.has_input(3)) {
    if (apart) *apart = node.splat(dtype, {Dim(h)}, 0);
    return node.splat(dtype, {Dim(gates)}, 0);
  }
  Value both = row(node, node.input(3), direction);
  Value input = node.slice_dim(both, 0, 0, gates);
  Value recurrent = node.slice_dim(both, 0, gates, 2 * gates);
  if (!apart) return node.binary(Opcode::Add, input, recurrent);
  *apart = node.slice_dim(recurrent, 0, gates - h, gates);
  Value zeros = node.splat(dtype, {Dim(h)}, 0);
  Value rest = node.concatenate({node.slice_dim(recurrent, 0, 0, gates - h), zeros}, 0);
  return node.binary(Opcode::Add, input, rest);
}

// y, h and, for lstm, c of a direction; nothing after a failure.
Values results_of(Instruction* made) {
  Values results;
  for (int i = 0; made && i < made->num_results(); ++i) results.push_back(made->result(i));
  return results;
}

// One length per batch entry, or null; false after a failure.
bool read_lengths(NodeContext& node, const Recurrent& layer, Value& lengths) {
  lengths = input_with_extents(node, 4, {layer.x.type().dims[1]});
  return !node.failed();
}

Values make_direction(NodeContext& node, const Recurrent& layer, int64_t direction) {
  const RecurrentOptions& options = layer.options[direction];
  RecurrentOperands operands;
  operands.x = layer.x;
  operands.w = row(node, node.input(1), direction);
  operands.r = row(node, node.input(2), direction);
  operands.b = bias(node, layer, direction, options.linear_before_reset ? &operands.b_r : nullptr);
  operands.h0 = first_state(node, layer, 5, direction);
  if (!read_lengths(node, layer, operands.lens)) return {};
  if (layer.cell == Cell::Lstm) {
    operands.c0 = first_state(node, layer, 6, direction);
    if (node.has_input(7)) {
      if (!node.check_dims(7, {layer.directions, 3 * layer.hidden})) return {};
      operands.peepholes = row(node, node.input(7), direction);
    }
  }
  if (node.failed()) return {};
  GraphBuilder builder = node.builder();
  switch (layer.cell) {
  case Cell::Lstm: return results_of(make_lstm(builder, operands, options));
  case Cell::Gru: return results_of(make_gru(builder, operands, options));
  case Cell::Rnn: return results_of(make_rnn(builder, operands, options));
  }
  return {};
}

// --- LSTM whose weights are integers: inputs and states are quantised by their range, all inputs at once and
// the states of every step.

// The weights of a direction with one scale and zero point, or one per column.
struct QuantizedWeights {
  Value w, scale, zero;
};

QuantizedWeights quantized_weights(NodeContext& node, const Recurrent& layer, int64_t direction, int weights,
                                   int scale) {
  auto parameter = [&](int input) -> Value {
    if (!node.check_given(input)) return {};
    int rank = node.input(input).rank();
    if (!node.check(rank == 1 || rank == 2, node.input_label(input) + " wants rank 1 or 2") ||
        !node.check_dims(input, rank == 1 ? Ints{layer.directions}
                                          : Ints{layer.directions, layer.gates * layer.hidden}))
      return {};
    return row(node, node.input(input), direction);
  };
  return {row(node, node.input(weights), direction), parameter(scale), parameter(scale + 1)};
}

// x [rows, in] times weights, x quantised by its range.
Value quantized_product(NodeContext& node, Value x, const QuantizedWeights& by) {
  DynamicQuantization q = quantize_dynamically(node, x);
  return scaled_product(node, q.x, q.scale, q.zero_point, by.w, by.scale, by.zero, {});
}

// One step: the next [h, c], from the gates' part that the input gives and the last [h, c].
Values quantized_step(NodeContext& node, const Recurrent& layer, const RecurrentOptions& options, Value gates,
                      const Values& old, const QuantizedWeights& recurrent, const Values& peepholes) {
  gates = node.binary(Opcode::Add, gates, quantized_product(node, old[0], recurrent));
  Values parts;
  for (int64_t i = 0; i < 4; ++i)
    parts.push_back(node.slice_dim(gates, 1, i * layer.hidden, (i + 1) * layer.hidden));
  if (node.failed()) return {};
  GraphBuilder builder = node.builder();
  RecurrentCell cell(builder, RecurrentKind::Lstm, options);
  auto next = cell.lstm({parts[0], parts[1], parts[2], parts[3]}, old[1], peepholes);
  return {next.h, next.c};
}

// x with zeros in steps behind the end of every sequence, so that these do not widen the range that is
// quantised.
Value without_steps_behind(NodeContext& node, Value x, Value lengths) {
  Value longest = node.reduce(Opcode::Maximum, lengths, {0}, false);
  Value step = node.iota(lengths.dtype(), {x.type().dims[0], Dim(1), Dim(1)}, 0);
  return node.select(node.compare("lt", step, longest), x, node.scalar(x.dtype(), 0));
}

// The weights and options of a direction of a quantised LSTM.
struct QuantizedDirection {
  const RecurrentOptions& options;
  QuantizedWeights recurrent;
  Value lengths; // may be null
  Values peepholes;
};

// y, h and c from the gates' part [seq, batch, 4 * h] that the inputs give, in the order of steps, and the
// initial states. Sequences that have ended share the range of the quantised states: they count as zeros, as
// in y, if the node has an output y, else as their last states. ONNX Runtime does the same.
Values quantized_steps(NodeContext& node, const Recurrent& layer, const QuantizedDirection& by, Value gates,
                       const Values& state) {
  const Dim steps = layer.x.type().dims[0], batch = layer.x.type().dims[1], h(layer.hidden);
  const bool multiplies_y = by.lengths && node.has_output(0);
  Value count = node.dim_size(layer.x, 0), zero = node.scalar_int(DType::I64, 0),
        one = node.scalar_int(DType::I64, 1);
  Values initial{zero, node.splat(DType::F32, {steps, batch, h}, 0), state[0], state[1]};
  if (multiplies_y) initial.push_back(state[0]);
  if (node.failed()) return {};
  Instruction* loop = node.while_loop(
      initial, [&](const Values& p) { return Values{node.compare("lt", p[0], count)}; },
      [&](const Values& p) -> Values {
        Value own = node.op(Opcode::Gather, {gates, p[0]}, {{"axis", int64_t{0}}});
        Values next = quantized_step(node, layer, by.options, own, {p[multiplies_y ? 4 : 2], p[3]},
                                     by.recurrent, by.peepholes);
        if (next.empty()) return {};
        Value y = next[0];
        if (by.lengths) {
          Value valid = node.compare("lt", node.convert(p[0], by.lengths.dtype()), by.lengths);
          valid = node.reshape(valid, {batch, Dim(1)});
          y = node.select(valid, y, node.scalar(DType::F32, 0));
          for (size_t i = 0; i < 2; ++i) next[i] = node.select(valid, next[i], p[2 + i]);
        }
        Value all = node.op(Opcode::DynamicUpdateSlice, {p[1], node.unsqueeze(y, 0), p[0], zero, zero});
        Values after{node.binary(Opcode::Add, p[0], one), all, next[0], next[1]};
        if (multiplies_y) after.push_back(y);
        return after;
      });
  Values results = results_of(loop);
  return results.empty() ? results : Values(results.begin() + 1, results.begin() + 4);
}

Values make_quantized_direction(NodeContext& node, const Recurrent& layer, int64_t direction) {
  QuantizedWeights input = quantized_weights(node, layer, direction, 1, 8);
  QuantizedDirection by{layer.options[direction], quantized_weights(node, layer, direction, 2, 10), {}, {}};
  const Dim steps = layer.x.type().dims[0], batch = layer.x.type().dims[1];
  auto rows = node.product({steps, batch});
  Value b = bias(node, layer, direction, nullptr);
  Values state{first_state(node, layer, 5, direction), first_state(node, layer, 6, direction)};
  if (!rows || !read_lengths(node, layer, by.lengths)) return {};
  if (node.has_input(7)) {
    if (!node.check_dims(7, {layer.directions, 3 * layer.hidden})) return {};
    Value all = row(node, node.input(7), direction);
    for (int64_t i = 0; i < 3; ++i)
      by.peepholes.push_back(node.slice_dim(all, 0, i * layer.hidden, (i + 1) * layer.hidden));
  }
  Value x = by.lengths ? without_steps_behind(node, layer.x, by.lengths) : layer.x;
  Value flat = node.reshape(x, {*rows, layer.x.type().dims[2]});
  Value gates = node.binary(Opcode::Add, quantized_product(node, flat, input), b);
  gates = node.reshape(gates, {steps, batch, Dim(4 * layer.hidden)});
  auto in_order = [&](Value value) {
    if (!by.options.reverse || node.failed()) return value;
    return by.lengths ? reversed_sequences(node, value, by.lengths, 0, 1)
                      : node.op(Opcode::Reverse, {value}, {{"dims", Ints{0}}});
  };
  Values results = quantized_steps(node, layer, by, in_order(gates), state);
  if (!results.empty()) results[0] = in_order(results[0]);
  return results;
}

// Joins the results of the directions as dim `dim`, and moves the batch to the front if the node wants it
// there.
Value join(NodeContext& node, const Recurrent& layer, const std::vector<Values>& made, int result, int dim) {
  Values parts;
  for (const Values& direction : made)
    parts.push_back(node.unsqueeze(direction[static_cast<size_t>(result)], dim));
  Value joined = node.concatenate(parts, dim);
  if (!layer.batch_first) return joined;
  // y: [seq, directions, batch, h] to [batch, seq, directions, h]; states: [directions, batch, h] to [batch,
  // directions, h].
  return node.transpose(joined, result == 0 ? Ints{2, 0, 1, 3} : Ints{1, 0, 2});
}

// The results for a sequence without steps: an empty y, and the initial states as the last ones.
void skip_sequence(NodeContext& node, const Recurrent& layer) {
  std::vector<Dim> y{Dim(0), Dim(layer.directions), layer.x.type().dims[1], Dim(layer.hidden)};
  if (layer.batch_first) y = {y[2], y[0], y[1], y[3]};
  if (node.has_output(0)) node.set_output(0, node.splat(layer.x.dtype(), y, 0));
  for (int state = 1; state < (layer.cell == Cell::Lstm ? 3 : 2); ++state) {
    if (!node.has_output(state)) continue;
    Values parts;
    for (int64_t direction = 0; direction < layer.directions; ++direction)
      parts.push_back(node.unsqueeze(first_state(node, layer, 4 + state, direction), 0));
    Value joined = node.concatenate(parts, 0);
    node.set_output(state, layer.batch_first ? node.transpose(joined, {1, 0, 2}) : joined);
  }
}

template <Cell cell, bool quantized = false> void import_recurrent(NodeContext& node) {
  Recurrent layer{};
  layer.quantized = quantized;
  layer.cell = cell;
  layer.gates = cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1;
  layer.functions = cell == Cell::Lstm ? 3 : cell == Cell::Gru ? 2 : 1;
  if (!read_layer(node, layer)) return;
  if (layer.x.type().dims[0] == Dim(0)) return skip_sequence(node, layer);
  std::vector<Values> made;
  for (int64_t direction = 0; direction < layer.directions; ++direction) {
    made.push_back(quantized ? make_quantized_direction(node, layer, direction)
                             : make_direction(node, layer, direction));
    if (made.back().empty()) return;
  }
  for (int result = 0; result < (cell == Cell::Lstm ? 3 : 2); ++result)
    if (node.has_output(result))
      node.set_output(result, join(node, layer, made, result, result == 0 ? 1 : 0));
}

const OperatorRow kRows[] = {
    {"com.microsoft", "DynamicQuantizeLSTM", 1, kLatest, 3, 12, 0, 3,
     "f32 W=i8|u8 W f32 i32 f32 f32 f32 f32 W f32 W", import_recurrent<Cell::Lstm, true>,
     "LSTM with weights of integers, and inputs and states quantised by their range"},
    {"", "GRU", 1, kLatest, 3, 6, 0, 2, "T=float T T T i32 T", import_recurrent<Cell::Gru>,
     "gated recurrent unit layer", NarrowFloats::Widened},
    {"", "LSTM", 1, kLatest, 3, 8, 0, 3, "T=float T T T i32 T", import_recurrent<Cell::Lstm>,
     "long short-term memory layer", NarrowFloats::Widened},
    {"", "RNN", 1, kLatest, 3, 6, 0, 2, "T=float T T T i32 T", import_recurrent<Cell::Rnn>,
     "simple recurrent layer", NarrowFloats::Widened},
};

} // namespace

std::span<const OperatorRow> recurrent_operators() {
  return kRows;
}

} // namespace firn::onnx
