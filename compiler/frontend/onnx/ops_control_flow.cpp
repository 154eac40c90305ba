// Importers of If, Loop and Scan. Conditions and trip counts known now are decided now; the rest become region ops.
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"

#include <algorithm>

namespace firn::onnx {

namespace {

size_t at(int64_t index) { return static_cast<size_t>(index); }

void set_outputs(NodeContext& node, const Values& values) {
  for (size_t i = 0; i < values.size(); ++i) node.set_output(static_cast<int>(i), values[i]);
}

// A bool scalar from a condition of one element.
Value condition_scalar(NodeContext& node, int input) {
  if (!node.check_scalar(input)) return {};
  return node.reshape(node.input(input), {});
}

void import_if(NodeContext& node) {
  const wire::GraphProto *then_graph = node.graph_attribute("then_branch"), *else_graph = node.graph_attribute("else_branch");
  Value condition = condition_scalar(node, 0);
  if (!condition || !then_graph || !else_graph) return;
  if (auto known = node.constant_ints(condition)) {
    auto results = node.import_subgraph((*known)[0] ? *then_graph : *else_graph, {});
    if (results) set_outputs(node, *results);
    return;
  }
  auto branch = [&](const wire::GraphProto& graph) {
    return [&](const Values&) { return node.import_subgraph(graph, {}).value_or(Values{}); };
  };
  Instruction* made = node.if_then_else(condition, branch(*then_graph), branch(*else_graph));
  for (int i = 0; made && i < made->num_results(); ++i) node.set_output(i, made->result(i));
}

// --- Loops. A while op carries [step, go on, state..., rows of scan outputs...]. What a step adds to a scan output is
// written into a row of a buffer, so that the number of steps must be known for those.

// Where the results of one step go.
struct Step {
  Value go_on;     // null: always
  Values state, rows;
};

// What differs between Loop and Scan.
struct LoopForm {
  Values state;                // at first
  int num_rows = 0;            // scan outputs
  std::optional<int64_t> trips;
  Value trip_count;            // i64 scalar; null: unlimited
  Value go_on;                 // bool scalar at first; null: true
  bool asks = true;            // the body decides on going on
  std::function<std::optional<Step>(Value step, Value go_on, const Values& state)> body;
};

// Rows of a step become one tensor: the rows that all steps wrote, in order.
struct LoopResults {
  Values state, rows;
};

constexpr int64_t kMaxUnrolled = 4096;

bool same_types(const Values& lhs, const Values& rhs) {
  if (lhs.size() != rhs.size()) return false;
  for (size_t i = 0; i < lhs.size(); ++i)
    if (!(lhs[i].type() == rhs[i].type())) return false;
  return true;
}

// The loop written out: for bodies that change the shape of the state, or decide by constants when to stop.
std::optional<LoopResults> unroll(NodeContext& node, const LoopForm& form) {
  LoopResults results{form.state, {}};
  std::vector<Values> rows(at(form.num_rows));
  Value go_on = form.go_on ? form.go_on : node.constant(Literal::scalar(DType::Bool, 1));
  for (int64_t i = 0; i < *form.trips; ++i) {
    auto known = node.constant_ints(go_on);
    if (!known) {
      node.fail_unsupported("the condition depends on data, while the state changes its shape from step to step");
      return std::nullopt;
    }
    if (!(*known)[0]) break;
    auto step = form.body(node.scalar_int(DType::I64, i), go_on, results.state);
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

// A zeroed buffer of `trips` rows, made before the loop.
Value row_buffer(Instruction* loop, Value row, int64_t trips, const std::string& location) {
  Region& region = *loop->parent();
  Instruction* zero = region.append_constant(Literal::scalar(row.dtype(), 0), loop);
  std::vector<Dim> dims = row.type().dims;
  dims.insert(dims.begin(), Dim(trips));
  Instruction* buffer = region.append(Opcode::BroadcastInDim, {zero->result()}, {Type::tensor(row.dtype(), dims)}, {{"dims", Ints{}}}, loop);
  zero->set_location(location);
  buffer->set_location(location);
  return buffer->result();
}

Value write_row(NodeContext& node, Value buffer, Value row, Value step) {
  Values operands{buffer, node.unsqueeze(row, 0), step};
  for (int i = 0; i < row.rank(); ++i) operands.push_back(node.scalar_int(DType::I64, 0));
  return node.op(Opcode::DynamicUpdateSlice, std::move(operands));
}

bool is_true(NodeContext& node, Value value) { return !value || node.constant_ints(value) == Ints{1}; }

// The loop as a while op. `changes_type` is set where it is none because a step changes the type of the state.
class WhileMaker {
public:
  WhileMaker(NodeContext& node, const LoopForm& form) : node_(node), form_(form) {}
  bool changes_type = false;

  std::optional<LoopResults> make() {
    Values initial{node_.scalar_int(DType::I64, 0), form_.go_on ? form_.go_on : node_.constant(Literal::scalar(DType::Bool, 1))};
    initial.insert(initial.end(), form_.state.begin(), form_.state.end());
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
    LoopResults results;
    auto states = static_cast<int>(form_.state.size());
    for (int i = 0; i < states; ++i) results.state.push_back(loop_->result(2 + i));
    for (int i = 0; i < form_.num_rows; ++i) results.rows.push_back(loop_->result(2 + states + i));
    return results;
  }

private:
  bool fill_body(Region& body, const std::vector<Type>& types) {
    Values parameters;
    for (const Type& type : types) parameters.push_back(body.add_parameter(type)->result());
    std::optional<Step> step;
    Values results;
    node_.in_region(body, [&] {
      step = form_.body(parameters[0], parameters[1], {parameters.begin() + 2, parameters.end()});
      if (!step) return;
      Value next = node_.binary(Opcode::Add, parameters[0], node_.scalar_int(DType::I64, 1));
      Value go_on = step->go_on ? step->go_on : node_.constant(Literal::scalar(DType::Bool, 1));
      results = {next, go_on};
    });
    if (!step || node_.failed()) return false;
    if (!same_types(step->state, form_.state)) return changes_type = true, false;
    results.insert(results.end(), step->state.begin(), step->state.end());
    asks_ = !is_true(node_, step->go_on) && !(step->go_on == parameters[1]);
    return add_rows(body, *step, parameters[0], std::move(results));
  }

  bool add_rows(Region& body, const Step& step, Value index, Values results) {
    bool counted = form_.trips && !asks_ && is_true(node_, form_.go_on);
    if (form_.num_rows > 0 && !counted) {
      node_.fail_unsupported("its scan outputs have as many rows as there are steps, which only a run knows");
      return false;
    }
    Values operands = loop_->operands();
    std::vector<Type> types;
    for (Value value : operands) types.push_back(value.type());
    for (Value row : step.rows) {
      if (!row.type().is_static() || row.dtype() == DType::String) {
        node_.fail_unsupported("a scan output has rows of " + row.type().to_string() + ", wants static dims (bind symbolic ones with --dim name=<n>)");
        return false;
      }
      Type buffer_type = Type::tensor(row.dtype(), row.type().dims);
      buffer_type.dims.insert(buffer_type.dims.begin(), Dim(*form_.trips));
      if (!node_.check(is_sane_type(buffer_type), "a scan output would be " + buffer_type.to_string() + ", more than Firn can hold")) return false;
      Value buffer = row_buffer(loop_, row, *form_.trips, node_.location());
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
    for (int i = 0; i < loop_->num_operands(); ++i) parameters.push_back(test.add_parameter(loop_->type(i))->result());
    Value result;
    node_.in_region(test, [&] {
      bool always = !asks_ && is_true(node_, form_.go_on);
      if (form_.trip_count) result = node_.compare("lt", parameters[0], form_.trip_count);
      if (!form_.trip_count)
        result = parameters[1];
      else if (!always)
        result = node_.binary(Opcode::And, parameters[1], result);
    });
    if (node_.failed() || !result) return false;
    test.set_results({result});
    return true;
  }

  NodeContext& node_;
  const LoopForm& form_;
  Instruction* loop_ = nullptr;
  bool asks_ = true;
};

std::optional<LoopResults> make_loop(NodeContext& node, const LoopForm& form) {
  if (form.trips == 0 && form.num_rows == 0) return LoopResults{form.state, {}};
  WhileMaker maker(node, form);
  auto results = maker.make();
  if (results || node.failed()) return results;
  if (!form.trips || *form.trips > kMaxUnrolled) {
    node.fail_unsupported("the state changes its type from step to step, and the number of steps is not a small constant");
    return std::nullopt;
  }
  return unroll(node, form);
}

// --- Loop.

void import_loop(NodeContext& node) {
  const wire::GraphProto* graph = node.graph_attribute("body");
  if (!graph) return;
  LoopForm form;
  for (int i = 2; i < node.num_inputs(); ++i) {
    if (!node.check(node.has_input(i), "input " + std::to_string(i) + " is left out")) return;
    form.state.push_back(node.input(i));
  }
  auto states = static_cast<int>(form.state.size());
  form.num_rows = graph->output_size() - 1 - states;
  if (!node.check(graph->input_size() == states + 2 && form.num_rows >= 0,
                  "its body has " + std::to_string(graph->input_size()) + " inputs and " + std::to_string(graph->output_size()) + " outputs, wants " +
                      std::to_string(states + 2) + " and at least " + std::to_string(states + 1)))
    return;
  if (node.has_input(0)) {
    if (!node.check_scalar(0)) return;
    form.trip_count = node.convert(node.reshape(node.input(0), {}), DType::I64);
    if (auto trips = node.constant_ints(form.trip_count)) form.trips = std::max<int64_t>(0, (*trips)[0]);
  }
  if (node.has_input(1)) {
    form.go_on = condition_scalar(node, 1);
    auto known = node.constant_ints(form.go_on);
    if (known && !(*known)[0]) form.trips = 0;
  }
  form.body = [&](Value step, Value go_on, const Values& state) -> std::optional<Step> {
    Values arguments{step, go_on};
    arguments.insert(arguments.end(), state.begin(), state.end());
    auto results = node.import_subgraph(*graph, arguments);
    if (!results) return std::nullopt;
    Value decision = (*results)[0];
    bool one = decision.dtype() == DType::Bool && decision.type().is_static() && decision.type().num_elements() == 1;
    if (!node.check(one, "its body's condition is " + decision.type().to_string() + ", wants a bool")) return std::nullopt;
    return Step{node.reshape(decision, {}), {results->begin() + 1, results->begin() + 1 + states}, {results->begin() + 1 + states, results->end()}};
  };
  auto results = make_loop(node, form);
  if (!results) return;
  set_outputs(node, results->state);
  for (size_t i = 0; i < results->rows.size(); ++i) node.set_output(states + static_cast<int>(i), results->rows[i]);
}

// --- Scan.

struct ScanForm {
  const wire::GraphProto* graph = nullptr;
  Values state, inputs;
  std::vector<int> axes;               // of inputs
  Ints input_directions, output_directions, output_axes;
};

// The element of a scan input that one step sees.
Value scan_element(NodeContext& node, Value input, int axis, bool backward, int64_t trips, Value step) {
  if (backward) step = node.binary(Opcode::Subtract, node.scalar_int(DType::I64, trips - 1), step);
  Values operands{input};
  auto sizes = node.static_dims(input, "a scan input");
  if (!sizes) return {};
  for (int i = 0; i < input.rank(); ++i) operands.push_back(i == axis ? step : node.scalar_int(DType::I64, 0));
  (*sizes)[at(axis)] = 1;
  return node.squeeze(node.op(Opcode::DynamicSlice, std::move(operands), {{"sizes", *sizes}}), axis);
}

// Steps of the rows tensor in the order and place that the attributes ask for.
Value place_rows(NodeContext& node, Value rows, bool backward, int64_t axis_attribute) {
  if (!rows) return {};
  if (backward) rows = node.op(Opcode::Reverse, {rows}, {{"dims", Ints{0}}});
  if (!rows) return {};
  auto axis = node.axis(axis_attribute, rows.rank());
  if (!axis) return {};
  Ints permutation;
  for (int i = 1; i < rows.rank(); ++i) permutation.push_back(i);
  permutation.insert(permutation.begin() + *axis, 0);
  return node.transpose(rows, std::move(permutation));
}

std::optional<Values> scan(NodeContext& node, const ScanForm& scan) {
  std::optional<int64_t> trips;
  for (size_t i = 0; i < scan.inputs.size(); ++i) {
    auto dims = node.static_dims(scan.inputs[i], "a scan input");
    if (!dims) return std::nullopt;
    int64_t extent = (*dims)[at(scan.axes[i])];
    if (!node.check(!trips || *trips == extent, "scan inputs have " + std::to_string(trips.value_or(0)) + " and " + std::to_string(extent) + " steps")) return std::nullopt;
    trips = extent;
  }
  if (!node.check(trips && *trips > 0, "wants scan inputs of at least one step")) return std::nullopt;
  LoopForm form;
  auto states = static_cast<int>(scan.state.size());
  form.state = scan.state;
  form.num_rows = scan.graph->output_size() - states;
  form.trips = trips;
  form.trip_count = node.scalar_int(DType::I64, *trips);
  if (!node.check(form.num_rows >= 0, "its body has fewer outputs than states")) return std::nullopt;
  form.body = [&](Value step, Value, const Values& state) -> std::optional<Step> {
    Values arguments = state;
    for (size_t i = 0; i < scan.inputs.size(); ++i)
      arguments.push_back(scan_element(node, scan.inputs[i], scan.axes[i], scan.input_directions[i] != 0, *trips, step));
    for (Value argument : arguments)
      if (!argument) return std::nullopt;
    auto results = node.import_subgraph(*scan.graph, arguments);
    if (!results) return std::nullopt;
    return Step{{}, {results->begin(), results->begin() + states}, {results->begin() + states, results->end()}};
  };
  auto results = make_loop(node, form);
  if (!results) return std::nullopt;
  Values outputs = results->state;
  for (size_t i = 0; i < results->rows.size(); ++i) {
    bool backward = i < scan.output_directions.size() && scan.output_directions[i] != 0;
    outputs.push_back(place_rows(node, results->rows[i], backward, i < scan.output_axes.size() ? scan.output_axes[i] : 0));
  }
  return outputs;
}

// Splits inputs from `first` on into state and scan inputs.
bool read_scan(NodeContext& node, int first, ScanForm& scan) {
  scan.graph = node.graph_attribute("body");
  int64_t count = node.required_int("num_scan_inputs");
  int64_t given = node.num_inputs() - first;
  if (!scan.graph || !node.check(count >= 1 && count <= given, "num_scan_inputs is " + std::to_string(count) + ", the node has " + std::to_string(given) + " inputs")) return false;
  for (int i = first; i < node.num_inputs(); ++i) {
    if (!node.check(node.has_input(i), "input " + std::to_string(i) + " is left out")) return false;
    (i - first < given - count ? scan.state : scan.inputs).push_back(node.input(i));
  }
  scan.input_directions = node.ints_attribute(node.opset() < 9 ? "directions" : "scan_input_directions", Ints(at(count), 0));
  scan.output_directions = node.ints_attribute("scan_output_directions");
  scan.output_axes = node.ints_attribute("scan_output_axes");
  return !node.failed() && node.check(static_cast<int64_t>(scan.input_directions.size()) == count, "directions do not match the scan inputs");
}

void import_scan(NodeContext& node) {
  ScanForm form;
  if (!read_scan(node, 0, form)) return;
  Ints axes = node.ints_attribute("scan_input_axes", Ints(form.inputs.size(), 0));
  if (!node.check(axes.size() == form.inputs.size(), "scan_input_axes do not match the scan inputs")) return;
  for (size_t i = 0; i < axes.size(); ++i) {
    auto axis = node.axis(axes[i], form.inputs[i].rank());
    if (!axis) return;
    form.axes.push_back(*axis);
  }
  auto outputs = scan(node, form);
  if (outputs) set_outputs(node, *outputs);
}

// Opset 8: everything has a batch dim in front, and each entry is scanned by itself along dim 1.
void import_scan_8(NodeContext& node) {
  if (node.has_input(0)) return node.fail_unsupported("sequence_lens is not supported");
  ScanForm whole;
  if (!read_scan(node, 1, whole)) return;
  std::optional<int64_t> batch;
  for (const Values* values : {&whole.state, &whole.inputs})
    for (Value value : *values) {
      auto dims = node.static_dims(value, "an input");
      if (!dims) return;
      bool fits = dims->size() >= (values == &whole.inputs ? 2u : 1u) && (!batch || *batch == (*dims)[0]);
      if (!node.check(fits, "an input is " + value.type().to_string() + ", wants batch " + std::to_string(batch.value_or(1)))) return;
      batch = (*dims)[0];
    }
  if (!node.check(batch && *batch >= 1 && *batch <= kMaxUnrolled, "wants a batch from 1 to " + std::to_string(kMaxUnrolled))) return;
  std::vector<Values> entries;  // by output
  for (int64_t b = 0; b < *batch; ++b) {
    ScanForm one = whole;
    for (Values* values : {&one.state, &one.inputs})
      for (Value& value : *values) {
        value = node.squeeze(node.slice_dim(value, 0, b, b + 1), 0);
        if (!value) return;
      }
    one.axes.assign(one.inputs.size(), 0);
    auto outputs = scan(node, one);
    if (!outputs) return;
    entries.resize(outputs->size());
    for (size_t i = 0; i < outputs->size(); ++i) entries[i].push_back(node.unsqueeze((*outputs)[i], 0));
  }
  for (size_t i = 0; i < entries.size(); ++i) node.set_output(static_cast<int>(i), node.concatenate(entries[i], 0));
}

constexpr OperatorRow kRows[] = {
  {"", "If", 1, kLatest, 1, 1, 1, kVariadic, "bool", import_if, "one of two subgraphs; a constant condition decides at once"},
  {"", "Loop", 1, kLatest, 0, kVariadic, 1, kVariadic, "i64 bool any", import_loop, "a subgraph repeated; scan outputs need a constant trip count"},
  {"", "Scan", 8, 8, 0, kVariadic, 1, kVariadic, "value", import_scan_8, "a subgraph over each batch entry's elements"},
  {"", "Scan", 9, kLatest, 1, kVariadic, 1, kVariadic, "any", import_scan, "a subgraph over the elements of sequences"},
};

} // namespace

std::span<const OperatorRow> control_flow_operators() { return kRows; }

} // namespace firn::onnx
