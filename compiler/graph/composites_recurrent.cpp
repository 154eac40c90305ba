// Reference bodies of the recurrent composites lstm, gru and rnn: the input's contribution to all gates is
// one dot over the whole sequence, the recurrence is a while loop over steps.
#include "compiler/graph/composites.h"

#include <algorithm>

namespace firn {

namespace {

using Values = std::vector<Value>;

constexpr std::string_view kActivations[] = {
    "relu",       "tanh",        "sigmoid", "affine",   "leakyrelu", "thresholdedrelu",
    "scaledtanh", "hardsigmoid", "elu",     "softsign", "softplus"};

// One activation of a cell; `index` selects its parameters.
Value activate(Builder& b, Value x, const std::string& name, double alpha, double beta) {
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

// The state of writing one step's gates.
struct Cell {
  Builder& b;
  const RecurrentOptions& options;
  std::vector<std::string> activations;
  int64_t hidden;

  Value op(Opcode opcode, Value lhs, Value rhs) const { return b.binary(opcode, lhs, rhs); }
  // `bounded`: the clip threshold applies, as it does to gates and candidates.
  Value apply(size_t activation, Value x, bool bounded = true) const {
    if (bounded && options.clip > 0) {
      x = op(Opcode::Maximum, x, b.scalar(x.dtype(), -options.clip));
      x = op(Opcode::Minimum, x, b.scalar(x.dtype(), options.clip));
    }
    double alpha = activation < options.alpha.size() ? options.alpha[activation] : 0;
    double beta = activation < options.beta.size() ? options.beta[activation] : 0;
    return activate(b, x, activations[activation], alpha, beta);
  }
  Value gate(Value gates, int index) const {
    return slice_dim(b, gates, 1, index * hidden, (index + 1) * hidden);
  }
};

// x [..., k] times w [n, k] transposed.
Value times_transposed(Builder& b, Value x, Value w) {
  using Ints = std::vector<int64_t>;
  return b.op(Opcode::Dot, {x, w},
              {{"lhs_batch", Ints{}},
               {"rhs_batch", Ints{}},
               {"lhs_contract", Ints{x.rank() - 1}},
               {"rhs_contract", Ints{1}}});
}

// One step: gets the input's part of the gates [batch, gates * h] and the states; returns the new states, h
// first.
using Step = std::function<Values(Builder&, Value gates, const Values& states)>;

// The loop over the sequence. `projected` is [seq, batch, gates * h]. Returns y and the last states.
Values run_sequence(Builder& b, Value projected, Values states, Value lens, bool reverse, const Step& step) {
  Value length = count_elements(b, projected, {0}, DType::I64);
  Value zero = b.scalar(DType::I64, 0);
  std::vector<Dim> y_dims = states[0].type().dims;
  y_dims.insert(y_dims.begin(), projected.type().dims[0]);
  Values initial{zero, b.broadcast_to(b.scalar(states[0].dtype(), 0), y_dims)};
  initial.insert(initial.end(), states.begin(), states.end());

  auto condition = [&](Builder& c, const Values& p) { return Values{c.compare("lt", p[0], length)}; };
  auto body = [&](Builder& s, const Values& p) {
    Value one = s.scalar(DType::I64, 1);
    Value time = p[0];
    if (reverse) time = s.binary(Opcode::Subtract, s.binary(Opcode::Subtract, length, one), p[0]);
    Value gates = s.op(Opcode::Gather, {projected, time}, {{"axis", int64_t{0}}});
    Values old(p.begin() + 2, p.end());
    Values next = step(s, gates, old);
    Value output = next[0];
    if (lens) {
      Value valid = s.compare("lt", s.convert(time, lens.dtype()), lens);
      valid = s.reshape(valid, {lens.type().dims[0], Dim(1)});
      output = s.select(valid, output, s.scalar(output.dtype(), 0));
      for (size_t i = 0; i < next.size(); ++i) next[i] = s.select(valid, next[i], old[i]);
    }
    std::vector<Dim> row = output.type().dims;
    row.insert(row.begin(), Dim(1));
    Value y = s.op(Opcode::DynamicUpdateSlice, {p[1], s.reshape(output, row), time, zero, zero});
    Values results{s.binary(Opcode::Add, p[0], one), y};
    results.insert(results.end(), next.begin(), next.end());
    return results;
  };
  Instruction* loop = make_while(b, initial, condition, body);
  Values results;
  for (int i = 1; i < loop->num_results(); ++i) results.push_back(loop->result(i));
  return results;
}

// Operands, result types and attributes that the three composites have in common.
struct Assembly {
  Values operands;
  std::vector<Type> types;
  Attributes attributes;
};

Assembly assemble(const RecurrentOperands& from, const RecurrentOptions& options, Values operands,
                  int num_states) {
  Assembly made{std::move(operands), {}, {}};
  const Type& state = from.h0.type();
  std::vector<Dim> y_dims = state.dims;
  y_dims.insert(y_dims.begin(), from.x.type().dims[0]);
  made.types.push_back(Type::tensor(state.dtype, y_dims));
  made.types.insert(made.types.end(), static_cast<size_t>(num_states), state);
  made.attributes.set("hidden", state.dims[1].value());
  made.attributes.set("direction", Word{options.reverse ? "reverse" : "forward"});
  if (options.clip > 0) made.attributes.set("clip", options.clip);
  if (!options.activations.empty()) {
    std::string names;
    for (const std::string& name : options.activations) names += (names.empty() ? "" : " ") + name;
    made.attributes.set("activations", names);
    made.attributes.set("activation_alpha", options.alpha);
    made.attributes.set("activation_beta", options.beta);
  }
  if (from.lens) {
    made.operands.push_back(from.lens);
    made.attributes.set("sequence_lens", true);
  }
  return made;
}

Cell make_cell(Builder& b, const RecurrentOptions& options, std::vector<std::string> defaults,
               int64_t hidden) {
  return {b, options, options.activations.empty() ? std::move(defaults) : options.activations, hidden};
}

} // namespace

bool is_recurrent_activation(std::string_view name) {
  return std::find(std::begin(kActivations), std::end(kActivations), name) != std::end(kActivations);
}

Instruction* make_lstm(Builder& builder, const RecurrentOperands& from, const RecurrentOptions& options) {
  Values operands{from.x, from.w, from.r, from.b, from.h0, from.c0};
  if (from.peepholes) operands.push_back(from.peepholes);
  Assembly made = assemble(from, options, operands, 2);
  if (from.peepholes) made.attributes.set("peepholes", true);
  if (options.input_forget) made.attributes.set("input_forget", true);
  int64_t hidden = from.h0.type().dims[1].value();
  return make_composite(
      builder, "lstm", made.operands, made.types, made.attributes, [&](Builder& b, const Values& p) {
        Value projected = b.binary(Opcode::Add, times_transposed(b, p[0], p[1]), p[3]);
        Value lens = from.lens ? p.back() : Value{};
        Values peepholes;
        for (int i = 0; from.peepholes && i < 3; ++i)
          peepholes.push_back(slice_dim(b, p[6], 0, i * hidden, (i + 1) * hidden));
        return run_sequence(
            b, projected, {p[4], p[5]}, lens, options.reverse,
            [&](Builder& s, Value input, const Values& old) {
              Cell cell = make_cell(s, options, {"sigmoid", "tanh", "tanh"}, hidden);
              Value gates = cell.op(Opcode::Add, input, times_transposed(s, old[0], p[2]));
              auto peep = [&](Value gate, size_t index, Value state) {
                if (peepholes.empty()) return gate;
                return cell.op(Opcode::Add, gate, cell.op(Opcode::Multiply, state, peepholes[index]));
              };
              Value i = cell.apply(0, peep(cell.gate(gates, 0), 0, old[1]));
              Value f = options.input_forget ? cell.op(Opcode::Subtract, s.scalar(i.dtype(), 1), i)
                                             : cell.apply(0, peep(cell.gate(gates, 2), 2, old[1]));
              Value candidate = cell.apply(1, cell.gate(gates, 3));
              Value c = cell.op(Opcode::Add, cell.op(Opcode::Multiply, f, old[1]),
                                cell.op(Opcode::Multiply, i, candidate));
              Value o = cell.apply(0, peep(cell.gate(gates, 1), 1, c));
              return Values{cell.op(Opcode::Multiply, o, cell.apply(2, c, false)), c};
            });
      });
}

Instruction* make_gru(Builder& builder, const RecurrentOperands& from, const RecurrentOptions& options) {
  Values operands{from.x, from.w, from.r, from.b, from.h0};
  if (options.linear_before_reset) operands.push_back(from.b_r);
  Assembly made = assemble(from, options, operands, 1);
  if (options.linear_before_reset) made.attributes.set("linear_before_reset", true);
  int64_t hidden = from.h0.type().dims[1].value();
  return make_composite(
      builder, "gru", made.operands, made.types, made.attributes, [&](Builder& b, const Values& p) {
        Value projected = b.binary(Opcode::Add, times_transposed(b, p[0], p[1]), p[3]);
        Value lens = from.lens ? p.back() : Value{};
        Value r_zr = slice_dim(b, p[2], 0, 0, 2 * hidden),
              r_h = slice_dim(b, p[2], 0, 2 * hidden, 3 * hidden);
        return run_sequence(
            b, projected, {p[4]}, lens, options.reverse, [&](Builder& s, Value input, const Values& old) {
              Cell cell = make_cell(s, options, {"sigmoid", "tanh"}, hidden);
              Value recurrent = times_transposed(s, old[0], r_zr);
              Value z = cell.apply(0, cell.op(Opcode::Add, cell.gate(input, 0), cell.gate(recurrent, 0)));
              Value r = cell.apply(0, cell.op(Opcode::Add, cell.gate(input, 1), cell.gate(recurrent, 1)));
              Value inner;
              if (options.linear_before_reset)
                inner = cell.op(Opcode::Multiply, r,
                                cell.op(Opcode::Add, times_transposed(s, old[0], r_h), p[5]));
              else
                inner = times_transposed(s, cell.op(Opcode::Multiply, r, old[0]), r_h);
              Value candidate = cell.apply(1, cell.op(Opcode::Add, cell.gate(input, 2), inner));
              // (1 - z) * candidate + z * h
              Value rest = cell.op(Opcode::Subtract, s.scalar(z.dtype(), 1), z);
              return Values{cell.op(Opcode::Add, cell.op(Opcode::Multiply, rest, candidate),
                                    cell.op(Opcode::Multiply, z, old[0]))};
            });
      });
}

Instruction* make_rnn(Builder& builder, const RecurrentOperands& from, const RecurrentOptions& options) {
  Assembly made = assemble(from, options, {from.x, from.w, from.r, from.b, from.h0}, 1);
  int64_t hidden = from.h0.type().dims[1].value();
  return make_composite(
      builder, "rnn", made.operands, made.types, made.attributes, [&](Builder& b, const Values& p) {
        Value projected = b.binary(Opcode::Add, times_transposed(b, p[0], p[1]), p[3]);
        Value lens = from.lens ? p.back() : Value{};
        return run_sequence(
            b, projected, {p[4]}, lens, options.reverse, [&](Builder& s, Value input, const Values& old) {
              Cell cell = make_cell(s, options, {"tanh"}, hidden);
              return Values{cell.apply(0, cell.op(Opcode::Add, input, times_transposed(s, old[0], p[2])))};
            });
      });
}

} // namespace firn
