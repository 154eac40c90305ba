// Importers of Loop and Scan, and the rows of control flow. Loops with known conditions and trip counts may
// be unrolled; others become region ops.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/containers.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/dims/value_range.h"
#include "compiler/frontend/onnx/import/attempt.h"
#include "compiler/frontend/onnx/import/branches.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/sequences/loop.h"

#include <algorithm>

namespace firn::onnx {

namespace {

size_t at(int64_t index) {
  return static_cast<size_t>(index);
}

void set_outputs(NodeContext& node, const Values& values) {
  for (size_t i = 0; i < values.size(); ++i) node.set_output(static_cast<int>(i), values[i]);
}

// --- Loop.

// Whether a subgraph, or one within it, makes or reads sequences or optionals.
bool has_containers(const wire::GraphProto& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(), [](const wire::NodeProto& node) {
    const std::string& op = node.op_type();
    if (op.starts_with("Sequence") || op.starts_with("Optional") || op.ends_with("ToSequence") ||
        op.ends_with("FromSequence"))
      return true;
    return std::any_of(node.attribute().begin(), node.attribute().end(),
                       [](const auto& attribute) { return has_containers(attribute.g()); });
  });
}

// Sets the trip count of the form, and the bounds of it that are known now. False after a failure.
bool read_trips(NodeContext& node, LoopForm& form) {
  if (!node.has_input(0)) return true;
  if (!node.check_scalar(0)) return false;
  form.trip_count = node.convert(node.reshape(node.input(0), {}), DType::I64);
  if (auto trips = node.constant_ints(form.trip_count)) form.trips = std::max<int64_t>(0, (*trips)[0]);
  auto known = node.known_ints(form.trip_count);
  if (form.trips)
    form.bound = Dim(*form.trips);
  else if (known && (*known)[0].lower_bound() >= 0 && is_safe_dim((*known)[0]) &&
           (*known)[0].upper_bound() < INT64_MAX)
    form.bound = ImportState::with_counts({(*known)[0]})[0];
  else if (auto max = max_of(node, form.trip_count)) {
    form.bound = Dim(*max);
    form.trip_count = within_bound(node, larger(node, form.trip_count, node.scalar_int(DType::I64, 0)), *max);
  }
  return true;
}

// Imports the body for one step. A step beyond `max`, for which buffers have no room, ends the run.
std::optional<Step> make_step(NodeContext& node, const wire::GraphProto& body, Value step, Value go_on,
                              const Values& state, std::optional<int64_t> max) {
  Values arguments{step, go_on};
  arguments.insert(arguments.end(), state.begin(), state.end());
  auto results = node.import_subgraph(body, arguments);
  if (!results) return std::nullopt;
  Value decision = (*results)[0];
  bool one = decision.type().is_tensor() && decision.dtype() == DType::Bool && decision.type().is_static() &&
             decision.type().num_elements() == 1;
  if (!node.check(one, "its body's condition is " + decision.type().to_string() + ", wants a bool"))
    return std::nullopt;
  decision = node.reshape(decision, {});
  if (max) {
    Value inside = within_bound(node, step, *max - 1);
    decision = both(node, decision, node.compare("ge", inside, node.scalar_int(DType::I64, 0)));
  }
  auto rows = results->begin() + 1 + static_cast<long>(state.size());
  return Step{decision, {results->begin() + 1, rows}, {rows, results->end()}};
}

// Whether a run takes a step at all, as a bool scalar.
Value starts(NodeContext& node, const LoopForm& form) {
  Value go_on = form.go_on ? form.go_on : node.constant(Literal::scalar(DType::Bool, 1));
  if (!form.trip_count) return go_on;
  return both(node, go_on, node.compare("gt", form.trip_count, node.scalar_int(DType::I64, 0)));
}

void import_loop(NodeContext& node) {
  const wire::GraphProto* graph = node.graph_attribute("body");
  if (!graph) return;
  LoopForm form;
  for (int i = 2; i < node.num_inputs(); ++i) {
    if (!node.check_given(i)) return;
    form.state.push_back(node.input(i));
  }
  auto states = static_cast<int>(form.state.size());
  form.num_rows = graph->output_size() - 1 - states;
  if (!node.check(graph->input_size() == states + 2 && form.num_rows >= 0,
                  "its body has " + std::to_string(graph->input_size()) + " inputs and " +
                      std::to_string(graph->output_size()) + " outputs, wants " + std::to_string(states + 2) +
                      " and at least " + std::to_string(states + 1)))
    return;
  if (!read_trips(node, form)) return;
  // The bound that --max gives by the name of the loop's first output; short loops need none.
  auto max = form.bound && form.bound->extent.upper_bound() <= kMaxUnrolled
                 ? std::nullopt
                 : given_bound(node, node.proto().output(0));
  if (max) form.bound = Dim(*max);
  if (node.has_input(1)) {
    form.go_on = condition_scalar(node, 1);
    auto known = node.constant_ints(form.go_on);
    if (known && !(*known)[0]) form.trips = 0;
  }
  form.prefers_steps =
      has_containers(*graph) || std::any_of(form.state.begin(), form.state.end(), is_container);
  form.body = [&](Value step, Value go_on, const Values& state) {
    return make_step(node, *graph, step, go_on, state, max);
  };
  Attempt attempt(node);
  auto results = make_loop(node, form);
  BranchErrors errors;
  attempt.end(errors);
  if (!errors.none()) {
    take_no_step(node, form.num_rows == 0 ? starts(node, form) : Value(), errors);
    results = LoopResults{form.state, {}};
  }
  if (!results || node.failed()) return;
  set_outputs(node, results->state);
  for (size_t i = 0; i < results->rows.size(); ++i)
    node.set_output(states + static_cast<int>(i), results->rows[i]);
}

// --- Scan.

struct ScanForm {
  const wire::GraphProto* graph = nullptr;
  Values state, inputs;
  std::vector<int> axes;               // scan axis of each input
  Ints input_directions;               // by input; not 0: from the end
  Ints output_directions, output_axes; // by scan output; empty: 0 for all
  Value length;                        // the number of steps that count, an i64 scalar; null: all
};

// The element of scan input `which` for one step. A step beyond `length` gets some element that exists: its
// results are left out.
Value scan_element(NodeContext& node, const ScanForm& scan, size_t which, Value step) {
  Value input = scan.inputs[which];
  int axis = scan.axes[which];
  bool backward = scan.input_directions[which] != 0;
  Value one = node.scalar_int(DType::I64, 1);
  if (backward || scan.length) {
    Value last = node.binary(Opcode::Subtract, scan.length ? scan.length : node.dim_size(input, axis), one);
    if (backward) step = node.binary(Opcode::Subtract, last, step);
    if (scan.length) step = larger(node, smaller(node, step, last), node.scalar_int(DType::I64, 0));
  }
  if (!input.type().is_static()) return node.op(Opcode::Gather, {input, step}, {{"axis", int64_t{axis}}});
  Values operands{input};
  auto sizes = node.static_dims(input, "a scan input");
  if (!sizes) return {};
  for (int i = 0; i < input.rank(); ++i)
    operands.push_back(i == axis ? step : node.scalar_int(DType::I64, 0));
  (*sizes)[at(axis)] = 1;
  return node.squeeze(node.op(Opcode::DynamicSlice, std::move(operands), {{"sizes", *sizes}}), axis);
}

// The rows reversed if `backward`, with the dim of steps moved to the axis of the attribute.
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

// Unless `counts` holds, replaces the results of a step by the state before it and rows of zeros.
void leave_out(NodeContext& node, Value counts, const Values& state, Values& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    Value& result = results[i];
    if (!result || !node.check(!is_container(result), "its body gives what is no tensor")) return;
    result = node.select(counts, result, i < state.size() ? state[i] : node.splat_like(result, 0));
  }
}

// The number of steps, which is the same for all scan inputs; a run may have to check that.
std::optional<Dim> common_steps(NodeContext& node, ScanForm& scan) {
  std::optional<Dim> trips;
  for (size_t i = 0; i < scan.inputs.size(); ++i) {
    Value& input = scan.inputs[i];
    std::vector<Dim> dims = input.type().dims;
    const Dim own = dims[at(scan.axes[i])];
    const Dim wanted = trips.value_or(own);
    dims[at(scan.axes[i])] = wanted;
    input = with_extents(node, input, dims);
    if (!input || !node.check(input.type().dims == dims, "scan inputs have " + wanted.extent.to_string() +
                                                             " and " + own.extent.to_string() + " steps"))
      return std::nullopt;
    trips = dims[at(scan.axes[i])];
  }
  if (!node.check(trips && trips->extent.upper_bound() > 0, "wants scan inputs of at least one step"))
    return std::nullopt;
  return trips;
}

// The final states and then the scan outputs; nothing after a failure.
std::optional<Values> scan(NodeContext& node, ScanForm scan) {
  std::optional<Dim> trips = common_steps(node, scan);
  if (!trips) return std::nullopt;
  LoopForm form;
  auto states = static_cast<int>(scan.state.size());
  form.state = scan.state;
  form.num_rows = scan.graph->output_size() - states;
  if (trips->is_static()) form.trips = trips->value();
  form.bound = trips;
  form.trip_count = node.dim_size(scan.inputs[0], scan.axes[0]);
  if (!node.check(form.num_rows >= 0, "its body has fewer outputs than states")) return std::nullopt;
  for (const Ints* list : {&scan.output_directions, &scan.output_axes})
    if (!node.check(list->empty() || static_cast<int64_t>(list->size()) == form.num_rows,
                    "attributes scan_output_directions and scan_output_axes want one number for each of " +
                        std::to_string(form.num_rows) + " scan outputs"))
      return std::nullopt;
  form.body = [&](Value step, Value, const Values& state) -> std::optional<Step> {
    Values arguments = state;
    for (size_t i = 0; i < scan.inputs.size(); ++i) arguments.push_back(scan_element(node, scan, i, step));
    for (Value argument : arguments)
      if (!argument) return std::nullopt;
    auto results = node.import_subgraph(*scan.graph, arguments);
    if (!results) return std::nullopt;
    for (size_t i = 0; i < state.size(); ++i) // the state keeps its shape
      if (Value& next = (*results)[i]; next && next.type().is_tensor() && state[i].type().is_tensor())
        next = with_extents(node, next, state[i].type().dims);
    if (scan.length) leave_out(node, node.compare("lt", step, scan.length), state, *results);
    if (node.failed()) return std::nullopt;
    return Step{
        {}, {results->begin(), results->begin() + states}, {results->begin() + states, results->end()}};
  };
  auto results = make_loop(node, form);
  if (!results) return std::nullopt;
  Values outputs = results->state;
  for (size_t i = 0; i < results->rows.size(); ++i) {
    bool backward = i < scan.output_directions.size() && scan.output_directions[i] != 0;
    outputs.push_back(
        place_rows(node, results->rows[i], backward, i < scan.output_axes.size() ? scan.output_axes[i] : 0));
  }
  return outputs;
}

// Splits inputs from `first` on into state and scan inputs.
bool read_scan(NodeContext& node, int first, ScanForm& scan) {
  scan.graph = node.graph_attribute("body");
  int64_t count = node.required_int("num_scan_inputs");
  int64_t given = node.num_inputs() - first;
  if (!scan.graph ||
      !node.check(count >= 1 && count <= given, "num_scan_inputs is " + std::to_string(count) +
                                                    ", the node has " + std::to_string(given) + " inputs"))
    return false;
  for (int i = first; i < node.num_inputs(); ++i) {
    if (!node.check_given(i)) return false;
    (i - first < given - count ? scan.state : scan.inputs).push_back(node.input(i));
  }
  scan.input_directions =
      node.ints_attribute(node.opset() < 9 ? "directions" : "scan_input_directions", Ints(at(count), 0));
  scan.output_directions = node.ints_attribute("scan_output_directions");
  scan.output_axes = node.ints_attribute("scan_output_axes");
  return !node.failed() && node.check(static_cast<int64_t>(scan.input_directions.size()) == count,
                                      "directions do not match the scan inputs");
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

// The number of steps that count for entry `entry` of the batch.
Value entry_length(NodeContext& node, Value lengths, int64_t entry, Value input) {
  Value length = node.squeeze(node.slice_dim(lengths, 0, entry, entry + 1), 0);
  Value steps = node.dim_size(input, 1);
  auto known = node.constant_ints(length), max = node.constant_ints(steps);
  if (!length || (known && max &&
                  !node.check((*known)[0] >= 0 && (*known)[0] <= (*max)[0],
                              node.input_label(0) + " holds " + std::to_string((*known)[0]) + ", there are " +
                                  std::to_string((*max)[0]) + " steps")))
    return {};
  return within_bounds(node, node.scalar_int(DType::I64, 0), length, steps);
}

// Opset 8: everything has a batch dim in front, and each entry is scanned by itself along dim 1.
void import_scan_8(NodeContext& node) {
  ScanForm whole;
  if (!read_scan(node, 1, whole)) return;
  std::optional<int64_t> batch;
  for (const Values* values : {&whole.state, &whole.inputs})
    for (Value value : *values) {
      auto dims = node.static_dims(value, "an input");
      if (!dims) return;
      bool fits = dims->size() >= (values == &whole.inputs ? 2u : 1u) && (!batch || *batch == (*dims)[0]);
      if (!node.check(fits, "an input is " + value.type().to_string() + ", wants batch " +
                                std::to_string(batch.value_or(1))))
        return;
      batch = (*dims)[0];
    }
  if (!node.check(batch && *batch >= 1 && *batch <= kMaxUnrolled,
                  "wants a batch from 1 to " + std::to_string(kMaxUnrolled)))
    return;
  Value lengths;
  if (node.has_input(0)) lengths = node.convert(input_with_extents(node, 0, {Dim(*batch)}), DType::I64);
  if (node.failed()) return;
  std::vector<Values> entries; // by output
  for (int64_t b = 0; b < *batch; ++b) {
    ScanForm one = whole;
    for (Values* values : {&one.state, &one.inputs})
      for (Value& value : *values) {
        value = node.squeeze(node.slice_dim(value, 0, b, b + 1), 0);
        if (!value) return;
      }
    one.axes.assign(one.inputs.size(), 0);
    if (lengths) one.length = entry_length(node, lengths, b, whole.inputs[0]);
    if (node.failed()) return;
    auto outputs = scan(node, one);
    if (!outputs) return;
    entries.resize(outputs->size());
    for (size_t i = 0; i < outputs->size(); ++i) {
      if (!node.check(!is_container((*outputs)[i]), "its body gives what is no tensor")) return;
      entries[i].push_back(node.unsqueeze((*outputs)[i], 0));
    }
  }
  for (size_t i = 0; i < entries.size(); ++i)
    node.set_output(static_cast<int>(i), node.concatenate(entries[i], 0));
}

constexpr OperatorRow kRows[] = {
    {"", "If", 1, kLatest, 1, 1, 1, kVariadic, "bool", import_if,
     "one of two subgraphs; a constant condition decides at once"},
    {"", "Loop", 1, kLatest, 0, kVariadic, 1, kVariadic, "i64 bool value", import_loop,
     "a subgraph repeated; scan outputs need a bound of the steps, constant or made of dims"},
    {"", "Scan", 8, 8, 0, kVariadic, 1, kVariadic, "value", import_scan_8,
     "a subgraph over each batch entry's elements"},
    {"", "Scan", 9, kLatest, 1, kVariadic, 1, kVariadic, "any", import_scan,
     "a subgraph over the elements of sequences"},
};

} // namespace

std::span<const OperatorRow> control_flow_operators() {
  return kRows;
}

} // namespace firn::onnx
