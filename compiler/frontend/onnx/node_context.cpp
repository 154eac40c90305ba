// NodeContext: errors, inputs, checks and outputs.
#include "compiler/frontend/onnx/import/deciding_inputs.h"
#include "compiler/frontend/onnx/import/unbound_dims.h"
#include "compiler/frontend/onnx/import_context.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/graph/evaluate.h"

#include <algorithm>

namespace firn::onnx {

NodeContext::NodeContext(ImportState& state, Scope& scope, const wire::NodeProto& node, int index, int opset,
                         Region& region)
    : state_(&state), scope_(&scope), node_(&node), index_(index), opset_(opset), region_(&region) {}

const std::string& NodeContext::op() const {
  return node_->op_type();
}

std::string NodeContext::label() const {
  return scope_->frame().prefix + node_label(*node_, index_);
}

GraphBuilder NodeContext::builder() const {
  GraphBuilder builder(*region_);
  builder.set_location(location_);
  return builder;
}

void NodeContext::fail(std::string message) {
  if (!failed_ && by_shapes_) ++state_->errors_by_shapes;
  // The node is imported into a branch of an earlier If whose branches give values of different types. No run
  // need take both that branch and this node, so that the model may be right.
  if (state_->apart > 0)
    return fail_unsupported(std::move(message) + ", where an If before it gives values of another type");
  if (!failed_) state_->diagnostics.add(model_error(label() + ": " + std::move(message)));
  failed_ = true;
}

void NodeContext::fail_form(std::string message) {
  by_shapes_ = false;
  fail(std::move(message));
}

void NodeContext::fail_unsupported(std::string message) {
  if (!failed_) state_->diagnostics.add(unsupported_error(label() + ": " + std::move(message)));
  failed_ = true;
}

void NodeContext::fail_unknown(const Values& values, std::string message) {
  if (failed_) return;
  Diagnostic diagnostic = unsupported_error(label() + ": " + std::move(message));
  diagnostic.unknown_inputs = inputs_that_make(values, *state_);
  diagnostic.message += freezing_advice(diagnostic.unknown_inputs);
  state_->diagnostics.add(std::move(diagnostic));
  failed_ = true;
}

void NodeContext::warn(std::string message) {
  state_->warn(label() + ": " + std::move(message));
}

std::string NodeContext::input_label(int index) const {
  if (index < node_->input_size() && !node_->input(index).empty())
    return "input '" + node_->input(index) + "'";
  return "input " + std::to_string(index);
}

bool NodeContext::check(bool condition, std::string message) {
  if (!condition) fail(std::move(message));
  return condition && !failed_;
}

bool NodeContext::check_given(int index) {
  return check(has_input(index), "input " + std::to_string(index) + " is left out");
}

bool NodeContext::check_rank(int index, int rank) {
  Value value = input(index);
  return check(value && value.rank() == rank, input_label(index) + " is " +
                                                  (value ? value.type().to_string() : "absent") +
                                                  ", wants rank " + std::to_string(rank));
}

bool NodeContext::check_rank_at_least(int index, int rank) {
  Value value = input(index);
  return check(value && value.rank() >= rank, input_label(index) + " is " +
                                                  (value ? value.type().to_string() : "absent") +
                                                  ", wants rank " + std::to_string(rank) + " or more");
}

bool NodeContext::check_same_dtype(int index, int other) {
  Value a = input(index), b = input(other);
  return check(a && b && a.dtype() == b.dtype(),
               input_label(index) + " is " + (a ? a.type().to_string() : "absent") + ", " +
                   input_label(other) + " is " + (b ? b.type().to_string() : "absent") +
                   ": both must have one type");
}

bool NodeContext::check_dims(int index, const Ints& wanted) {
  Value value = input(index);
  bool fits = value && value.rank() == static_cast<int>(wanted.size());
  std::string text = "[";
  for (size_t i = 0; i < wanted.size(); ++i) {
    text += (i ? "," : "") + (wanted[i] < 0 ? std::string("?") : std::to_string(wanted[i]));
    fits = fits && (wanted[i] < 0 || value.type().dims[i] == Dim(wanted[i]));
  }
  return check(fits, input_label(index) + " is " + (value ? value.type().to_string() : "absent") +
                         ", wants dims " + text + "]");
}

bool NodeContext::check_scalar(int index) {
  Value value = input(index);
  bool one = value && value.type().is_static() && value.type().num_elements() == 1;
  return check(one, input_label(index) + " is " + (value ? value.type().to_string() : "absent") +
                        ", wants one element");
}

bool NodeContext::check_vector(int index) {
  Value value = input(index);
  return check(value && value.type().is_tensor() && value.rank() <= 1,
               input_label(index) + " is " + (value ? value.type().to_string() : "absent") +
                   ", wants a vector or a scalar");
}

std::optional<Ints> NodeContext::static_dims(Value value, std::string_view what) {
  if (!value || failed_) return std::nullopt;
  if (!value.type().is_tensor()) {
    fail(std::string(what) + " is " + value.type().to_string() + ", wants a tensor");
    return std::nullopt;
  }
  for (const Dim& dim : value.type().dims)
    if (!dim.is_static()) {
      fail_unsupported(std::string(what) + " is " + value.type().to_string() + ", " + op() +
                       " does not support symbolic dim '" + dim.extent.to_string() + "'" +
                       binding_advice({dim}));
      return std::nullopt;
    }
  return value.type().static_dims();
}

std::optional<Ints> NodeContext::static_dims(int index) {
  return static_dims(input(index), input_label(index));
}

std::optional<int64_t> NodeContext::static_dim(Value value, int axis, std::string_view what) {
  if (!value || failed_) return std::nullopt;
  std::string text = std::string(what) + " is " + value.type().to_string() + ", ";
  if (axis < 0 || axis >= value.rank()) {
    fail(text + "wants rank " + std::to_string(axis + 1) + " or more");
    return std::nullopt;
  }
  const Dim& dim = value.type().dims[static_cast<size_t>(axis)];
  if (dim.is_static()) return dim.value();
  fail_unsupported(text + op() + " does not support symbolic dim '" + dim.extent.to_string() + "'" +
                   binding_advice({dim}));
  return std::nullopt;
}

std::optional<int64_t> NodeContext::static_dim(int index, int axis) {
  return static_dim(input(index), axis, input_label(index));
}

std::optional<int> NodeContext::axis(int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  fail("axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
  return std::nullopt;
}

std::optional<std::vector<int>> NodeContext::axes(const Ints& axes, int rank) {
  std::vector<int> result;
  if (!check(axes.size() <= static_cast<size_t>(rank),
             std::to_string(axes.size()) + " axes are listed for rank " + std::to_string(rank)))
    return std::nullopt;
  for (int64_t each : axes) {
    auto found = axis(each, rank);
    if (!found) return std::nullopt;
    if (std::find(result.begin(), result.end(), *found) != result.end()) {
      fail("axis " + std::to_string(each) + " is listed twice");
      return std::nullopt;
    }
    result.push_back(*found);
  }
  return result;
}

LiteralRef NodeContext::constant(Value value) const {
  constexpr size_t kMaxBytes = size_t{1} << 20; // bytes of a constant that a broadcast makes
  if (value && value.def->is(Opcode::BroadcastInDim) && value.type().is_static()) {
    LiteralRef repeated = constant(value.def->operand(0));
    auto made = repeated ? evaluate_instruction(*value.def, {repeated}, kMaxBytes) : std::nullopt;
    return made ? (*made)[0] : nullptr;
  }
  if (!value || !value.def->is(Opcode::Constant)) return nullptr;
  const LiteralRef& literal = value.def->literal();
  return literal && !literal->is_opaque() ? literal : nullptr;
}

std::optional<Ints> NodeContext::constant_ints(Value value) const {
  auto literal = constant(value);
  if (!literal || (!is_integer(literal->dtype()) && literal->dtype() != DType::Bool)) return std::nullopt;
  return literal->to_ints();
}

std::optional<std::vector<double>> NodeContext::constant_doubles(Value value) const {
  auto literal = constant(value);
  if (!literal || literal->dtype() == DType::String || is_complex(literal->dtype())) return std::nullopt;
  std::vector<double> values(static_cast<size_t>(literal->num_elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = literal->get_double(static_cast<int64_t>(i));
  return values;
}

std::optional<std::vector<IntExpr>> NodeContext::known_ints(Value value) const {
  if (!value) return std::nullopt;
  return state_->known.find(value);
}

std::optional<Ints> NodeContext::required_constant_ints(int index) {
  if (failed_) return std::nullopt;
  Value value = input(index);
  if (!check_vector(index)) return std::nullopt;
  auto values = constant_ints(value);
  if (values) return values;
  if (constant(value))
    fail(input_label(index) + " is " + value.type().to_string() + ", wants integers");
  else
    fail_unknown({value},
                 input_label(index) + " must be constant, or computed from constants and static dims");
  return std::nullopt;
}

std::optional<std::vector<double>> NodeContext::required_constant_doubles(int index) {
  auto values = constant_doubles(input(index));
  if (!values)
    fail_unknown({input(index)},
                 input_label(index) + " must be constant, or computed from constants and static dims");
  return values;
}

std::optional<std::vector<Dim>> NodeContext::known_dims(int index) {
  if (failed_) return std::nullopt;
  auto values = known_ints(input(index));
  if (!values) {
    (void)required_constant_ints(index); // for its diagnostic
    if (!failed_) fail(input_label(index) + " has too many elements for a shape");
    return std::nullopt;
  }
  std::vector<Dim> dims;
  for (const IntExpr& value : *values) {
    bool negative = value.is_constant() ? value.value() < 0 : value.upper_bound() < 0;
    if (negative || !is_safe_dim(value)) {
      fail(input_label(index) + " holds " + value.to_string() + ", which is no extent of a dim");
      return std::nullopt;
    }
    dims.emplace_back(value);
  }
  return ImportState::with_counts(std::move(dims));
}

int NodeContext::num_outputs() const {
  int count = node_->output_size();
  while (count > 0 && node_->output(count - 1).empty()) --count;
  return count;
}

bool NodeContext::has_output(int index) const {
  return index < node_->output_size() && !node_->output(index).empty();
}

void NodeContext::set_output(int index, Value value) {
  if (!value || index < 0) return;
  if (static_cast<int>(outputs_.size()) <= index) outputs_.resize(static_cast<size_t>(index) + 1);
  outputs_[static_cast<size_t>(index)] = value;
}

} // namespace firn::onnx
