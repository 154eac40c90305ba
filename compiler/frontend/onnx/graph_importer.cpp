// The walk over nodes: names to values, rows to importers, function calls to their bodies.
#include "compiler/frontend/onnx/import/custom_operator.h"
#include "compiler/frontend/onnx/import/node_walk.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/wire/load.h"

#include <set>
#include <unordered_set>
#include <utility>

namespace firn::onnx {
namespace {

std::string plural(int64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string range_text(int low, int high) {
  if (high >= kVariadic) return std::to_string(low) + " or more";
  return low == high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high);
}

} // namespace

void GraphImporter::add_initializer(const std::string& name, const Expected<LiteralRef>& literal,
                                    Scope& scope) {
  if (!literal) {
    if (!state_.lacks_file(literal.error()))
      state_.diagnostics.add(
          {literal.error().fault, "initializer '" + name + "': " + literal.error().message});
    (void)scope.define(name, {{}, true});
    return;
  }
  Instruction* made = region_.append_constant(state_.options.constant(*literal));
  made->set_location(name);
  state_.initializers.insert(name);
  if (!scope.define(name, {made->result(), false}))
    state_.diagnostics.add(model_error("initializer '" + name + "': the name is defined twice"));
}

void GraphImporter::import_initializers(const wire::GraphProto& graph, Scope& scope) {
  std::set<std::string> used;
  for (const auto& node : graph.node()) add_reads(node, used);
  for (const auto& output : graph.output()) used.insert(output.name());
  std::unordered_set<std::string_view>
      inputs; // inputs whose initializer is not used: they stay inputs, or options fix them
  for (const auto& input : graph.input())
    if (state_.options.initializers_are_inputs || state_.options.is_state(input.name()) ||
        state_.options.is_fixed(input.name()))
      inputs.insert(input.name());
  auto wanted = [&](const std::string& name) { return used.count(name) && !inputs.count(name); };
  for (const auto& tensor : graph.initializer()) {
    if (tensor.name().empty()) {
      state_.diagnostics.add(model_error("an initializer has no name"));
    } else if (wanted(tensor.name())) {
      add_initializer(tensor.name(), read_tensor(tensor, state_.model.source), scope);
    }
  }
  for (const auto& tensor : graph.sparse_initializer())
    if (wanted(tensor.values().name()))
      add_initializer(tensor.values().name(), read_sparse_tensor(tensor, state_.model.source), scope);
}

void GraphImporter::import_body(const wire::GraphProto& graph, Scope& scope, bool is_branch) {
  import_initializers(graph, scope);
  std::set<std::string> outputs;
  for (const auto& output : graph.output()) outputs.insert(output.name());
  import_nodes(graph.node(), scope, outputs, is_branch);
}

void GraphImporter::import_nodes(const Nodes& nodes, Scope& scope, const std::set<std::string>& outputs,
                                 bool is_branch) {
  NodeWalk walk;
  walk.scopes = {&scope};
  walk.outputs = outputs;
  walk.is_branch = is_branch;
  walk.add(nodes, /*scope=*/0);
  for (size_t step = 0; step < walk.steps.size() && !state_.out_of_budget && !state_.disagreement; ++step)
    import_step(walk, step);
}

void GraphImporter::import_step(NodeWalk& walk, size_t step) {
  const ImportStep made = walk.steps[step];
  if (made.done) return;
  NodeWalk* outer = std::exchange(state_.walk, &walk);
  walk.at = step;
  if (made.ended)
    end_branch(walk, step);
  else if (made.returned)
    end_function(walk, step);
  else
    import_node(*made.nodes, made.index, *walk.scopes[made.scope]);
  walk.steps[step].done = !state_.disagreement;
  state_.walk = outer;
}

void GraphImporter::end_branch(NodeWalk& walk, size_t step) {
  const ImportStep& end = walk.steps[step];
  const wire::NodeProto& node = end.node();
  auto values = outputs(*end.ended, *walk.scopes[end.inner],
                        node_label(node, end.index) + ": subgraph '" + end.ended->name() + "': ");
  for (int i = 0; i < node.output_size(); ++i) {
    Value value = values && i < end.ended->output_size() ? (*values)[static_cast<size_t>(i)] : Value{};
    if (!node.output(i).empty()) (void)walk.scopes[end.scope]->define(node.output(i), {value, !value});
  }
}

// An output of a function whose nodes are imported; failed after a failure.
NamedValue GraphImporter::returned(const wire::FunctionProto& function, int output, const Scope& scope,
                                   const std::string& where) {
  const NamedValue* found = scope.find(function.output(output));
  bool failed = found ? found->failed : state_.out_of_budget;
  if (!failed && (!found || !found->value))
    state_.diagnostics.add(model_error(where + "function '" + function.name() +
                                       "' has no value for its output '" + function.output(output) + "'"));
  return found && found->value ? *found : NamedValue{{}, true};
}

void GraphImporter::end_function(NodeWalk& walk, size_t step) {
  const ImportStep& end = walk.steps[step];
  const wire::NodeProto& node = end.node();
  std::string where = node_label(node, end.index) + ": ";
  for (int i = 0; i < node.output_size(); ++i)
    if (!node.output(i).empty())
      (void)walk.scopes[end.scope]->define(node.output(i),
                                           returned(*end.returned, i, *walk.scopes[end.inner], where));
}

void GraphImporter::import_node(const Nodes& nodes, int index, Scope& scope) {
  const wire::NodeProto& node = nodes[index];
  const Frame& frame = scope.frame();
  std::string domain = canonical_domain(node.domain());
  auto opset = frame.opsets.find(domain);
  int version = opset == frame.opsets.end() ? 1 : opset->second;
  NodeContext context(state_, scope, node, index, version, region_);
  context.location_ =
      frame.prefix + (node.name().empty() && node.output_size() ? node.output(0) : node.name());
  if (++state_.nodes > kMaxNodes || state_.diagnostics.count() >= DiagnosticList::limit) {
    if (state_.nodes > kMaxNodes)
      context.fail("the model has more than " + std::to_string(kMaxNodes) + " nodes, functions inlined");
    state_.out_of_budget = true;
    return;
  }
  if (node.op_type().empty()) context.fail("the node has no operator");
  if (!context.failed() && resolve_inputs(context, nodes)) {
    if (const auto* custom = find_custom(state_.options, domain, node.op_type())) {
      import_custom(context, *custom);
    } else if (const auto* function = state_.find_function(node)) {
      inline_function(context, *function);
    } else if (opset == frame.opsets.end() && domain.empty()) {
      context.fail("the model does not say which opset of ai.onnx it uses");
    } else {
      import_operator(context);
    }
  }
  if (!state_.disagreement && !context.defines_outputs_) define_outputs(context);
}

// False if a name is unknown (with a diagnostic), or its node has failed (without).
bool GraphImporter::resolve_inputs(NodeContext& node, const Nodes& nodes) {
  const wire::NodeProto& proto = *node.node_;
  int count = proto.input_size();
  while (count > 0 && proto.input(count - 1).empty()) --count;
  for (int i = 0; i < count; ++i) {
    const std::string& name = proto.input(i);
    node.inputs_.emplace_back();
    if (name.empty()) continue;
    const NamedValue* found = node.scope_->find(name);
    if (found) {
      node.failed_ |= found->failed;
      node.inputs_.back() = found->value;
      continue;
    }
    std::string text = "input '" + name + "' is not defined";
    for (int later = node.index_; later < nodes.size(); ++later)
      for (const std::string& output : nodes[later].output())
        if (output == name) {
          node.fail(later == node.index_
                        ? "input '" + name + "' is its own output"
                        : "input '" + name + "' comes from the later node " +
                              node_label(nodes[later], later) + "; nodes may not form a cycle");
          return false;
        }
    node.fail(text);
    return false;
  }
  return !node.failed_;
}

void GraphImporter::import_operator(NodeContext& node) {
  std::string domain = canonical_domain(node.node_->domain());
  const OperatorRow* row = find_operator(domain, node.op(), node.opset());
  if (!row)
    return node.fail_unsupported("operator " + shown_domain(domain) + "." + node.op() + " (opset " +
                                 std::to_string(node.opset()) + ") is not supported");
  int inputs = node.num_inputs(), outputs = node.num_outputs();
  if (inputs < row->min_inputs || inputs > row->max_inputs)
    return node.fail("has " + plural(inputs, "input") + ", wants " +
                     range_text(row->min_inputs, row->max_inputs));
  if (outputs < row->min_outputs || outputs > row->max_outputs)
    return node.fail("has " + plural(outputs, "output") + ", wants " +
                     range_text(row->min_outputs, row->max_outputs));
  for (int i = 0; i < row->min_inputs; ++i)
    if (!node.check_given(i)) return;
  if (!check_types(node, *row)) return;
  node.by_shapes_ = true;
  if (row->narrow_floats == NarrowFloats::Widened)
    import_widened(node, *row);
  else
    row->import(node);
  node.by_shapes_ = false;
}

void GraphImporter::import_widened(NodeContext& node, const OperatorRow& row) {
  std::optional<DType> narrow; // dtype of the outputs
  for (Value& input : node.inputs_) {
    if (!input || !input.type().is_tensor() || NodeContext::widened_dtype(input.dtype()) == input.dtype())
      continue;
    if (!narrow) narrow = input.dtype();
    input = node.widened(input);
  }
  row.import(node);
  for (Value& output : node.outputs_)
    if (narrow && output && output.dtype() == DType::F32) output = node.convert(output, *narrow);
}

void GraphImporter::inline_function(NodeContext& node, const wire::FunctionProto& function) {
  for (const Frame* frame = &node.scope_->frame(); frame; frame = frame->caller)
    if (frame->function == &function) return node.fail("function '" + function.name() + "' calls itself");
  if (state_.depth >= kMaxDepth)
    return node.fail("functions and subgraphs are nested more than " + std::to_string(kMaxDepth) + " deep");
  if (node.num_inputs() > function.input_size())
    return node.fail("has " + plural(node.num_inputs(), "input") + ", function '" + function.name() +
                     "' has " + std::to_string(function.input_size()));
  if (node.num_outputs() > function.output_size())
    return node.fail("has " + plural(node.num_outputs(), "output") + ", function '" + function.name() +
                     "' has " + std::to_string(function.output_size()));
  Frame frame;
  frame.caller = &node.scope_->frame();
  frame.function = &function;
  frame.prefix = node.location_ + "/";
  frame.opsets = frame.caller->opsets;
  for (const auto& entry : function.opset_import())
    if (entry.version() >= 1 && entry.version() <= kVariadic)
      frame.opsets[canonical_domain(entry.domain())] = static_cast<int>(entry.version());
  for (const auto& attribute : function.attribute_proto()) frame.attributes[attribute.name()] = &attribute;
  for (const auto& attribute : node.node_->attribute())
    if (const auto* value = node.find_attribute(attribute.name())) frame.attributes[attribute.name()] = value;
  Scope scope(nullptr, frame), again(nullptr, frame);
  for (Scope* each : {&scope, &again})
    for (int i = 0; i < function.input_size(); ++i)
      if (!each->define(function.input(i), {node.input(i), false}))
        return node.fail("function '" + function.name() + "' has two inputs '" + function.input(i) + "'");
  ++state_.depth;
  import_nodes(function.node(), scope, {function.output().begin(), function.output().end()},
               /*is_branch=*/true);
  --state_.depth;
  if (state_.disagreement) return import_rest_in_function(node, function, again);
  for (int i = 0; i < node.num_outputs(); ++i) {
    NamedValue output = returned(function, i, scope, node.label() + ": ");
    node.failed_ |= output.failed;
    node.set_output(i, output.value);
  }
}

void GraphImporter::define_outputs(NodeContext& node) {
  for (int i = 0; i < node.num_outputs(); ++i) {
    const std::string& name = node.node_->output(i);
    if (name.empty()) continue;
    Value value =
        i < static_cast<int>(node.outputs_.size()) ? node.outputs_[static_cast<size_t>(i)] : Value{};
    if (!value) node.fail_unsupported("output '" + name + "' is not supported");
    if (value && !is_sane_type(value.type()))
      node.fail("output '" + name + "' would be " + value.type().to_string() + ", more than Firn can hold");
    if (!node.scope_->define(name, {node.failed_ ? Value{} : value, node.failed_}))
      node.fail("output '" + name + "' is defined twice");
  }
}

std::optional<Values> GraphImporter::outputs(const wire::GraphProto& graph, const Scope& scope,
                                             const std::string& where) {
  Values values;
  for (const auto& output : graph.output()) {
    const NamedValue* found = scope.find(output.name());
    if (!found) {
      if (!state_.out_of_budget)
        state_.diagnostics.add(model_error(where + "output '" + output.name() + "' is not defined"));
      return std::nullopt;
    }
    if (found->failed || !found->value) return std::nullopt;
    values.push_back(found->value);
  }
  return values;
}

} // namespace firn::onnx
