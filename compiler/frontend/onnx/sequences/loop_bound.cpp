// See loop_bound.h.
#include "compiler/frontend/onnx/sequences/loop_bound.h"

#include "compiler/frontend/onnx/dims/value_range.h"

#include <algorithm>
#include <cmath>

namespace firn::onnx {

namespace {

class LoopBound {
public:
  LoopBound(NodeContext& node, const Values& parameters, const Values& initial, const Step& step)
      : node_(node), parameters_(parameters), initial_(initial), step_(step) {}

  // An upper bound on the steps of a loop that goes on only while `condition` holds.
  std::optional<int64_t> by(Value condition, int depth = 0) const {
    if (!condition || depth > kDeepest) return std::nullopt;
    const Instruction& op = *condition.def;
    auto either = [&](Value lhs, Value rhs) {
      auto first = by(lhs, depth + 1), second = by(rhs, depth + 1);
      return first && second ? std::optional(std::min(*first, *second)) : first ? first : second;
    };
    switch (op.opcode()) {
    case Opcode::Reshape:
    case Opcode::Convert: return by(op.operand(0), depth + 1);
    case Opcode::And: return either(op.operand(0), op.operand(1));
    case Opcode::Select: return is_false(op.operand(2)) ? either(op.operand(0), op.operand(1)) : std::nullopt;
    case Opcode::If:
      if (!is_false(op.region(1).results()[static_cast<size_t>(condition.index)])) return std::nullopt;
      return either(op.operand(0), op.region(0).results()[static_cast<size_t>(condition.index)]);
    case Opcode::Compare: return by_compare(op);
    default: return std::nullopt;
    }
  }

private:
  static constexpr int kDeepest = 16;
  static constexpr int64_t kFar = int64_t{1} << 40;

  // A parameter plus a constant, in integers of at least `bits` bits.
  struct Affine {
    size_t parameter;
    int64_t offset;
    int bits;
  };

  // Whether integers of so many bits, signed or not, hold the number.
  static bool is_held(int64_t number, int bits) { return bits > 40 || number < int64_t{1} << (bits - 1); }

  bool is_false(Value value) const { return node_.constant_ints(value) == Ints{0}; }

  std::optional<int64_t> number(Value value) const {
    auto known = node_.constant_ints(value);
    if (!known || known->size() != 1 || (*known)[0] < -kFar || (*known)[0] > kFar) return std::nullopt;
    return (*known)[0];
  }

  // The range of an integer, as far as it is known.
  std::optional<int64_t> min(Value value) const { return near(range_of(node_, value).min); }
  std::optional<int64_t> max(Value value) const { return near(range_of(node_, value).max); }
  static std::optional<int64_t> near(double end) {
    return std::abs(end) <= kFar ? std::optional(static_cast<int64_t>(end)) : std::nullopt;
  }

  std::optional<Affine> affine(Value value, int depth = 0) const {
    auto found = std::find(parameters_.begin(), parameters_.end(), value);
    if (found != parameters_.end())
      return Affine{static_cast<size_t>(found - parameters_.begin()), 0, bit_width(value.dtype())};
    const Instruction& op = *value.def;
    if (depth > kDeepest) return std::nullopt;
    bool integer = is_integer(value.dtype());
    auto in_type = [&](std::optional<Affine> from, int64_t offset) {
      if (from)
        from = Affine{from->parameter, from->offset + offset, std::min(from->bits, bit_width(value.dtype()))};
      return from;
    };
    if (op.is(Opcode::Reshape) || (op.is(Opcode::Convert) && integer && is_integer(op.operand(0).dtype())))
      return in_type(affine(op.operand(0), depth + 1), 0);
    if (!integer || !op.is(Opcode::Add)) return std::nullopt;
    for (int side = 0; side < 2; ++side)
      if (auto offset = number(op.operand(side)))
        if (auto rest = affine(op.operand(1 - side), depth + 1)) return in_type(rest, *offset);
    return std::nullopt;
  }

  // The bound from a comparison that wants `value` < `bound` + `beyond`.
  std::optional<int64_t> below(Value value, Value bound, int64_t beyond) const {
    auto at = affine(value);
    auto limit = at && is_integer(bound.dtype()) ? max(bound) : std::nullopt;
    if (!limit) return std::nullopt;
    int64_t first = 0, growth = 1; // for the parameter that counts the steps
    int bits = at->bits;
    if (at->parameter > 0) {
      if (at->parameter < 2) return std::nullopt;
      auto start = min(initial_[at->parameter - 2]);
      auto next = affine(step_.state[at->parameter - 2]);
      if (!start || !next || next->parameter != at->parameter || next->offset < 1) return std::nullopt;
      first = *start;
      growth = next->offset;
      bits = std::min(bits, next->bits);
    }
    // A value that wraps would be below the limit again.
    if (!is_held(*limit + beyond + growth + std::abs(at->offset), bits)) return std::nullopt;
    // In step t, counted from 0, the value is first + t * growth + offset; the loop ends after the first step
    // in which that is not below the limit.
    int64_t distance = *limit + beyond - first - at->offset;
    return 1 + std::max<int64_t>(0, (distance + growth - 1) / growth);
  }

  std::optional<int64_t> by_compare(const Instruction& compare) const {
    std::string_view direction = compare.attributes().word("direction");
    Value lhs = compare.operand(0), rhs = compare.operand(1);
    if (direction == "lt") return below(lhs, rhs, 0);
    if (direction == "le") return below(lhs, rhs, 1);
    if (direction == "gt") return below(rhs, lhs, 0);
    if (direction == "ge") return below(rhs, lhs, 1);
    return std::nullopt;
  }

  NodeContext& node_;
  const Values &parameters_, &initial_;
  const Step& step_;
};

} // namespace

std::optional<int64_t> steps_allowed(NodeContext& node, const Values& parameters, const Values& initial,
                                     const Step& step) {
  return LoopBound(node, parameters, initial, step).by(step.go_on);
}

} // namespace firn::onnx
