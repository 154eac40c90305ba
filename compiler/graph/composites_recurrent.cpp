// Reference bodies of the recurrent composites lstm, gru and rnn: the input's contribution to all gates is
// one dot over the whole sequence, the recurrence is a while loop over steps.
#include "compiler/graph/recurrent_cells.h"
#include "compiler/graph/times_transposed.h"

namespace firn {

namespace {

using Values = std::vector<Value>;

// One step: gets the input's part of the gates [batch, gates * h] and the states; returns the new states, h
// first.
using Step = std::function<Values(GraphBuilder&, Value gates, const Values& states)>;

// The loop over the sequence. `projected` is [seq, batch, gates * h]. Returns y and the last states.
Values run_sequence(GraphBuilder& b, Value projected, Values states, Value lens, bool reverse,
                    const Step& step) {
  Value length = count_elements(b, projected, {0}, DType::I64);
  Value zero = b.scalar(DType::I64, 0);
  std::vector<Dim> y_dims = states[0].type().dims;
  y_dims.insert(y_dims.begin(), projected.type().dims[0]);
  Values initial{zero, b.broadcast_to(b.scalar(states[0].dtype(), 0), y_dims)};
  initial.insert(initial.end(), states.begin(), states.end());

  auto condition = [&](GraphBuilder& c, const Values& p) { return Values{c.compare("lt", p[0], length)}; };
  auto body = [&](GraphBuilder& s, const Values& p) {
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
  if (!from.w) made.attributes.set("projected", true);
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

// The operands of all three before the states: x, w, r, b, or projected gates and r, weights with their
// scales.
Values leading_operands(const RecurrentOperands& from) {
  Values operands{from.x};
  for (Value value : {from.w, from.w_scales, from.r, from.r_scales, from.b})
    if (value) operands.push_back(value);
  return operands;
}

// Weights that may be integers with scales, the next of the parameters, as f32.
Value next_weights(GraphBuilder& b, bool has_scales, Values::const_iterator& next) {
  Value weights = *next++;
  if (!has_scales) return weights;
  Value scales = b.reshape(*next++, {weights.type().dims[0], Dim(1)});
  return b.binary(Opcode::Multiply, b.convert(weights, DType::F32), scales);
}

// The body's view of its parameters: the gates' input part, r, and what follows them.
struct Parameters {
  Value projected, r;
  Values rest;
};
Parameters read_parameters(GraphBuilder& b, const RecurrentOperands& from, const Values& p) {
  auto next = p.begin();
  Value x = *next++;
  Value w = from.w ? next_weights(b, bool(from.w_scales), next) : Value{};
  Value r = next_weights(b, bool(from.r_scales), next);
  if (w) x = b.binary(Opcode::Add, times_transposed(b, x, w), *next++);
  return {x, r, Values(next, p.end())};
}

Value gate(GraphBuilder& b, Value gates, int index, int64_t hidden) {
  return slice_dim(b, gates, 1, index * hidden, (index + 1) * hidden);
}

Value add(GraphBuilder& b, Value lhs, Value rhs) {
  return b.binary(Opcode::Add, lhs, rhs);
}

} // namespace

Instruction* make_lstm(GraphBuilder& builder, const RecurrentOperands& from,
                       const RecurrentOptions& options) {
  Values operands = leading_operands(from);
  operands.insert(operands.end(), {from.h0, from.c0});
  if (from.peepholes) operands.push_back(from.peepholes);
  Assembly made = assemble(from, options, operands, 2);
  if (from.peepholes) made.attributes.set("peepholes", true);
  if (options.input_forget) made.attributes.set("input_forget", true);
  int64_t hidden = from.h0.type().dims[1].value();
  return make_composite(
      builder, "lstm", made.operands, made.types, made.attributes, [&](GraphBuilder& b, const Values& p) {
        Parameters in = read_parameters(b, from, p);
        Values peepholes;
        for (int i = 0; from.peepholes && i < 3; ++i)
          peepholes.push_back(slice_dim(b, in.rest[2], 0, i * hidden, (i + 1) * hidden));
        return run_sequence(b, in.projected, {in.rest[0], in.rest[1]}, from.lens ? p.back() : Value{},
                            options.reverse, [&](GraphBuilder& s, Value input, const Values& old) {
                              Value gates = add(s, input, times_transposed(s, old[0], in.r));
                              RecurrentCell cell(s, RecurrentKind::Lstm, options);
                              auto part = [&](int index) { return gate(s, gates, index, hidden); };
                              auto next = cell.lstm({part(0), part(1), part(2), part(3)}, old[1], peepholes);
                              return Values{next.h, next.c};
                            });
      });
}

Instruction* make_gru(GraphBuilder& builder, const RecurrentOperands& from, const RecurrentOptions& options) {
  Values operands = leading_operands(from);
  operands.push_back(from.h0);
  if (options.linear_before_reset) operands.push_back(from.b_r);
  Assembly made = assemble(from, options, operands, 1);
  if (options.linear_before_reset) made.attributes.set("linear_before_reset", true);
  int64_t hidden = from.h0.type().dims[1].value();
  return make_composite(
      builder, "gru", made.operands, made.types, made.attributes, [&](GraphBuilder& b, const Values& p) {
        Parameters in = read_parameters(b, from, p);
        Value r_zr = slice_dim(b, in.r, 0, 0, 2 * hidden),
              r_h = slice_dim(b, in.r, 0, 2 * hidden, 3 * hidden);
        return run_sequence(
            b, in.projected, {in.rest[0]}, from.lens ? p.back() : Value{}, options.reverse,
            [&](GraphBuilder& s, Value input, const Values& old) {
              RecurrentCell cell(s, RecurrentKind::Gru, options);
              Value recurrent = times_transposed(s, old[0], r_zr);
              Value z = cell.gru_gate(add(s, gate(s, input, 0, hidden), gate(s, recurrent, 0, hidden)));
              Value r = cell.gru_gate(add(s, gate(s, input, 1, hidden), gate(s, recurrent, 1, hidden)));
              Value inner;
              if (options.linear_before_reset)
                inner = s.binary(Opcode::Multiply, r, add(s, times_transposed(s, old[0], r_h), in.rest[1]));
              else
                inner = times_transposed(s, s.binary(Opcode::Multiply, r, old[0]), r_h);
              return Values{cell.gru(z, add(s, gate(s, input, 2, hidden), inner), old[0])};
            });
      });
}

Instruction* make_rnn(GraphBuilder& builder, const RecurrentOperands& from, const RecurrentOptions& options) {
  Values operands = leading_operands(from);
  operands.push_back(from.h0);
  Assembly made = assemble(from, options, operands, 1);
  return make_composite(
      builder, "rnn", made.operands, made.types, made.attributes, [&](GraphBuilder& b, const Values& p) {
        Parameters in = read_parameters(b, from, p);
        return run_sequence(b, in.projected, {in.rest[0]}, from.lens ? p.back() : Value{}, options.reverse,
                            [&](GraphBuilder& s, Value input, const Values& old) {
                              RecurrentCell cell(s, RecurrentKind::Rnn, options);
                              return Values{cell.rnn(add(s, input, times_transposed(s, old[0], in.r)))};
                            });
      });
}

} // namespace firn
