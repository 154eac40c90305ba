// Reference bodies of the recurrent composites lstm, gru and rnn: the input's contribution to all gates is
// one dot over the whole sequence, the recurrence is a while loop over steps.
#include "compiler/graph/recurrent_cells.h"
#include "compiler/graph/times_transposed.h"

namespace firn {

namespace {

using Values = std::vector<Value>;

// One step makes of the input's part of the gates [batch, gates * h] and the states, h first:
struct StepResult {
  Values states; // new states
  Values sums;   // inputs of the gates: `gates` of {residuals = true} holds them side by side
};
using Step = std::function<StepResult(GraphBuilder&, Value gates, const Values& states)>;

// The loop over a sequence.
class Sequence {
public:
  // `projected` is [seq, batch, gates * h], `sums` the number of those that a step has.
  Sequence(GraphBuilder& b, Value projected, Values states, int sums, Value lens,
           const RecurrentOptions& options)
      : b_(b), projected_(projected), states_(std::move(states)), sums_(sums), lens_(lens), options_(options),
        length_(count_elements(b, projected, {0}, DType::I64)), zero_(b.scalar(DType::I64, 0)) {}

  // Returns the results of the composite.
  Values run(const Step& step) {
    Values initial{zero_};
    initial.insert(initial.end(), states_.begin(), states_.end());
    const Type& state = states_[0].type();
    initial.push_back(stack_of(state.dims[1]));
    if (options_.residuals) initial.push_back(stack_of(Dim(state.dims[1].value() * sums_)));
    if (options_.residuals && states_.size() > 1) initial.push_back(stack_of(state.dims[1]));
    auto condition = [&](GraphBuilder& c, const Values& p) { return Values{c.compare("lt", p[0], length_)}; };
    auto body = [&](GraphBuilder& s, const Values& p) { return run_step(s, p, step); };
    Instruction* loop = make_while(b_, initial, condition, body);
    int first_stack = 1 + static_cast<int>(states_.size());
    Values results{loop->result(first_stack)};
    for (int i = 1; i < first_stack; ++i) results.push_back(loop->result(i));
    for (int i = first_stack + 1; i < loop->num_results(); ++i) results.push_back(loop->result(i));
    return results;
  }

private:
  // Room for a row of each step.
  Value stack_of(const Dim& width) {
    return b_.broadcast_to(b_.scalar(states_[0].dtype(), 0),
                           {projected_.type().dims[0], states_[0].type().dims[0], width});
  }

  // Carried are the number of the step, the states, and the stacks.
  Values run_step(GraphBuilder& s, const Values& p, const Step& step) {
    Value one = s.scalar(DType::I64, 1);
    Value time = p[0];
    if (options_.reverse) time = s.binary(Opcode::Subtract, s.binary(Opcode::Subtract, length_, one), p[0]);
    Value gates = s.op(Opcode::Gather, {projected_, time}, {{"axis", int64_t{0}}});
    auto first_stack = p.begin() + 1 + static_cast<std::ptrdiff_t>(states_.size());
    Values old(p.begin() + 1, first_stack);
    auto [next, sums] = step(s, gates, old);
    Value output = next[0];
    if (lens_) {
      Value valid = s.compare("lt", s.convert(time, lens_.dtype()), lens_);
      valid = s.reshape(valid, {lens_.type().dims[0], Dim(1)});
      output = s.select(valid, output, s.scalar(output.dtype(), 0));
      for (size_t i = 0; i < next.size(); ++i) next[i] = s.select(valid, next[i], old[i]);
    }
    Values rows{output};
    if (options_.residuals) rows.push_back(sums.size() == 1 ? sums[0] : s.concatenate(sums, 1));
    if (options_.residuals && states_.size() > 1) rows.push_back(next[1]);
    Values results{s.binary(Opcode::Add, p[0], one)};
    results.insert(results.end(), next.begin(), next.end());
    for (Value row : rows) {
      std::vector<Dim> dims = row.type().dims;
      dims.insert(dims.begin(), Dim(1));
      results.push_back(
          s.op(Opcode::DynamicUpdateSlice, {*first_stack++, s.reshape(row, dims), time, zero_, zero_}));
    }
    return results;
  }

  GraphBuilder& b_;
  Value projected_;
  Values states_;
  int sums_;
  Value lens_;
  const RecurrentOptions& options_;
  Value length_, zero_;
};

// Operands, result types and attributes that the three composites have in common.
struct Assembly {
  Values operands;
  std::vector<Type> types;
  Attributes attributes;
};

Assembly assemble(const RecurrentOperands& from, const RecurrentOptions& options, Values operands,
                  int num_states, int sums) {
  Assembly made{std::move(operands), {}, {}};
  const Type& state = from.h0.type();
  std::vector<Dim> y_dims = state.dims;
  y_dims.insert(y_dims.begin(), from.x.type().dims[0]);
  made.types.push_back(Type::tensor(state.dtype, y_dims));
  made.types.insert(made.types.end(), static_cast<size_t>(num_states), state);
  int64_t hidden = state.dims[1].value();
  if (options.residuals) {
    made.types.push_back(Type::tensor(state.dtype, {y_dims[0], y_dims[1], Dim(hidden * sums)}));
    if (num_states > 1) made.types.push_back(made.types[0]);
    made.attributes.set("residuals", true);
  }
  made.attributes.set("hidden", hidden);
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
  Assembly made = assemble(from, options, operands, 2, 4);
  if (from.peepholes) made.attributes.set("peepholes", true);
  if (options.input_forget) made.attributes.set("input_forget", true);
  int64_t hidden = from.h0.type().dims[1].value();
  return make_composite(builder, "lstm", made.operands, made.types, made.attributes,
                        [&](GraphBuilder& b, const Values& p) {
                          Parameters in = read_parameters(b, from, p);
                          Values peepholes;
                          for (int i = 0; from.peepholes && i < 3; ++i)
                            peepholes.push_back(slice_dim(b, in.rest[2], 0, i * hidden, (i + 1) * hidden));
                          Sequence sequence(b, in.projected, {in.rest[0], in.rest[1]}, 4,
                                            from.lens ? p.back() : Value{}, options);
                          return sequence.run([&](GraphBuilder& s, Value input, const Values& old) {
                            Value gates = add(s, input, times_transposed(s, old[0], in.r));
                            RecurrentCell cell(s, RecurrentKind::Lstm, options);
                            auto part = [&](int index) { return gate(s, gates, index, hidden); };
                            auto next = cell.lstm({part(0), part(1), part(2), part(3)}, old[1], peepholes);
                            return StepResult{{next.h, next.c}, {gates}};
                          });
                        });
}

Instruction* make_gru(GraphBuilder& builder, const RecurrentOperands& from, const RecurrentOptions& options) {
  Values operands = leading_operands(from);
  operands.push_back(from.h0);
  if (options.linear_before_reset) operands.push_back(from.b_r);
  int sums = options.linear_before_reset ? 4 : 3;
  Assembly made = assemble(from, options, operands, 1, sums);
  if (options.linear_before_reset) made.attributes.set("linear_before_reset", true);
  int64_t hidden = from.h0.type().dims[1].value();
  return make_composite(
      builder, "gru", made.operands, made.types, made.attributes, [&](GraphBuilder& b, const Values& p) {
        Parameters in = read_parameters(b, from, p);
        Value r_zr = slice_dim(b, in.r, 0, 0, 2 * hidden),
              r_h = slice_dim(b, in.r, 0, 2 * hidden, 3 * hidden);
        Sequence sequence(b, in.projected, {in.rest[0]}, sums, from.lens ? p.back() : Value{}, options);
        return sequence.run([&](GraphBuilder& s, Value input, const Values& old) {
          RecurrentCell cell(s, RecurrentKind::Gru, options);
          Value recurrent = times_transposed(s, old[0], r_zr);
          Value z_sum = add(s, gate(s, input, 0, hidden), gate(s, recurrent, 0, hidden));
          Value r_sum = add(s, gate(s, input, 1, hidden), gate(s, recurrent, 1, hidden));
          Value z = cell.gru_gate(z_sum), r = cell.gru_gate(r_sum), entering = gate(s, input, 2, hidden);
          if (options.linear_before_reset) {
            Value product = times_transposed(s, old[0], r_h);
            Value candidate = add(s, entering, s.binary(Opcode::Multiply, r, add(s, product, in.rest[1])));
            return StepResult{{cell.gru(z, candidate, old[0])}, {z_sum, r_sum, entering, product}};
          }
          Value reset = s.binary(Opcode::Multiply, r, old[0]);
          Value candidate = add(s, entering, times_transposed(s, reset, r_h));
          return StepResult{{cell.gru(z, candidate, old[0])}, {z_sum, r_sum, candidate}};
        });
      });
}

Instruction* make_rnn(GraphBuilder& builder, const RecurrentOperands& from, const RecurrentOptions& options) {
  Values operands = leading_operands(from);
  operands.push_back(from.h0);
  Assembly made = assemble(from, options, operands, 1, 1);
  return make_composite(
      builder, "rnn", made.operands, made.types, made.attributes, [&](GraphBuilder& b, const Values& p) {
        Parameters in = read_parameters(b, from, p);
        Sequence sequence(b, in.projected, {in.rest[0]}, 1, from.lens ? p.back() : Value{}, options);
        return sequence.run([&](GraphBuilder& s, Value input, const Values& old) {
          RecurrentCell cell(s, RecurrentKind::Rnn, options);
          Value gate = add(s, input, times_transposed(s, old[0], in.r));
          return StepResult{{cell.rnn(gate)}, {gate}};
        });
      });
}

} // namespace firn
