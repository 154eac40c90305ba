// join-biases: a bias in steps of the sums it follows joins the integers that these start from, on machines
// whose memory is dear.
//
//   %i = add %sums, broadcast(%zeros)                  %i = add %sums, broadcast(%both)
//   %f = convert %i {to = f32}                   ->    %f = convert %i {to = f32}
//   %p = multiply %f, broadcast(%scales)               %p = multiply %f, broadcast(%scales)
//   %y = add %p, broadcast(%bias)
//
// Exporters quantise a bias by the product of the factors' scales, so that it is a whole number of these:
// %both = %zeros + %bias / %scales, if that is exact but for the rounding of %bias itself. A channel then has
// two constants rather than three.
//
// - Requires: scales and biases are constants.
// - Establishes, breaks: nothing.
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/graph_forms.h"

#include <algorithm>
#include <cmath>

namespace firn {
namespace {

constexpr double kUlp = 0x1p-23;       // relative error of a number that is rounded to f32
constexpr double kMaxBias = 0x1p29;    // leaves room in i32 for the sums
constexpr int64_t kMaxSteps = 1 << 13; // products of bytes that a sum may have

// Numbers of the channels of a result: a constant, broadcast over the other dims.
struct PerChannel {
  Value constant;
  std::vector<int64_t> dims; // the result has the constant's dims there

  static std::optional<PerChannel> of(Value value) {
    PerChannel found{value, {}};
    if (value.def->is(Opcode::BroadcastInDim)) {
      found = {value.def->operand(0), value.def->attributes().ints("dims")};
    } else {
      for (int d = 0; d < value.type().rank(); ++d) found.dims.push_back(d);
    }
    const Literal* literal = constant_literal(found.constant);
    if (!literal || !literal->values_may_be_used() || literal->num_elements() == 0) return std::nullopt;
    return found;
  }
  int64_t count() const { return constant.def->literal()->num_elements(); }
  double at(int64_t i) const { return constant.def->literal()->get_double(count() == 1 ? 0 : i); }
  bool is_like(const PerChannel& other) const {
    return constant.type().dims == other.constant.type().dims && dims == other.dims;
  }
};

// The operand of an addition or product that is constant, and the other one.
struct WithConstant {
  Value value;
  PerChannel constant;
  static std::optional<WithConstant> of(const Instruction& instruction) {
    for (int i : {1, 0})
      if (auto constant = PerChannel::of(instruction.operand(i)))
        return WithConstant{instruction.operand(1 - i), *constant};
    return std::nullopt;
  }
};

// Whether so few bytes are summed that i32 has room for a bias beside them.
bool sums_few_bytes(const Instruction& sums) {
  if (!sums.is(Opcode::Dot) && !sums.is(Opcode::Convolution)) return false;
  for (Value factor : sums.operands())
    if (!is_integer(factor.dtype()) || bit_width(factor.dtype()) > 8) return false;
  if (!sums.operand(1).type().is_static() || sums.type().dtype != DType::I32) return false;
  int64_t steps = 1;
  if (sums.is(Opcode::Dot)) {
    for (int64_t d : sums.attributes().ints("rhs_contract"))
      steps *= sums.operand(1).dim(static_cast<int>(d));
  } else {
    for (int d = 1; d < sums.operand(1).rank(); ++d) steps *= sums.operand(1).dim(d);
  }
  return steps <= kMaxSteps;
}

// The biases in steps of the scales; nothing if one of them is no whole number of steps.
std::optional<std::vector<int64_t>> whole_steps(const PerChannel& bias, const PerChannel& scales) {
  std::vector<int64_t> steps;
  for (int64_t i = 0; i < bias.count(); ++i) {
    double of = bias.at(i), step = scales.at(i), number = std::nearbyint(of / step);
    if (!(std::abs(number) <= kMaxBias) || !(std::abs(number * step - of) <= kUlp * std::abs(of)))
      return std::nullopt;
    steps.push_back(static_cast<int64_t>(number));
  }
  return steps;
}

Value join(Instruction& add) {
  if (!add.is(Opcode::Add) || !add.type().is_tensor() || add.type().dtype != DType::F32) return {};
  auto bias = WithConstant::of(add);
  if (!bias || !bias->value.def->is(Opcode::Multiply) || !has_one_use(bias->value)) return {};
  Instruction& product = *bias->value.def;
  auto scaled = WithConstant::of(product);
  if (!scaled || !scaled->value.def->is(Opcode::Convert) || !has_one_use(scaled->value)) return {};
  const PerChannel& scales = scaled->constant;
  if (!bias->constant.is_like(scales) && scales.count() != 1) return {};
  Instruction& convert = *scaled->value.def;
  Instruction& start = *convert.operand(0).def;
  if (!start.is(Opcode::Add) || start.type().dtype != DType::I32 || !has_one_use(start.result())) return {};
  auto zeros = WithConstant::of(start);
  if (!zeros || !zeros->constant.is_like(bias->constant) || !sums_few_bytes(*zeros->value.def)) return {};
  auto steps = whole_steps(bias->constant, scales);
  if (!steps) return {};
  for (size_t i = 0; i < steps->size(); ++i) {
    (*steps)[i] += static_cast<int64_t>(zeros->constant.at(static_cast<int64_t>(i)));
    if (std::abs(static_cast<double>((*steps)[i])) > kMaxBias) return {};
  }
  GraphBuilder b(*add.parent(), &add);
  b.set_location(add.location());
  Value both =
      b.constant(Literal::of<int64_t>(DType::I32, zeros->constant.constant.type().static_dims(), *steps));
  if (!(both.type().dims == start.type().dims))
    both = make_broadcast(b, both, start.type(), zeros->constant.dims);
  Value sums = b.op(Opcode::Add, {zeros->value, both});
  return b.op(Opcode::Multiply,
              {b.convert(sums, DType::F32), product.operand(product.operand(0) == scaled->value ? 1 : 0)});
}

} // namespace

bool join_biases(Module& module, const PassOptions& options) {
  if (!options.target || !plan::saves_memory(*options.target) || options.goals.strict_math()) return false;
  return rewrite_module(module, options,
                        [](Instruction& instruction, const PassOptions&) { return join(instruction); });
}

} // namespace firn
