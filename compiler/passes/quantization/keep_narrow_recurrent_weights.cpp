// keep-narrow-recurrent-weights: reads quantised weights of recurrent layers as they are stored.
//
//   %r = dequantize %i, %s {axis = 0}                                  %i : i8[1024,256], constant
//   %y:3 = composite %x, %r, %h, %c {name = lstm, projected = true}
//     ->
//   %y:3 = composite %x, %i, %s, %h, %c {name = lstm, projected = true}
//
// A step takes as long as its weights take to come, and the object has the bytes: they are widened in
// registers, and the sums of a gate are scaled, which rounds otherwise than the model says.
//
// - Requires: constants folded, but not those that widen bytes; inputs projected, for which dots are better.
// - Establishes: nothing that later passes rely on.
// - Breaks: nothing.
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/quantization/quantized_values.h"
#include "compiler/passes/recurrent_layers.h"

namespace firn {
namespace {

// One scale for each row of [rows, k].
Value scales_of_rows(GraphBuilder& b, const Dequantized& weights, const Type& rows) {
  auto found = channel_parameter(b, weights, weights.scale);
  if (!found || found->dim > 0) return {};
  LiteralRef scales = known_numbers(make_broadcast(b, found->source, rows, first_dims(found->dim + 1)));
  return scales ? b.constant(scales) : Value{};
}

bool make_narrow(GraphBuilder& b, Value& weights, Value& scales) {
  if (!weights || scales || weights.dtype() != DType::F32 || !weights.type().is_static()) return false;
  auto from = dequantized(weights);
  if (!from || !from->scale) return false;
  Value bytes = as_signed_bytes(b, *from);
  Value found = scales_of_rows(b, *from, Type::tensor(DType::F32, {weights.type().dims[0]}));
  if (!bytes || !found) return false;
  weights = bytes;
  scales = found;
  return true;
}

bool keep_narrow(GraphBuilder& b, RecurrentLayer& layer) {
  RecurrentOperands& o = layer.operands;
  bool has_narrow_inputs = make_narrow(b, o.w, o.w_scales);
  return make_narrow(b, o.r, o.r_scales) || has_narrow_inputs;
}

} // namespace

bool keep_narrow_recurrent_weights(Module& module, const PassOptions& options) {
  return !options.goals.strict_math() && rewrite_recurrent_layers(module, options, keep_narrow);
}

} // namespace firn
