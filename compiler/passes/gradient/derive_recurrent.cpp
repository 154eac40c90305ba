// The adjoint of lstm, gru and rnn. The layer is rebuilt with {residuals = true}: it stores what enters the
// gates of every step, and lstm's inner states. A loop from the last step to the first carries the cotangents
// of the states. A step sweeps back over the cell alone, which is elementwise, and multiplies the cotangents
// of the gates by r, which gives that of the state before. It stores them, too: the gradients of weights,
// biases and inputs are one product or sum each over all steps and the batch, behind the loop.
#include "compiler/passes/gradient/derive_recurrent.h"

#include "compiler/graph/function_type.h"
#include "compiler/graph/recurrent_cells.h"
#include "compiler/passes/gradient/reverse_sweep.h"

namespace firn::gradient {
namespace {

using Values = std::vector<Value>;

Value row_of(GraphBuilder& b, Value stack, Value index) {
  return b.op(Opcode::Gather, {stack, index}, {{"axis", int64_t{0}}});
}

Value as_row(GraphBuilder& b, Value value) {
  std::vector<Dim> dims = value.type().dims;
  dims.insert(dims.begin(), Dim(1));
  return b.reshape(value, dims);
}

// The product of `lhs` and `rhs`, contracted over these of their dims.
Value contract(GraphBuilder& b, Value lhs, std::vector<int64_t> lhs_dims, Value rhs,
               std::vector<int64_t> rhs_dims) {
  using Ints = std::vector<int64_t>;
  return b.op(Opcode::Dot, {lhs, rhs},
              {{"lhs_batch", Ints{}},
               {"lhs_contract", std::move(lhs_dims)},
               {"rhs_batch", Ints{}},
               {"rhs_contract", std::move(rhs_dims)}});
}

Value columns(GraphBuilder& b, Value x, int64_t begin, int64_t end) {
  return begin == 0 && Dim(end) == x.type().dims.back() ? x : slice_dim(b, x, x.rank() - 1, begin, end);
}

// The cotangents that a step back makes.
struct StepCotangents {
  Values gates;  // the gates' sums, in the order of w
  Value product; // h rh, if a gru has linear_before_reset
  Value h;       // the state before
  Value c;       // lstm's inner state before
};

// The inputs of a step back: the sums that enter its gates, the states before it, and the cotangents of those
// after it.
struct StepInputs {
  Values sums;
  Value h, c, dh, dc;
};

class RecurrentAdjoint {
public:
  RecurrentAdjoint(VectorJacobian& v, RecurrentLayer layer)
      : v_(v), b_(v.b), layer_(std::move(layer)), in_(layer_.operands), hidden_(layer_.hidden) {}

  void derive() {
    if (layer_.batch() == IntExpr(0) || hidden_ == 0) return;
    keep_residuals();
    Instruction* loop = make_loop();
    v_.give_value(in_.h0, loop->result(1));
    if (is_lstm()) v_.give_value(in_.c0, loop->result(2));
    give_sums(loop);
  }

private:
  bool is_lstm() const { return layer_.kind == RecurrentKind::Lstm; }
  bool resets_state() const { return layer_.kind == RecurrentKind::Gru && !resets_product(); }
  bool resets_product() const {
    return layer_.kind == RecurrentKind::Gru && layer_.options.linear_before_reset;
  }

  // Puts the layer with residuals in the place of the one without.
  void keep_residuals() {
    RecurrentOptions options = layer_.options;
    options.residuals = true;
    auto make = is_lstm() ? make_lstm : layer_.kind == RecurrentKind::Gru ? make_gru : make_rnn;
    GraphBuilder before(*v_.primal.parent(), &v_.primal);
    Instruction* forward = make(before, in_, options);
    for (int i = 0; i < v_.primal.num_results(); ++i)
      v_.primal.parent()->replace_uses(v_.primal.result(i), forward->result(i));
    length_ = count_elements(b_, forward->result(), {0}, DType::I64);
    sums_ = forward->result(v_.primal.num_results());
    states_ = with_first(masked_states(forward->result()), in_.h0);
    if (is_lstm()) cells_ = with_first(forward->result(4), in_.c0);
    if (in_.peepholes)
      for (int64_t i = 0; i < 3; ++i)
        peepholes_.push_back(slice_dim(b_, in_.peepholes, 0, i * hidden_, (i + 1) * hidden_));
  }

  // The states after all steps: y has zeros in the place of those that an entry passes on.
  Value masked_states(Value y) {
    if (!in_.lens || !layer_.options.reverse) return y;
    std::vector<Dim> times{y.type().dims[0], Dim(1), Dim(1)};
    Value time =
        b_.make_typed(Opcode::Iota, {}, {Type::tensor(DType::I32, times)}, {{"dim", int64_t{0}}})->result();
    Value valid = b_.compare("lt", time, b_.reshape(in_.lens, {in_.lens.type().dims[0], Dim(1)}));
    return b_.select(valid, y, in_.h0);
  }

  // A stack of the states after all steps with the first one at the end where steps begin: [seq + 1,batch,h].
  Value with_first(Value stack, Value first) {
    Value row = as_row(b_, first);
    return b_.concatenate(layer_.options.reverse ? Values{stack, row} : Values{row, stack}, 0);
  }
  // The states before or after all steps out of such a stack.
  Value before(Value stack) {
    return part(b_, stack, 0, layer_.options.reverse ? 1 : 0, Dim(layer_.steps()));
  }
  Value after(Value stack) { return part(b_, stack, 0, layer_.options.reverse ? 0 : 1, Dim(layer_.steps())); }

  Value stack_of(int64_t width) {
    std::vector<Dim> dims = v_.y().type().dims;
    dims.back() = Dim(width);
    return b_.broadcast_to(b_.scalar(v_.y().dtype(), 0), dims);
  }

  Value cotangent_of_last(int result) { return v_.dy(result) ? v_.dy(result) : zeros_like(b_, v_.y(result)); }

  // Carries the number of steps done, the cotangents of the states, and those of the gates of all steps.
  Instruction* make_loop() {
    Values initial{b_.scalar(DType::I64, 0), cotangent_of_last(1)};
    if (is_lstm()) initial.push_back(cotangent_of_last(2));
    first_stack_ = static_cast<int>(initial.size());
    initial.push_back(stack_of(layer_.gates * hidden_));
    if (resets_product()) initial.push_back(stack_of(hidden_));
    if (resets_state()) {
      r_reset_ = slice_dim(b_, in_.r, 0, 2 * hidden_, 3 * hidden_);
      r_ = slice_dim(b_, in_.r, 0, 0, 2 * hidden_);
    } else {
      r_ = in_.r;
    }
    auto condition = [&](GraphBuilder& c, const Values& p) { return Values{c.compare("lt", p[0], length_)}; };
    auto body = [&](GraphBuilder& s, const Values& p) { return step_back(s, p); };
    return make_while(b_, std::move(initial), condition, body);
  }

  Values step_back(GraphBuilder& s, const Values& p) {
    Value one = s.scalar(DType::I64, 1), zero = s.scalar(DType::I64, 0);
    Value next = s.binary(Opcode::Add, p[0], one), time = p[0];
    if (!layer_.options.reverse) time = s.binary(Opcode::Subtract, length_, next);
    StepInputs inputs = step_inputs(s, p, time);
    StepCotangents made = is_lstm()                           ? lstm_back(s, inputs)
                          : resets_state()                    ? reset_state_back(s, inputs)
                          : layer_.kind == RecurrentKind::Gru ? gru_back(s, inputs)
                                                              : rnn_back(s, inputs);
    Values rows{made.gates.size() == 1 ? made.gates[0] : s.concatenate(made.gates, 1)};
    if (made.product) rows.push_back(made.product);
    if (in_.lens) {
      Value valid = s.compare("lt", s.convert(time, in_.lens.dtype()), in_.lens);
      valid = s.reshape(valid, {in_.lens.type().dims[0], Dim(1)});
      for (Value& row : rows) row = s.select(valid, row, s.scalar(row.dtype(), 0));
      made.h = s.select(valid, made.h, p[1]);
      if (made.c) made.c = s.select(valid, made.c, p[2]);
    }
    Values results{next, made.h};
    if (made.c) results.push_back(made.c);
    for (size_t i = 0; i < rows.size(); ++i)
      results.push_back(s.op(Opcode::DynamicUpdateSlice, {p[static_cast<size_t>(first_stack_) + i],
                                                          as_row(s, rows[i]), time, zero, zero}));
    return results;
  }

  StepInputs step_inputs(GraphBuilder& s, const Values& p, Value time) {
    StepInputs inputs;
    Value sums = row_of(s, sums_, time);
    for (int64_t i = 0; i < layer_.sums; ++i)
      inputs.sums.push_back(columns(s, sums, i * hidden_, (i + 1) * hidden_));
    Value place = layer_.options.reverse ? s.binary(Opcode::Add, time, s.scalar(DType::I64, 1)) : time;
    inputs.dh = v_.dy(0) ? s.binary(Opcode::Add, p[1], row_of(s, v_.dy(0), time)) : p[1];
    if (layer_.kind == RecurrentKind::Gru) inputs.h = row_of(s, states_, place);
    if (is_lstm()) inputs.c = row_of(s, cells_, place), inputs.dc = p[2];
    return inputs;
  }

  // Sweeps back over what the region holds: from the cotangents of `results` to those of `active`.
  Values sweep(GraphBuilder& s, const Values& results, const Values& cotangents, const Values& active) {
    s.region().set_results(results);
    ReverseSweep sweep(s.region(), active);
    for (size_t i = 0; i < results.size(); ++i)
      if (sweep.is_active(results[i])) sweep.seed(results[i], cotangents[i]);
    if (auto refused = sweep.run()) v_.refuse(*refused);
    Values made;
    for (Value value : active) {
      Value cotangent = sweep.cotangent(value);
      made.push_back(cotangent ? cotangent : zeros_like(s, value));
    }
    return made;
  }

  Value times_r(GraphBuilder& s, const Values& gates) {
    return contract(s, gates.size() == 1 ? gates[0] : s.concatenate(gates, 1), {1}, r_, {0});
  }

  StepCotangents lstm_back(GraphBuilder& s, const StepInputs& at) {
    RecurrentCell cell(s, layer_.kind, layer_.options);
    auto next = cell.lstm({at.sums[0], at.sums[1], at.sums[2], at.sums[3]}, at.c, peepholes_);
    Values made =
        sweep(s, {next.h, next.c}, {at.dh, at.dc}, {at.sums[0], at.sums[1], at.sums[2], at.sums[3], at.c});
    Values gates(made.begin(), made.begin() + 4);
    return {gates, {}, times_r(s, gates), made[4]};
  }

  StepCotangents gru_back(GraphBuilder& s, const StepInputs& at) {
    RecurrentCell cell(s, layer_.kind, layer_.options);
    Value inner = s.binary(Opcode::Add, at.sums[3], in_.b_r);
    Value reset = s.binary(Opcode::Multiply, cell.gru_gate(at.sums[1]), inner);
    Value h = cell.gru(cell.gru_gate(at.sums[0]), s.binary(Opcode::Add, at.sums[2], reset), at.h);
    Values made = sweep(s, {h}, {at.dh}, {at.sums[0], at.sums[1], at.sums[2], at.sums[3], at.h});
    Value before = s.binary(Opcode::Add, times_r(s, {made[0], made[1], made[3]}), made[4]);
    return {{made[0], made[1], made[2]}, made[3], before, {}};
  }

  // A step of a gru that multiplies r * h by rh.
  StepCotangents reset_state_back(GraphBuilder& s, const StepInputs& at) {
    RecurrentCell cell(s, layer_.kind, layer_.options);
    Value h = cell.gru(cell.gru_gate(at.sums[0]), at.sums[2], at.h);
    Values outer = sweep(s, {h}, {at.dh}, {at.sums[0], at.sums[2], at.h});
    Value reset = s.binary(Opcode::Multiply, cell.gru_gate(at.sums[1]), at.h);
    Values inner = sweep(s, {reset}, {contract(s, outer[1], {1}, r_reset_, {0})}, {at.sums[1], at.h});
    Value before =
        s.binary(Opcode::Add, times_r(s, {outer[0], inner[0]}), s.binary(Opcode::Add, outer[2], inner[1]));
    return {{outer[0], inner[0], outer[1]}, {}, before, {}};
  }

  StepCotangents rnn_back(GraphBuilder& s, const StepInputs& at) {
    RecurrentCell cell(s, layer_.kind, layer_.options);
    Values made = sweep(s, {cell.rnn(at.sums[0])}, {at.dh}, {at.sums[0]});
    return {made, {}, times_r(s, made), {}};
  }

  // The gradients that are sums over steps and batch.
  void give_sums(Instruction* loop) {
    Value gates = loop->result(first_stack_);
    auto over_steps = [&](Value x) { return b_.reduce(Opcode::Add, x, {0, 1}, /*keep_dims=*/false); };
    if (layer_.projected()) {
      v_.give_value(in_.x, gates);
    } else {
      if (v_.is_active(in_.x)) v_.give_value(in_.x, contract(b_, gates, {2}, in_.w, {0}));
      if (v_.is_active(in_.w)) v_.give_value(in_.w, contract(b_, gates, {0, 1}, in_.x, {0, 1}));
      if (v_.is_active(in_.b)) v_.give_value(in_.b, over_steps(gates));
    }
    if (in_.b_r && v_.is_active(in_.b_r)) v_.give_value(in_.b_r, over_steps(loop->result(first_stack_ + 1)));
    if (v_.is_active(in_.r)) v_.give_value(in_.r, recurrent_gradient(loop));
    if (in_.peepholes && v_.is_active(in_.peepholes)) give_peepholes(gates);
  }

  Value recurrent_gradient(Instruction* loop) {
    Value gates = loop->result(first_stack_), old = before(states_);
    if (layer_.kind != RecurrentKind::Gru) return contract(b_, gates, {0, 1}, old, {0, 1});
    Value zr = contract(b_, columns(b_, gates, 0, 2 * hidden_), {0, 1}, old, {0, 1}), product;
    if (resets_product()) {
      product = contract(b_, loop->result(first_stack_ + 1), {0, 1}, old, {0, 1});
    } else {
      RecurrentCell cell(b_, layer_.kind, layer_.options);
      Value reset = b_.binary(Opcode::Multiply, cell.gru_gate(columns(b_, sums_, hidden_, 2 * hidden_)), old);
      product = contract(b_, columns(b_, gates, 2 * hidden_, 3 * hidden_), {0, 1}, reset, {0, 1});
    }
    return b_.concatenate({zr, product}, 0);
  }

  // Peepholes of i and f look at the state before, that of o at the one after.
  void give_peepholes(Value gates) {
    Values made;
    for (int64_t i = 0; i < 3; ++i) {
      Value cells = i == 1 ? after(cells_) : before(cells_);
      Value product = b_.binary(Opcode::Multiply, columns(b_, gates, i * hidden_, (i + 1) * hidden_), cells);
      made.push_back(b_.reduce(Opcode::Add, product, {0, 1}, /*keep_dims=*/false));
    }
    v_.give_value(in_.peepholes, b_.concatenate(made, 0));
  }

  VectorJacobian& v_;
  GraphBuilder& b_;
  RecurrentLayer layer_;
  const RecurrentOperands& in_;
  int64_t hidden_;
  Value length_; // the number of steps
  Value sums_, states_, cells_;
  Values peepholes_;
  Value r_, r_reset_; // factors of the cotangents of the gates
  int first_stack_ = 0;
};

} // namespace

bool has_recurrent_rule(const Instruction& composite) {
  auto layer = read_recurrent(composite);
  if (!layer || layer->options.residuals) return false;
  const RecurrentOperands& in = layer->operands;
  if (in.w_scales || in.r_scales) return false;
  for (Value value : {in.x, in.w, in.r, in.b, in.h0, in.c0, in.peepholes, in.b_r})
    if (value && (!is_differentiable(value.type()) || value.dtype() != in.h0.dtype())) return false;
  return true;
}

void derive_recurrent(VectorJacobian& v) {
  RecurrentAdjoint(v, *read_recurrent(v.primal)).derive();
}

} // namespace firn::gradient
