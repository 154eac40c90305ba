// The adjoint of loops whose number of steps has a bound. The forward loop is rebuilt with a stack for each
// carried value, [bound, dims], which holds what every step started from. The backward loop walks the steps
// from last to first, computes each once more from the stacks, and sweeps back over it. It carries the
// cotangents of the carried values, and the sums of those of values from outside. Stacks that nothing reads,
// such as those of results that steps only write to, go with eliminate-dead-code.
#include "compiler/graph/composites.h"
#include "compiler/graph/function_type.h"
#include "compiler/passes/gradient/reverse_sweep.h"

#include <cmath>

namespace firn::gradient {
namespace {

// Some loops count in floats.
std::optional<double> scalar_constant(Value value) {
  if (!value.def->is(Opcode::Constant) || value.rank() != 0 || value.dtype() == DType::String)
    return std::nullopt;
  double number = value.def->literal()->get_double(0);
  constexpr double kMaxSteps = 0x1p40;
  return std::fabs(number) <= kMaxSteps ? std::optional(number) : std::nullopt;
}

// The number of steps: at most `extent`, which is the value `limit`; exactly that if nothing else ends the
// loop.
struct Steps {
  IntExpr extent;
  Value limit; // a DimSize; null: the extent is a constant
  bool is_exact = false;
};

// Whether the carried value counts the steps, from 0.
bool counts_steps(const Instruction& loop, Value parameter) {
  const Region &test = loop.region(0), &body = loop.region(1);
  for (int i = 0; i < loop.num_operands(); ++i) {
    if (test.parameter(i) != parameter) continue;
    const Instruction& next = *body.results()[static_cast<size_t>(i)].def;
    return scalar_constant(loop.operand(i)) == 0 && next.is(Opcode::Add) &&
           next.operand(0) == body.parameter(i) && scalar_constant(next.operand(1)) == 1;
  }
  return false;
}

// The bound that one condition of a loop sets: that the number of steps is less than a constant or an extent.
std::optional<Steps> bound_of(const Instruction& loop, Value condition) {
  const Instruction& def = *condition.def;
  if (def.is(Opcode::And)) {
    auto steps = bound_of(loop, def.operand(0));
    if (!steps) steps = bound_of(loop, def.operand(1));
    if (steps) steps->is_exact = false;
    return steps;
  }
  if (!def.is(Opcode::Compare) || def.word("direction") != "lt" || !counts_steps(loop, def.operand(0)))
    return std::nullopt;
  Value limit = def.operand(1);
  if (auto constant = scalar_constant(limit))
    return Steps{static_cast<int64_t>(std::ceil(std::max(*constant, 0.0))), {}, true};
  if (!limit.def->is(Opcode::DimSize) || limit.def->parent() == &loop.region(0)) return std::nullopt;
  auto dim = static_cast<size_t>(limit.def->attributes().integer("dim"));
  return Steps{limit.def->operand(0).type().dims[dim].extent, limit, true};
}

// The bound that a check in the body sets: a run in which the number of a step is too large ends there.
std::optional<Steps> bound_by_check(const Instruction& loop) {
  const Region& body = loop.region(1);
  for (const auto& instruction : body.instructions()) {
    if (!instruction->is(Opcode::Clamp) || !instruction->attributes().flag("checked")) continue;
    for (int i = 0; i < loop.num_operands(); ++i) {
      bool is_number =
          instruction->operand(1) == body.parameter(i) && counts_steps(loop, loop.region(0).parameter(i));
      auto last = is_number ? scalar_constant(instruction->operand(2)) : std::nullopt;
      if (last && *last >= 0) return Steps{static_cast<int64_t>(*last) + 1, {}, false};
    }
  }
  return std::nullopt;
}

class LoopAdjoint {
public:
  LoopAdjoint(VectorJacobian& v, Steps steps)
      : v_(v), loop_(v.primal), steps_(std::move(steps)), count_(loop_.num_operands()),
        captured_(active_captured(loop_.region(1), v.activity())) {}

  void derive() {
    find_carried();
    if (steps_.extent == IntExpr(0)) return pass_on();
    make_forward();
    Instruction* back = make_backward();
    if (v_.refused()) return;
    for (size_t i = 0; i < carried_.size(); ++i) v_.give(carried_[i], back->result(1 + static_cast<int>(i)));
    for (size_t i = 0; i < captured_.size(); ++i)
      v_.give_value(captured_[i], back->result(static_cast<int>(1 + carried_.size() + i)));
    Region& region = *loop_.parent();
    for (int i = 0; i < count_; ++i) region.replace_uses(loop_.result(i), forward_->result(i));
  }

private:
  // The carried values that depend on active ones: at the start, or after some steps.
  void find_carried() {
    std::vector<bool> is_carried;
    for (int i = 0; i < count_; ++i)
      is_carried.push_back(v_.wants(i) && is_differentiable(loop_.operand(i).type()));
    Region& body = loop_.region(1);
    for (bool again = true; again;) {
      again = false;
      std::vector<Value> active = captured_;
      for (int i = 0; i < count_; ++i)
        if (is_carried[static_cast<size_t>(i)]) active.push_back(body.parameter(i));
      ReverseSweep sweep(body, active);
      for (int i = 0; i < count_; ++i) {
        auto index = static_cast<size_t>(i);
        Value next = body.results()[index];
        if (is_carried[index] || !sweep.is_active(next) || !is_differentiable(next.type())) continue;
        is_carried[index] = again = true;
      }
    }
    for (int i = 0; i < count_; ++i)
      if (is_carried[static_cast<size_t>(i)]) carried_.push_back(i);
  }

  void pass_on() {
    for (int i : carried_) v_.give(i, v_.dy(i));
  }

  // The loop with the number of steps done and the stacks behind its own values.
  void make_forward() {
    GraphBuilder b(*loop_.parent(), &loop_);
    std::vector<Value> initial = loop_.operands();
    initial.push_back(b.scalar(DType::I64, 0));
    for (Value value : loop_.operands()) {
      std::vector<Dim> dims = value.type().dims;
      dims.insert(dims.begin(), Dim(steps_.extent));
      initial.push_back(b.broadcast_to(b.scalar(value.dtype(), 0), dims));
    }
    auto own = [&](const std::vector<Value>& p) { return std::vector<Value>(p.begin(), p.begin() + count_); };
    auto condition = [&](GraphBuilder& c, const std::vector<Value>& p) {
      return c.region().inline_region(loop_.region(0), own(p));
    };
    auto body = [&](GraphBuilder& s, const std::vector<Value>& p) {
      std::vector<Value> results = s.region().inline_region(loop_.region(1), own(p));
      Value step = p[static_cast<size_t>(count_)], zero = s.scalar(DType::I64, 0);
      results.push_back(s.binary(Opcode::Add, step, s.scalar(DType::I64, 1)));
      for (int i = 0; i < count_; ++i) {
        Value value = p[static_cast<size_t>(i)];
        std::vector<Dim> row = value.type().dims;
        row.insert(row.begin(), Dim(1));
        std::vector<Value> operands{p[static_cast<size_t>(count_ + 1 + i)], s.reshape(value, row), step};
        operands.resize(operands.size() + static_cast<size_t>(value.rank()), zero);
        results.push_back(s.op(Opcode::DynamicUpdateSlice, std::move(operands)));
      }
      return results;
    };
    forward_ = make_while(b, std::move(initial), condition, body);
  }

  // The loop from the last step to the first; its number goes up.
  Instruction* make_backward() {
    GraphBuilder& b = v_.b;
    Value limit =
        steps_.limit ? steps_.limit : b.scalar(DType::I64, static_cast<double>(steps_.extent.value()));
    Value done = steps_.is_exact ? limit : forward_->result(count_);
    std::vector<Value> initial{b.scalar(DType::I64, 0)};
    for (int i : carried_) initial.push_back(v_.dy(i) ? v_.dy(i) : zeros_like(b, v_.y(i)));
    for (Value value : captured_) initial.push_back(zeros_like(b, value));
    auto condition = [&](GraphBuilder& c, const std::vector<Value>& p) {
      Value more = c.compare("lt", p[0], limit);
      if (!steps_.is_exact) more = c.op(Opcode::And, {more, c.compare("lt", p[0], done)});
      return std::vector<Value>{more};
    };
    auto body = [&](GraphBuilder& s, const std::vector<Value>& p) { return step_back(s, p, done); };
    return make_while(b, std::move(initial), condition, body);
  }

  std::vector<Value> step_back(GraphBuilder& s, const std::vector<Value>& p, Value done) {
    Value one = s.scalar(DType::I64, 1), next = s.binary(Opcode::Add, p[0], one);
    Value step = s.binary(Opcode::Subtract, done, next);
    Region& region = s.region();
    std::vector<Value> started;
    for (int i = 0; i < count_; ++i)
      started.push_back(
          s.op(Opcode::Gather, {forward_->result(count_ + 1 + i), step}, {{"axis", int64_t{0}}}));
    region.set_results(region.inline_region(loop_.region(1), started));
    std::vector<Value> active = captured_, cotangents{next};
    for (int i : carried_) active.push_back(started[static_cast<size_t>(i)]);
    if (auto refused = inline_active(region, active)) v_.refuse(*refused);
    ReverseSweep sweep(region, active);
    std::vector<Value> ended = region.results();
    for (size_t i = 0; i < carried_.size(); ++i)
      if (Value result = ended[static_cast<size_t>(carried_[i])]; sweep.is_active(result))
        sweep.seed(result, p[1 + i]);
    if (auto refused = sweep.run()) v_.refuse(*refused);
    for (int i : carried_) {
      Value value = started[static_cast<size_t>(i)], cotangent = sweep.cotangent(value);
      cotangents.push_back(cotangent ? cotangent : zeros_like(s, value));
    }
    for (size_t i = 0; i < captured_.size(); ++i) {
      Value sum = p[1 + carried_.size() + i], cotangent = sweep.cotangent(captured_[i]);
      cotangents.push_back(cotangent ? s.op(Opcode::Add, {sum, cotangent}) : sum);
    }
    return cotangents;
  }

  VectorJacobian& v_;
  Instruction& loop_;
  Steps steps_;
  int count_;                   // values that the loop carries
  std::vector<Value> captured_; // active values from outside that its body reads
  std::vector<int> carried_;    // carried values that have cotangents
  Instruction* forward_ = nullptr;
};

} // namespace

void derive_while(VectorJacobian& v) {
  for (Value operand : v.primal.operands())
    if (!operand.type().is_tensor() || operand.dtype() == DType::String)
      return v.refuse("it carries a value that is no tensor of numbers");
  auto steps = bound_of(v.primal, v.primal.region(0).results()[0]);
  if (!steps) steps = bound_by_check(v.primal);
  if (!steps) return v.refuse("the number of its steps has no bound that is a constant or an extent");
  LoopAdjoint(v, *steps).derive();
}

} // namespace firn::gradient
