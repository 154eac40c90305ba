// fold-conv-scales: folds scales and biases per channel into the weights of convolutions and dots.
//
//   %c = convolution %x, %w                  %v = multiply %w, broadcast(%s)
//   %b = add %c, broadcast(%bias)      ->    %c = convolution %x, %v
//   %y = multiply %b, broadcast(%s)          %y = add %c, multiply(broadcast(%bias), broadcast(%s))
//
// %w, %bias and %s are constant; what is made of them is left to fold-constants and simplify-algebra. Rules,
// with conv linear in its weights and c, s constant per output channel (or one number):
//   conv(x, w) * s = conv(x, w * s)            conv(x, w) / s = conv(x, w / s)
//   (conv(x, w) + c) * s = conv(x, w) * s + c * s
//   (conv(x, w) + c) + d = conv(x, w) + (c + d)
//   conv(x * s, w) = conv(x, w * s)   with s per input channel: padding stays zero under scaling
// Sums round differently by some ulp; strict maths keeps the order of the model.
//
// - Requires: constants folded, broadcasts canonical.
// - Establishes: a contraction with constant weights is followed by at most one addition of constants and no
//   multiplication.
// - Breaks: weights no longer are initializers by name alone.
#include "compiler/graph/producers.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace firn {
namespace {

// Looks through what simplify-algebra would hoist: elementwise ops on broadcasts along one dim.
std::optional<ChannelValue> channel_constant(Value value, GraphBuilder& builder) {
  return is_constant_expression(value) ? channel_value(value, builder) : std::nullopt;
}

// The dim of a contraction's constant operand that a dim of its result or of its input runs along.
struct WeightDim {
  int operand;
  int64_t dim;
};

// The number of the contraction's constant operand; -1 if it has none that scales can be folded into.
int constant_operand(const Instruction& contraction) {
  if (is_constant_expression(contraction.operand(1))) return 1;
  return contraction.is(Opcode::Dot) && is_constant_expression(contraction.operand(0)) ? 0 : -1;
}

// The dims of a dot's operand that are neither batch nor contracted.
std::vector<int64_t> free_dims(const Instruction& dot, int operand) {
  const std::vector<int64_t>& batch = dot.attributes().ints(operand ? "rhs_batch" : "lhs_batch");
  const std::vector<int64_t>& contract = dot.attributes().ints(operand ? "rhs_contract" : "lhs_contract");
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < dot.operand(operand).rank(); ++d)
    if (!contains(batch, d) && !contains(contract, d)) dims.push_back(d);
  return dims;
}

// The weights' dim that result dim `dim` runs along; -1 stands for every dim.
std::optional<WeightDim> weight_of_result(const Instruction& contraction, int64_t dim) {
  int operand = constant_operand(contraction);
  if (operand < 0) return std::nullopt;
  if (dim < 0) return WeightDim{operand, -1};
  if (contraction.is(Opcode::Convolution)) return dim == 1 ? std::optional(WeightDim{1, 0}) : std::nullopt;
  auto first = static_cast<int64_t>(contraction.attributes().ints("lhs_batch").size());
  if (operand == 1) first += static_cast<int64_t>(free_dims(contraction, 0).size());
  std::vector<int64_t> free = free_dims(contraction, operand);
  if (dim < first || dim >= first + static_cast<int64_t>(free.size())) return std::nullopt;
  return WeightDim{operand, free[static_cast<size_t>(dim - first)]};
}

// Whether it is a contraction that scales can be folded into: floats of one dtype, read once.
bool is_contraction(Value value) {
  return firn::is_contraction(value.def->opcode()) && is_float(value.dtype()) && value.type().is_static() &&
         has_one_use(value) && constant_operand(*value.def) >= 0 &&
         value.def->operand(constant_operand(*value.def)).dtype() == value.dtype();
}

// Repeats the contraction with its constant operand combined with a constant along one dim.
Value rescaled(Instruction& contraction, WeightDim at, Value scale, Opcode opcode, Value other_operand,
               GraphBuilder& builder) {
  Value weights = contraction.operand(at.operand);
  GraphBuilder where = builder;
  where.set_location(weights.def->location());
  std::vector<int64_t> dims;
  if (at.dim >= 0) dims.push_back(at.dim);
  Value factors = make_broadcast(where, scale, weights.type(), dims);
  std::vector<Value> operands = {other_operand, other_operand};
  operands[static_cast<size_t>(at.operand)] = where.op(opcode, {weights, factors});
  builder.set_location(contraction.location());
  return builder.op(contraction.opcode(), operands, contraction.attributes());
}

struct Folding {
  Instruction& instruction;
  GraphBuilder builder;

  // `instruction` as an operand `x`, which may be a chain, and the constant combined with it.
  struct Match {
    Value x;
    Value constant; // the operand itself, with x's dims
    ChannelValue channel;
  };
  std::optional<Match> match(bool commutative) {
    for (int i = 0; i < (commutative ? 2 : 1); ++i) {
      Value constant = instruction.operand(1 - i);
      if (is_constant_expression(instruction.operand(i))) continue;
      if (auto channel = channel_constant(constant, builder))
        return Match{instruction.operand(i), constant, *channel};
    }
    return std::nullopt;
  }

  // Whether the value is a contraction, or one plus constants.
  static bool is_chain(Value value) {
    if (is_contraction(value)) return true;
    return value.def->is(Opcode::Add) && has_one_use(value) &&
           ((is_contraction(value.def->operand(0)) && is_constant_expression(value.def->operand(1))) ||
            (is_contraction(value.def->operand(1)) && is_constant_expression(value.def->operand(0))));
  }

  Value fold_scale(Opcode opcode) {
    auto found = match(opcode == Opcode::Multiply);
    if (!found || !is_chain(found->x)) return {};
    Value x = found->x, bias;
    if (x.def->is(Opcode::Add)) {
      int side = is_contraction(x.def->operand(0)) ? 0 : 1;
      bias = x.def->operand(1 - side);
      x = x.def->operand(side);
    }
    auto at = weight_of_result(*x.def, found->channel.dim);
    if (!at) return {};
    Value scaled =
        rescaled(*x.def, *at, found->channel.source, opcode, x.def->operand(1 - at->operand), builder);
    return bias ? builder.op(Opcode::Add, {scaled, builder.op(opcode, {bias, found->constant})}) : scaled;
  }

  Value fold_bias() {
    bool subtract = instruction.is(Opcode::Subtract);
    auto found = match(!subtract);
    if (!found || !is_chain(found->x)) return {};
    Value constant = found->constant;
    if (found->x.def->is(Opcode::Add)) {
      int side = is_contraction(found->x.def->operand(0)) ? 0 : 1;
      Value sum = builder.op(instruction.opcode(), {found->x.def->operand(1 - side), constant});
      return builder.op(Opcode::Add, {found->x.def->operand(side), sum});
    }
    return subtract ? builder.op(Opcode::Add, {found->x, builder.op(Opcode::Negate, {constant})}) : Value{};
  }

  // conv(x * s, w) and dot(x * s, w) with s in the weights; nothing if that is not their form.
  Value fold_input_scale() {
    int weights = constant_operand(instruction);
    if (weights < 0 || instruction.type().dtype == DType::F16)
      return {}; // unscaled sums may exceed f16's range
    Value input = instruction.operand(1 - weights);
    if (!input.def->is(Opcode::Multiply) || !has_one_use(input) ||
        input.dtype() != instruction.operand(weights).dtype())
      return {};
    for (int i : {0, 1}) {
      Value x = input.def->operand(i);
      auto channel = channel_constant(input.def->operand(1 - i), builder);
      if (!channel || is_constant_expression(x)) continue;
      WeightDim at{weights, -1};
      if (channel->dim >= 0) {
        auto dim = weight_of_input(channel->dim, weights);
        if (!dim) return {};
        at.dim = *dim;
      }
      return rescaled(instruction, at, channel->source, Opcode::Multiply, x, builder);
    }
    return {};
  }

  // The weights' dim that input dim `dim` runs along.
  std::optional<int64_t> weight_of_input(int64_t dim, int weights) const {
    const Attributes& attributes = instruction.attributes();
    if (instruction.is(Opcode::Convolution)) {
      if (dim != 1) return std::nullopt;
      int64_t groups = attributes.integer("groups", 1);
      if (groups == 1) return 1;
      bool depthwise = instruction.operand(1).dim(0) == groups && instruction.operand(1).dim(1) == 1;
      return depthwise ? std::optional<int64_t>(0) : std::nullopt;
    }
    const std::vector<int64_t>& here = attributes.ints(weights ? "lhs_contract" : "rhs_contract");
    const std::vector<int64_t>& there = attributes.ints(weights ? "rhs_contract" : "lhs_contract");
    for (size_t i = 0; i < here.size(); ++i)
      if (here[i] == dim) return there[i];
    return std::nullopt;
  }
};

Value fold(Instruction& instruction, const PassOptions& options) {
  if (options.goals.strict_math() || !instruction.type().is_tensor() || !is_float(instruction.type().dtype) ||
      !instruction.type().is_static())
    return {};
  Folding folding{instruction, GraphBuilder(*instruction.parent(), &instruction)};
  switch (instruction.opcode()) {
  case Opcode::Multiply:
  case Opcode::Divide: return folding.fold_scale(instruction.opcode());
  case Opcode::Add:
  case Opcode::Subtract: return folding.fold_bias();
  case Opcode::Convolution:
  case Opcode::Dot: return folding.fold_input_scale();
  default: return {};
  }
}

} // namespace

bool fold_conv_scales(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, fold);
}

} // namespace firn
