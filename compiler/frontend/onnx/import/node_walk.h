// The nodes of a graph in the order of import. Where branches of an If give values of different types, the
// nodes that use them are imported in both branches, until what these give has one type again. Those behind
// a call follow the nodes of its function then.
#pragma once

#include "compiler/frontend/onnx/import_state.h"

namespace firn::onnx {

// A node, or the end of a branch or a function, where its outputs become those of the node.
struct ImportStep {
  const Nodes* nodes;
  int index;    // of the node
  size_t scope; // of NodeWalk::scopes, in which the node's outputs are defined
  const wire::GraphProto* ended = nullptr;
  const wire::FunctionProto* returned = nullptr;
  size_t inner = 0; // the scope of the branch or function
  bool done = false;
  bool has_turn = false; // it holds an If whose branches disagree: not imported before its turn
  mutable std::shared_ptr<const std::set<std::string>> known_reads = nullptr; // each such If asks for them

  const wire::NodeProto& node() const { return (*nodes)[index]; }
  const std::set<std::string>& reads() const;
};

struct NodeWalk {
  std::vector<ImportStep> steps;
  std::vector<Scope*> scopes;
  std::set<std::string> outputs; // what is read behind the last step
  size_t at = 0;                 // the step at hand
  bool is_branch = false;        // an If around it goes on behind the last step
  bool is_ahead = false; // the step at hand is imported before its turn, and may not take others with it

  void add(const Nodes& nodes, size_t scope);
};

// While it lives, nodes are imported in this branch of Ifs on `condition`, so that those within are decided.
class InBranch {
public:
  InBranch(ImportState& state, Value condition, bool holds) : state_(state), outer_(state.decided.size()) {
    state_.decided.emplace_back(condition, holds);
  }
  ~InBranch() { state_.decided.resize(outer_); }
  InBranch(const InBranch&) = delete;
  InBranch& operator=(const InBranch&) = delete;

private:
  ImportState& state_;
  size_t outer_;
};

// Whether a value of an If can be what one branch gives and what the other does.
bool can_agree(const Values& lhs, const Values& rhs);
// The node fails, as its branches give values that cannot agree, but without a diagnostic: the calls below
// end the disagreement or report it.
void leave_disagreement(NodeContext& node);

// After the branches of `node`, the If at hand, were left for a disagreement: imports them again, with the
// nodes behind it as far as needed, and defines what those give. Fails where no node brings the types
// together. After another failure: nothing.
void import_rest_in_branches(NodeContext& node, Value condition, const wire::GraphProto& then_graph,
                             const wire::GraphProto& else_graph);
// The same for the one branch that a condition known now chooses.
void import_rest_in_branch(NodeContext& node, const wire::GraphProto& taken);
// The same for a function that `node` calls, with its inputs in `scope`.
void import_rest_in_function(NodeContext& node, const wire::FunctionProto& function, Scope& scope);

} // namespace firn::onnx
