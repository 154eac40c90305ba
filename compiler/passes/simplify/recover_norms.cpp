// Patterns of recover-composites: layer and RMS normalisation. First the normalisation alone is recognised,
// with a scale of ones; multiplications and additions that follow are then taken in one by one.
#include "compiler/graph/composites.h"
#include "compiler/passes/simplify/recover.h"

#include <cmath>

namespace firn {
namespace {

// The dims are the last ones, extents of 1 aside, and do not vary: the first of them.
std::optional<int> first_trailing_dim(const Type& type, const std::vector<int64_t>& dims) {
  if (dims.empty()) return std::nullopt;
  int64_t next = dims.front();
  for (int64_t d = dims.front(); d < type.rank(); ++d) {
    const Dim& extent = type.dims[static_cast<size_t>(d)];
    if (!extent.is_static()) return std::nullopt;
    bool unit = extent.value() == 1;
    if (!unit && !contains(dims, d)) return std::nullopt;
    next = d;
  }
  return next + 1 == type.rank() ? std::optional(static_cast<int>(dims.front())) : std::nullopt;
}

// value = sqrt(v + epsilon), its inverse, or 1 / sqrt(v + epsilon).
struct Deviation {
  Value variance;
  double epsilon;
  bool inverse;
};

std::optional<Deviation> deviation(Value value) {
  value = strip_unit_reshapes(value);
  bool inverse = value.def->is(Opcode::Rsqrt);
  if (value.def->is(Opcode::Divide) && is_splat_of(value.def->operand(0), 1)) {
    value = strip_unit_reshapes(value.def->operand(1));
    inverse = true;
    if (!value.def->is(Opcode::Sqrt)) return std::nullopt;
  }
  if (!value.def->is(Opcode::Rsqrt) && !value.def->is(Opcode::Sqrt)) return std::nullopt;
  Value sum = strip_unit_reshapes(value.def->operand(0));
  if (!sum.def->is(Opcode::Add)) return std::nullopt;
  for (int i : {0, 1}) {
    auto epsilon = splat_value(sum.def->operand(1 - i));
    if (epsilon && *epsilon >= 0) return Deviation{sum.def->operand(i), *epsilon, inverse};
  }
  return std::nullopt;
}

// `square` = x * x
bool is_square_of(Value square, Value x) {
  return square && square.def->is(Opcode::Multiply) && square.def->operand(0) == x &&
         square.def->operand(1) == x;
}

// `centered` = x - mean(x) over dims: x.
Value uncentered(Value centered, const std::vector<int64_t>& dims) {
  Instruction* subtract = defined_by(centered, Opcode::Subtract);
  auto mean = subtract ? reduced_broadcast(subtract->operand(1)) : std::nullopt;
  if (!mean || mean->dims != dims) return {};
  Value x = subtract->operand(0);
  return mean_operand(mean->source, dims) == x ? x : Value{};
}

Value ones(GraphBuilder& builder, const Type& type, int dim) {
  std::vector<int64_t> dims;
  for (int d = dim; d < type.rank(); ++d) dims.push_back(type.dim(d));
  return builder.constant(Literal::splat(type.dtype, dims, 1));
}

// `value` varies along dims `dim` and up alone: a tensor of just those dims.
Value trailing_tensor(Value value, int dim, GraphBuilder& builder) {
  Type type = value.type();
  type.dims.erase(type.dims.begin(), type.dims.begin() + dim);
  Instruction* broadcast = defined_by(value, Opcode::BroadcastInDim);
  if (!broadcast) return {};
  std::vector<int64_t> dims = broadcast->attributes().ints("dims");
  for (int64_t& d : dims) {
    if (d < dim) return {};
    d -= dim;
  }
  return make_broadcast(builder, broadcast->operand(0), type, dims);
}

} // namespace

Value recover_norm(Instruction& instruction, GraphBuilder& builder) {
  bool divides = instruction.is(Opcode::Divide);
  if (!is_float(instruction.type().dtype)) return {};
  for (int i : {0, 1}) {
    if (divides && i == 1) break;
    Value numerator = instruction.operand(i);
    auto spread = reduced_broadcast(instruction.operand(1 - i));
    auto found = spread ? deviation(spread->source) : std::nullopt;
    if (!found || found->inverse == divides) continue;
    auto dim = first_trailing_dim(numerator.type(), spread->dims);
    if (!dim || !is_square_of(mean_operand(found->variance, spread->dims), numerator)) continue;
    DType stash = numerator.dtype();
    if (Value x = uncentered(numerator, spread->dims))
      return make_layer_norm(builder, x, ones(builder, x.type(), *dim), {}, *dim, found->epsilon, stash)
          ->result();
    return make_rms_norm(builder, numerator, ones(builder, numerator.type(), *dim), *dim, found->epsilon,
                         stash);
  }
  return {};
}

// norm(x, 1) * s = norm(x, s); norm(x, s) + b = norm(x, s, b), for s and b that vary along the normalised
// dims alone.
Value absorb_norm_affine(Instruction& instruction, GraphBuilder& builder) {
  bool scales = instruction.is(Opcode::Multiply);
  for (int i : {0, 1}) {
    Instruction* norm = instruction.operand(i).def;
    bool layer = is_composite(*norm, "layer_norm"), rms = is_composite(*norm, "rms_norm");
    if ((!layer && !rms) || norm->num_results() != 1 || !has_one_use(norm->result())) continue;
    if (norm->num_operands() != 2 || (rms && !scales)) continue;
    const Attributes& attributes = norm->attributes();
    bool unscaled = is_splat_of(norm->operand(1), 1);
    if (scales && !unscaled) continue;
    int dim = static_cast<int>(attributes.integer("dim"));
    Value tensor = trailing_tensor(instruction.operand(1 - i), dim, builder);
    if (!tensor) continue;
    double epsilon = attributes.number("epsilon", 0);
    DType stash = *std::get_if<DType>(attributes.find("stash"));
    if (rms) return make_rms_norm(builder, norm->operand(0), tensor, dim, epsilon, stash);
    Value scale = scales ? tensor : norm->operand(1), bias = scales ? Value{} : tensor;
    return make_layer_norm(builder, norm->operand(0), scale, bias, dim, epsilon, stash)->result();
  }
  return {};
}

} // namespace firn
