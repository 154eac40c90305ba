// Makes while ops, and unrolls loops whose state these cannot carry.
#include "compiler/frontend/onnx/sequences/loop.h"

#include "compiler/frontend/onnx/containers.h"
#include "compiler/frontend/onnx/dims/counted.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import/deciding_inputs.h"
#include "compiler/frontend/onnx/import/unbound_dims.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/onnx.pb.h"
#include "compiler/frontend/onnx/sequences/loop_bound.h"
#include "compiler/frontend/onnx/sequences/loop_growth.h"

#include <algorithm>

namespace firn::onnx {

namespace {

bool same_types(const Values& lhs, const Values& rhs) {
  if (lhs.size() != rhs.size()) return false;
  for (size_t i = 0; i < lhs.size(); ++i)
    if (!(lhs[i].type() == rhs[i].type())) return false;
  return true;
}

std::optional<Step> take_step(NodeContext& node, const LoopForm& form, Value number, Value go_on,
                              const Values& state) {
  auto step = form.body(number, go_on, state);
  for (size_t i = 0; step && i < step->rows.size(); ++i)
    if (!node.check(!is_container(step->rows[i]),
                    "a scan output has rows of " + step->rows[i].type().to_string() + ", wants tensors"))
      return std::nullopt;
  return step;
}

// The loop unrolled, for bodies that change the shape of the state or stop by constants. If data decide when
// to stop, sets `undecided` and makes nothing.
std::optional<LoopResults> unroll(NodeContext& node, const LoopForm& form, bool& undecided) {
  LoopResults results{form.state, {}};
  std::vector<Values> rows(static_cast<size_t>(form.num_rows));
  Value go_on = form.go_on ? form.go_on : node.constant(Literal::scalar(DType::Bool, 1));
  for (int64_t i = 0; i < *form.trips; ++i) {
    auto known = node.constant_ints(go_on);
    if (!known) return undecided = true, std::nullopt;
    if (!(*known)[0]) break;
    auto step = take_step(node, form, node.scalar_int(DType::I64, i), go_on, results.state);
    if (!step) return std::nullopt;
    results.state = step->state;
    if (step->go_on) go_on = step->go_on;
    for (size_t r = 0; r < rows.size(); ++r) rows[r].push_back(node.unsqueeze(step->rows[r], 0));
  }
  for (Values& each : rows) {
    if (each.empty()) {
      node.fail_unsupported("a scan output of a loop without steps");
      return std::nullopt;
    }
    results.rows.push_back(node.concatenate(each, 0));
  }
  return results;
}

// A zeroed buffer of rows, made before the loop.
Value row_buffer(Instruction* loop, const Type& type, const std::string& location) {
  Region& region = *loop->parent();
  Instruction* zero = region.append_constant(Literal::scalar(type.dtype, 0), loop);
  Instruction* buffer =
      region.append(Opcode::BroadcastInDim, {zero->result()}, {type}, {{"dims", Ints{}}}, loop);
  zero->set_location(location);
  buffer->set_location(location);
  return buffer->result();
}

Value write_row(NodeContext& node, Value buffer, Value row, Value step) {
  Values operands{buffer, node.unsqueeze(row, 0), step};
  for (int i = 0; i < row.rank(); ++i) operands.push_back(node.scalar_int(DType::I64, 0));
  return node.op(Opcode::DynamicUpdateSlice, std::move(operands));
}

// Whether all extents are bounded and the same in every step, so that a buffer has room for the rows.
bool has_bounds(const Type& type) {
  return std::all_of(type.dims.begin(), type.dims.end(), [](const Dim& dim) {
    return !dim.counted && dim.extent.lower_bound() >= 0 && dim.extent.upper_bound() < INT64_MAX;
  });
}

bool is_true(NodeContext& node, Value value) {
  return !value || node.constant_ints(value) == Ints{1};
}

// A larger bound on the steps of a loop that may end early comes from a type, not from the model.
constexpr int64_t kMaxSteps = int64_t{1} << 24;

// The loop as a while op. Sets `changes_type` if it cannot be one because a step changes the state's type.
class WhileMaker {
public:
  WhileMaker(NodeContext& node, const LoopForm& form)
      : node_(node), form_(form), state_(tensors_in(form.state)), bound_(form.bound) {}
  bool changes_type = false;
  bool asks() const { return asks_; }
  // The types of the state after a step.
  const std::vector<StateChange>& changes() const { return changes_; }
  const std::optional<Dim>& bound() const { return bound_; }

  std::optional<LoopResults> make() {
    Values initial{node_.scalar_int(DType::I64, 0),
                   form_.go_on ? form_.go_on : node_.constant(Literal::scalar(DType::Bool, 1))};
    initial.insert(initial.end(), state_.begin(), state_.end());
    std::vector<Type> types;
    for (Value value : initial) {
      if (!value) return std::nullopt;
      types.push_back(value.type());
    }
    loop_ = node_.make_typed(Opcode::While, initial, types);
    if (!loop_) return std::nullopt;
    Region &test = loop_->add_region(), &body = loop_->add_region();
    if (!fill_body(body, types) || !fill_test(test)) {
      node_.discard(loop_);
      return std::nullopt;
    }
    Values state, rows;
    auto states = static_cast<int>(state_.size());
    for (int i = 0; i < states; ++i) state.push_back(loop_->result(2 + i));
    for (int i = 0; i < form_.num_rows; ++i) rows.push_back(written(loop_->result(2 + states + i)));
    if (node_.failed()) return std::nullopt;
    return LoopResults{with_tensors(node_, form_.state, state), std::move(rows)};
  }

private:
  bool fill_body(Region& body, const std::vector<Type>& types) {
    Values parameters;
    for (const Type& type : types) parameters.push_back(body.add_parameter(type)->result());
    std::optional<Step> step;
    Values results;
    node_.in_region(body, [&] {
      Values state = with_tensors(node_, form_.state, {parameters.begin() + 2, parameters.end()});
      step = take_step(node_, form_, parameters[0], parameters[1], state);
      if (!step) return;
      Value next = node_.binary(Opcode::Add, parameters[0], node_.scalar_int(DType::I64, 1));
      Value go_on = step->go_on ? step->go_on : node_.constant(Literal::scalar(DType::Bool, 1));
      results = {next, go_on};
    });
    if (!step || node_.failed()) return false;
    Values next_state = tensors_in(step->state);
    auto allowed = steps_allowed(node_, parameters, state_, Step{step->go_on, next_state, step->rows});
    if (allowed && (!bound_ || bound_->extent.lower_bound() > *allowed)) bound_ = Dim(*allowed);
    asks_ = !is_true(node_, step->go_on) && !(step->go_on == parameters[1]);
    if (asks_ && bound_ && bound_->extent.upper_bound() > kMaxSteps) bound_.reset();
    for (size_t i = 0; i < step->state.size(); ++i)
      changes_.push_back({step->state[i].type(), !have_one_structure({step->state[i]}, {form_.state[i]})});
    if (!have_one_structure(step->state, form_.state) || !same_types(next_state, state_))
      return changes_type = true, false;
    results.insert(results.end(), next_state.begin(), next_state.end());
    return add_rows(body, *step, parameters[0], std::move(results));
  }

  // Whether every step up to the bound is taken.
  bool takes_all() { return !asks_ && is_true(node_, form_.go_on); }

  // Whether the trip count equals the bound.
  bool counts_to_bound() {
    auto known = node_.known_ints(form_.trip_count);
    return form_.trips || (known && (*known)[0] == bound_->extent);
  }

  // The rows of a buffer that steps have written.
  Value written(Value buffer) {
    if (*bound_ == Dim(0)) return node_.slice_dim(buffer, 0, 0, 0);
    if (takes_all() && counts_to_bound()) return buffer;
    return first_rows(node_, buffer, 0, within_bound(node_, loop_->result(0), bound_->extent.upper_bound()));
  }

  bool add_rows(Region& body, const Step& step, Value index, Values results) {
    if (form_.num_rows > 0 && !bound_) {
      node_.fail_unknown({node_.input(0), node_.input(1)},
                         "its scan outputs have as many rows as there are steps, which only a run knows" +
                             bounding_advice(node_.proto().output(0)));
      return false;
    }
    Values operands = loop_->operands();
    std::vector<Type> types;
    for (Value value : operands) types.push_back(value.type());
    for (Value row : step.rows) {
      if (!has_bounds(row.type()) || row.dtype() == DType::String) {
        node_.fail_unsupported("a scan output has rows of " + row.type().to_string() +
                               ", wants dims within bounds" + binding_advice(row.type().dims));
        return false;
      }
      Type buffer_type = Type::tensor(row.dtype(), row.type().dims);
      // The body writes a row even in a loop without steps, so that the buffer needs one.
      buffer_type.dims.insert(buffer_type.dims.begin(), *bound_ == Dim(0) ? Dim(1) : *bound_);
      if (!node_.check(is_sane_type(buffer_type),
                       "a scan output would be " + buffer_type.to_string() + ", more than Firn can hold"))
        return false;
      Value buffer = row_buffer(loop_, buffer_type, node_.location());
      operands.push_back(buffer);
      types.push_back(buffer.type());
      Value parameter = body.add_parameter(buffer.type())->result();
      node_.in_region(body, [&] { results.push_back(write_row(node_, parameter, row, index)); });
    }
    if (node_.failed()) return false;
    body.set_results(std::move(results));
    loop_->set_operands(std::move(operands));
    loop_->set_types(std::move(types));
    return true;
  }

  bool fill_test(Region& test) {
    Values parameters;
    for (int i = 0; i < loop_->num_operands(); ++i)
      parameters.push_back(test.add_parameter(loop_->type(i))->result());
    Value result;
    node_.in_region(test, [&] {
      if (form_.trip_count) result = node_.compare("lt", parameters[0], form_.trip_count);
      if (!form_.trip_count)
        result = parameters[1];
      else if (!takes_all())
        result = node_.binary(Opcode::And, parameters[1], result);
    });
    if (node_.failed() || !result) return false;
    test.set_results({result});
    return true;
  }

  NodeContext& node_;
  const LoopForm& form_;
  Values state_; // tensors in the initial state
  Instruction* loop_ = nullptr;
  bool asks_ = true;
  std::optional<Dim> bound_; // steps at most
  std::vector<StateChange> changes_;
};

} // namespace

std::optional<LoopResults> make_loop(NodeContext& node, const LoopForm& form) {
  if (form.trips == 0 && form.num_rows == 0) return LoopResults{form.state, {}};
  bool is_short = form.trips && *form.trips <= kMaxUnrolled, undecided = false;
  if (form.prefers_steps && is_short) {
    auto results = unroll(node, form, undecided);
    if (!undecided) return results;
  }
  WhileMaker maker(node, form);
  auto results = maker.make();
  if (results || node.failed()) return results;
  const std::optional<Dim>& bound = maker.bound();
  if ((!is_short || maker.asks()) && bound && bound->extent.upper_bound() <= kMaxSteps) {
    results = make_growing(node, form, maker.changes(), *bound);
    if (results || node.failed()) return results;
  }
  if (is_short && !undecided) {
    results = unroll(node, form, undecided);
    if (!undecided) return results;
  }
  node.fail_unknown(
      {form.trip_count, form.go_on},
      undecided ? "the condition depends on data, while the state changes its shape from step to step"
      : bound   ? "the state changes its type from step to step by more than one extent that grows"
                : "the state changes its type from step to step, and the number of steps has no "
                  "bound that is known" +
                    bounding_advice(node.proto().output(0)));
  return std::nullopt;
}

} // namespace firn::onnx
