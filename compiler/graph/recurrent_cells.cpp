// Activations and cells of lstm, gru and rnn as plain ops, and the reading of their composites.
#include "compiler/graph/recurrent_cells.h"

#include <algorithm>

namespace firn {

namespace {

constexpr std::string_view kActivations[] = {
    "relu",       "tanh",        "sigmoid", "affine",   "leakyrelu", "thresholdedrelu",
    "scaledtanh", "hardsigmoid", "elu",     "softsign", "softplus"};

// One activation of a cell.
Value activate(GraphBuilder& b, Value x, const std::string& name, double alpha, double beta) {
  auto number = [&](double value) { return b.scalar(x.dtype(), value); };
  auto op = [&](Opcode opcode, Value lhs, Value rhs) { return b.binary(opcode, lhs, rhs); };
  Value zero = number(0);
  if (name == "tanh") return b.unary(Opcode::Tanh, x);
  if (name == "sigmoid") return b.unary(Opcode::Logistic, x);
  if (name == "relu") return op(Opcode::Maximum, x, zero);
  if (name == "softsign") return op(Opcode::Divide, x, op(Opcode::Add, b.unary(Opcode::Abs, x), number(1)));
  if (name == "softplus") return softplus(b, x);
  if (name == "affine") return op(Opcode::Add, op(Opcode::Multiply, x, number(alpha)), number(beta));
  if (name == "leakyrelu")
    return b.select(b.compare("lt", x, zero), op(Opcode::Multiply, x, number(alpha)), x);
  if (name == "thresholdedrelu") return b.select(b.compare("ge", x, number(alpha)), x, zero);
  if (name == "scaledtanh")
    return op(Opcode::Multiply, b.unary(Opcode::Tanh, op(Opcode::Multiply, x, number(beta))), number(alpha));
  if (name == "hardsigmoid") {
    Value line = op(Opcode::Add, op(Opcode::Multiply, x, number(alpha)), number(beta));
    return op(Opcode::Minimum, op(Opcode::Maximum, line, zero), number(1));
  }
  FIRN_CHECK(name == "elu", "unknown recurrent activation " + name);
  Value negative = op(Opcode::Multiply, b.unary(Opcode::ExponentialMinusOne, x), number(alpha));
  return b.select(b.compare("lt", x, zero), negative, x);
}

std::vector<std::string> default_activations(RecurrentKind kind) {
  if (kind == RecurrentKind::Lstm) return {"sigmoid", "tanh", "tanh"};
  if (kind == RecurrentKind::Gru) return {"sigmoid", "tanh"};
  return {"tanh"};
}

// Reads options; false if there are not as many valid activations as the kind has.
bool read_options(const Instruction& composite, RecurrentLayer& layer) {
  const Attributes& a = composite.attributes();
  RecurrentOptions& options = layer.options;
  options.reverse = a.word("direction", "forward") == "reverse";
  options.clip = a.number("clip", 0);
  options.input_forget = a.flag("input_forget");
  options.linear_before_reset = a.flag("linear_before_reset");
  options.residuals = a.flag("residuals");
  if (!a.has("activations")) return true;
  const std::string& names = a.text("activations");
  for (size_t begin = 0; begin <= names.size();) {
    size_t end = std::min(names.find(' ', begin), names.size());
    options.activations.push_back(names.substr(begin, end - begin));
    if (!is_recurrent_activation(options.activations.back())) return false;
    begin = end + 1;
  }
  if (a.has("activation_alpha")) options.alpha = a.numbers("activation_alpha");
  if (a.has("activation_beta")) options.beta = a.numbers("activation_beta");
  return options.activations.size() == default_activations(layer.kind).size();
}

// Hands out operands in the order of the composite; false if there are too few or too many.
bool read_operands(const Instruction& composite, RecurrentLayer& layer) {
  const Attributes& a = composite.attributes();
  int next = 0;
  auto take = [&] { return next < composite.num_operands() ? composite.operand(next++) : (++next, Value{}); };
  RecurrentOperands& o = layer.operands;
  o.x = take();
  auto take_weights = [&](Value& weights, Value& scales) {
    weights = take();
    if (weights && weights.dtype() == DType::I8) scales = take();
  };
  if (!a.flag("projected")) take_weights(o.w, o.w_scales);
  take_weights(o.r, o.r_scales);
  if (!a.flag("projected")) o.b = take();
  o.h0 = take();
  if (layer.kind == RecurrentKind::Lstm) o.c0 = take();
  if (layer.kind == RecurrentKind::Lstm && a.flag("peepholes")) o.peepholes = take();
  if (layer.kind == RecurrentKind::Gru && layer.options.linear_before_reset) o.b_r = take();
  if (a.flag("sequence_lens")) o.lens = take();
  return next == composite.num_operands();
}

} // namespace

bool is_recurrent_activation(std::string_view name) {
  return std::find(std::begin(kActivations), std::end(kActivations), name) != std::end(kActivations);
}

std::optional<RecurrentLayer> read_recurrent(const Instruction& composite) {
  RecurrentLayer layer{};
  if (is_composite(composite, "lstm"))
    layer.kind = RecurrentKind::Lstm, layer.gates = 4;
  else if (is_composite(composite, "gru"))
    layer.kind = RecurrentKind::Gru, layer.gates = 3;
  else if (is_composite(composite, "rnn"))
    layer.kind = RecurrentKind::Rnn, layer.gates = 1;
  else
    return std::nullopt;
  if (!read_options(composite, layer) || !read_operands(composite, layer)) return std::nullopt;
  int states = layer.kind == RecurrentKind::Lstm ? 2 : 1;
  if (composite.num_results() != 1 + states * (layer.options.residuals ? 2 : 1)) return std::nullopt;
  layer.sums = layer.kind == RecurrentKind::Gru && layer.options.linear_before_reset ? 4 : layer.gates;
  const RecurrentOperands& o = layer.operands;
  if (o.x.rank() != 3 || o.r.rank() != 2 || o.h0.rank() != 2 || !o.r.type().dims[1].is_static())
    return std::nullopt;
  layer.hidden = o.r.dim(1);
  if (!(o.r.type().dims[0] == Dim(layer.gates * layer.hidden)) ||
      !(o.h0.type().dims[1] == Dim(layer.hidden)) ||
      (layer.projected() && !(o.x.type().dims[2] == Dim(layer.gates * layer.hidden))))
    return std::nullopt;
  for (Value scales : {o.w_scales, o.r_scales})
    if (scales && scales.type().dims != std::vector{Dim(layer.gates * layer.hidden)}) return std::nullopt;
  return layer;
}

RecurrentCell::RecurrentCell(GraphBuilder& builder, RecurrentKind kind, const RecurrentOptions& options)
    : b_(builder), options_(options),
      activations_(options.activations.empty() ? default_activations(kind) : options.activations) {}

Value RecurrentCell::apply(size_t activation, Value x, bool bounded) const {
  if (bounded && options_.clip > 0) {
    x = op(Opcode::Maximum, x, b_.scalar(x.dtype(), -options_.clip));
    x = op(Opcode::Minimum, x, b_.scalar(x.dtype(), options_.clip));
  }
  double alpha = activation < options_.alpha.size() ? options_.alpha[activation] : 0;
  double beta = activation < options_.beta.size() ? options_.beta[activation] : 0;
  return activate(b_, x, activations_[activation], alpha, beta);
}

RecurrentCell::LstmState RecurrentCell::lstm(const LstmGates& gates, Value old,
                                             const std::vector<Value>& peepholes) const {
  auto peep = [&](Value gate, size_t index, Value state) {
    if (peepholes.empty()) return gate;
    return op(Opcode::Add, gate, op(Opcode::Multiply, state, peepholes[index]));
  };
  Value i = apply(0, peep(gates.i, 0, old), true);
  Value f = options_.input_forget ? op(Opcode::Subtract, b_.scalar(i.dtype(), 1), i)
                                  : apply(0, peep(gates.f, 2, old), true);
  Value candidate = apply(1, gates.c, true);
  Value c = op(Opcode::Add, op(Opcode::Multiply, f, old), op(Opcode::Multiply, i, candidate));
  Value o = apply(0, peep(gates.o, 1, c), true);
  return {op(Opcode::Multiply, o, apply(2, c, false)), c};
}

Value RecurrentCell::gru(Value z, Value candidate, Value h) const {
  Value g = apply(1, candidate, true);
  // (1 - z) * g + z * h
  Value rest = op(Opcode::Subtract, b_.scalar(z.dtype(), 1), z);
  return op(Opcode::Add, op(Opcode::Multiply, rest, g), op(Opcode::Multiply, z, h));
}

} // namespace firn
