// Makers of composites: ops with a name that targets have kernels for, and a reference body of plain ops that
// says what they mean. Frontends and passes that recover composites from decompositions make them here, so
// that both agree.
//
// Operands, attributes and results, by name ("?": optional; d: a dim's number):
//   softmax, log_softmax  x {dim = d}: over one dim. Bodies of f16 and bf16 compute in f32.
//   layer_norm            x, scale, bias? {dim = d, epsilon = e, stash = f32}: over dims d and up; scale and
//                         bias broadcast to x. {statistics = true} adds two results, mean and 1/deviation,
//                         of dtype stash and extents 1
//   rms_norm              x, scale {dim, epsilon, stash}: the result has scale's dtype
//   instance_norm         x [N,C,...], scale [C], bias [C] {epsilon}: over dims 2 and up
//   group_norm            x [N,C,...], scale [C], bias [C] {groups = g, epsilon, stash}
//   batch_norm            x [N,C,...], scale, bias {epsilon}: over dim 0 and dims 2 and up; scale and bias
//                         broadcast to x. Results y, mean and variance, these of extents 1 along those dims;
//                         all in x's dtype, f32 or wider
//   gelu                  x {approximate = none|tanh}
//   silu                  x, as hard_swish and mish
//   lstm, gru, rnn        see RecurrentOptions
//   softmax_cross_entropy, negative_log_likelihood  see class_losses.h
//   resample              see resample.h
//   pack                  see packing.h
//   tree_ensemble         see tree_ensemble.h
//   blocked_dot           see blocked_dot.h
// `stash` is the dtype of statistics and of all that is computed before the result, f32 or wider for floats
// that are narrower.
#pragma once

#include "compiler/graph/builder.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace firn {

// Writes a body: gets its builder and parameters, returns its results.
using CompositeBody = std::function<std::vector<Value>(GraphBuilder&, const std::vector<Value>&)>;

// A composite `name` over `operands`, with results of `types`, which the body's results must have.
Instruction* make_composite(GraphBuilder& builder, std::string_view name, std::vector<Value> operands,
                            std::vector<Type> types, Attributes attributes, const CompositeBody& body);
// A while op over `initial`; the bodies may use outside values.
Instruction* make_while(GraphBuilder& builder, std::vector<Value> initial, const CompositeBody& condition,
                        const CompositeBody& body);
// True for a composite of this name.
bool is_composite(const Instruction& instruction, std::string_view name);

Value make_softmax(GraphBuilder& builder, Value x, int dim);
Value make_log_softmax(GraphBuilder& builder, Value x, int dim);
// `bias` may be null. Results: y, and with `statistics` also mean and 1/deviation.
Instruction* make_layer_norm(GraphBuilder& builder, Value x, Value scale, Value bias, int dim, double epsilon,
                             DType stash, bool statistics = false);
Value make_rms_norm(GraphBuilder& builder, Value x, Value scale, int dim, double epsilon, DType stash);
Value make_instance_norm(GraphBuilder& builder, Value x, Value scale, Value bias, double epsilon);
Value make_group_norm(GraphBuilder& builder, Value x, Value scale, Value bias, int64_t groups, double epsilon,
                      DType stash);
Instruction* make_batch_norm(GraphBuilder& builder, Value x, Value scale, Value bias, double epsilon);
Value make_gelu(GraphBuilder& builder, Value x, bool tanh_approximation);
Value make_silu(GraphBuilder& builder, Value x);
Value make_hard_swish(GraphBuilder& builder, Value x);
Value make_mish(GraphBuilder& builder, Value x);

// The dtype of sums of a dtype's elements: half precision is too narrow for these.
DType accumulator_dtype(DType dtype);
// log(1 + exp(x)), without overflow; plain ops.
Value softplus(GraphBuilder& builder, Value x);
// Elements [start, limit) of one dim, all of the others; a plain op.
Value slice_dim(GraphBuilder& builder, Value x, int dim, int64_t start, int64_t limit);
// The number of elements along dims as a scalar of dtype: a constant, or computed where dims are symbolic.
Value count_elements(GraphBuilder& builder, Value x, const std::vector<int64_t>& dims, DType dtype);

// The options of a recurrent layer. A composite processes one direction over a whole sequence.
//
// All: x [seq,batch,in], weights w and r with the gates stacked in dim 0, h the hidden size, first state h0
// [batch,h]; results y [seq,batch,h] and the last state y_h [batch,h]. Attributes: hidden = h, direction =
// forward|reverse, clip = c (only if there is one: bounds what enters the activations of gates and candidates
// to [-c, c], but not lstm's output activation), and unless the activations are the default ones, activations
// = "sigmoid tanh tanh" with activation_alpha and activation_beta, one number per activation. With
// {sequence_lens = true} the last operand holds each batch entry's length as i32[batch]: later steps keep the
// state and give y = 0.
//   lstm  x, w [4h,in], r [4h,h], b [4h], h0, c0 [batch,h], p [3h] if {peepholes = true}, lens?; gates in the
//         order i o f c, peepholes i o f; {input_forget = true} makes f = 1 - i. Results y, y_h, y_c.
//         Activations: gates, candidate, output
//   gru   x, w [3h,in], r [3h,h], b [3h], h0, b_r [h] if {linear_before_reset = true}, lens?; gates z r h.
//         b is the sum of input and recurrent bias; with linear_before_reset the recurrent bias of gate h is
//         b_r: then h' = g(x wh + bh + rt * (h rh + b_r)), otherwise h' = g(x wh + bh + (rt * h) rh)
//   rnn   x, w [h,in], r [h,h], b [h], h0, lens?
// Weights may be i8 whose rows have scales, f32 of as many elements as dim 0 has: they stand behind w or r.
// With {residuals = true} more results hold what gradients need of every step: `gates` [seq,batch,sums*h],
// the sums that enter the gates before peepholes, b_r and activations, in the order of the gates (gru with
// linear_before_reset: z, r, x wh + bh, h rh); and lstm's `cells` [seq,batch,h], the states c after every
// step.
// With {projected = true} x is [seq,batch,gates*h], the gates' input part with its bias, and there is no w
// and no b.
struct RecurrentOptions {
  bool reverse = false;
  bool input_forget = false;
  bool linear_before_reset = false;
  bool residuals = false;
  double clip = 0; // 0: none
  // Names as ONNX spells them, in lower case: relu tanh sigmoid affine leakyrelu thresholdedrelu scaledtanh
  // hardsigmoid elu softsign softplus. Empty: sigmoid tanh tanh (lstm), sigmoid tanh (gru), tanh (rnn).
  std::vector<std::string> activations = {};
  std::vector<double> alpha = {}, beta = {}; // one per activation, read by those that have such parameters
};

struct RecurrentOperands {
  Value x, w, r, b, h0;     // w and b null: x is projected
  Value w_scales, r_scales; // scales of i8 weights; null: weights have none
  Value c0;                 // lstm
  Value peepholes;          // lstm, may be null
  Value b_r;                // gru with linear_before_reset
  Value lens;               // may be null
};

bool is_recurrent_activation(std::string_view name);
Instruction* make_lstm(GraphBuilder& builder, const RecurrentOperands& operands,
                       const RecurrentOptions& options);
Instruction* make_gru(GraphBuilder& builder, const RecurrentOperands& operands,
                      const RecurrentOptions& options);
Instruction* make_rnn(GraphBuilder& builder, const RecurrentOperands& operands,
                      const RecurrentOptions& options);

} // namespace firn
