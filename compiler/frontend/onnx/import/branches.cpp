// See branches.h.
#include "compiler/frontend/onnx/import/branches.h"

#include "compiler/frontend/onnx/containers.h"
#include "compiler/frontend/onnx/import/attempt.h"
#include "compiler/frontend/onnx/import/node_walk.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/onnx.pb.h"

namespace firn::onnx {
namespace {

void set_outputs(NodeContext& node, const Values& values) {
  for (size_t i = 0; i < values.size(); ++i) node.set_output(static_cast<int>(i), values[i]);
}

// Makes sequences whose lengths differ between the branches counted ones, in both. The first branch is made
// already, the second is the current region. False, with nothing changed, if there are other differences.
bool count_sequences(NodeContext& node, Region& first_region, Values& first, Values& second) {
  std::vector<std::optional<Type>> elements(first.size());
  if (first.size() != second.size()) return false;
  for (size_t i = 0; i < first.size(); ++i) {
    if (have_one_structure({first[i]}, {second[i]})) continue;
    if (first[i].type().kind != Type::Kind::Sequence || second[i].type().kind != Type::Kind::Sequence)
      return false;
    auto one = common_element(first[i]), other = common_element(second[i]);
    bool none = !one && elements_of(first[i]).empty(), no_other = !other && elements_of(second[i]).empty();
    if (one && other ? !(*one == *other) : !(one && no_other) && !(none && other)) return false;
    elements[i] = one ? one : other;
  }
  auto count = [&](Region& region, Values& values) {
    node.in_region(region, [&] {
      for (size_t i = 0; i < values.size(); ++i)
        if (elements[i]) values[i] = make_counted_sequence(node, rows_of(node, values[i], *elements[i]));
    });
  };
  count(first_region, first);
  count(node.region(), second);
  if (!node.failed()) first_region.set_results(tensors_in(first));
  return true;
}

// The value below a condition's Nots, and whether it equals the condition or is its opposite.
std::pair<Value, bool> without_not(Value condition) {
  bool alike = true;
  for (; condition.def->is(Opcode::Not); condition = condition.def->operand(0)) alike = !alike;
  return {condition, alike};
}

// The value of a condition that is constant, or that an If around the node, on it or its opposite, decides.
std::optional<bool> known_condition(NodeContext& node, Value condition) {
  if (auto known = node.constant_ints(condition)) return (*known)[0] != 0;
  auto [asked, alike] = without_not(node.input(0));
  for (const auto& [condition_around, holds] : node.state().decided) {
    auto [decided, decided_alike] = without_not(condition_around);
    if (decided == asked) return holds == (alike == decided_alike);
  }
  return std::nullopt;
}

// Imports the one branch that is taken.
void import_in_place(NodeContext& node, const wire::GraphProto& graph) {
  node.state().disagreement = false;
  auto results = node.import_subgraph(graph, {}, /*is_branch=*/true);
  return results ? set_outputs(node, *results) : import_rest_in_branch(node, graph);
}

// An If on a condition that only a run knows.
class RunBranches {
public:
  RunBranches(NodeContext& node, Value condition, const wire::GraphProto& then_graph,
              const wire::GraphProto& else_graph)
      : node_(node), condition_(condition), graphs_{&then_graph, &else_graph} {}

  void import() {
    made_ = node_.make_typed(Opcode::If, {condition_}, {});
    if (!made_) return;
    made_->add_region(), made_->add_region();
    for (int i = 0; i < 2 && !node_.state().disagreement; ++i) import_branch(i);
    auto unfit = unfit_branch(errors_[0], errors_[1]);
    if (unfit) return import_other(*unfit);
    if (!errors_[0].none() || !errors_[1].none()) {
      node_.discard(made_);
      return report(node_, condition_, errors_);
    }
    if (node_.state().disagreement || node_.failed() || !agree()) return import_rest();
    made_->region(0).set_results(tensors_in(*values_[0]));
    made_->region(1).set_results(tensors_in(*values_[1]));
    auto results = node_.finish_if(made_, condition_);
    if (results) set_outputs(node_, with_tensors(node_, *values_[0], *results));
  }

private:
  void import_branch(int i) {
    Attempt attempt(node_);
    InBranch decided(node_.state(), node_.input(0), i == 0);
    node_.in_region(made_->region(i), [&] { values_[i] = node_.import_subgraph(*graphs_[i], {}, true); });
    attempt.end(errors_[i]);
  }

  // The branch that fits the shapes takes the place of the If. It is imported again, as though the condition
  // were known: what was known of its values was lost with the If's regions.
  void import_other(int unfit) {
    node_.discard(made_);
    take_other_branch(node_, condition_, unfit, errors_[unfit]);
    import_in_place(node_, *graphs_[1 - unfit]);
  }

  // Whether both branches' values have one structure, which sequences are counted for if need be, and types
  // that can agree.
  bool agree() {
    Values &first = *values_[0], &second = *values_[1];
    bool alike = have_one_structure(first, second);
    if (!alike)
      node_.in_region(made_->region(1),
                      [&] { alike = count_sequences(node_, made_->region(0), first, second); });
    if (alike && can_agree(first, second)) return true;
    leave_disagreement(node_);
    return false;
  }

  void import_rest() {
    node_.discard(made_);
    import_rest_in_branches(node_, condition_, *graphs_[0], *graphs_[1]);
  }

  NodeContext& node_;
  Value condition_;
  const wire::GraphProto* graphs_[2];
  Instruction* made_ = nullptr;
  std::optional<Values> values_[2]; // containers as such
  BranchErrors errors_[2];
};

} // namespace

Value condition_scalar(NodeContext& node, int input) {
  if (!node.check_scalar(input)) return {};
  return node.reshape(node.input(input), {});
}

void import_if(NodeContext& node) {
  const wire::GraphProto *then_graph = node.graph_attribute("then_branch"),
                         *else_graph = node.graph_attribute("else_branch");
  Value condition = condition_scalar(node, 0);
  if (!condition || !then_graph || !else_graph) return;
  std::optional<bool> known = known_condition(node, condition);
  if (known) then_graph = else_graph = *known ? then_graph : else_graph;
  int given = then_graph->output_size(), others = else_graph->output_size();
  if (given != others || given < node.num_outputs())
    return node.fail_form("its branches give " + std::to_string(given) + " and " + std::to_string(others) +
                          " outputs, the node has " + std::to_string(node.num_outputs()));
  if (known) return import_in_place(node, *then_graph);
  RunBranches(node, condition, *then_graph, *else_graph).import();
}

} // namespace firn::onnx
