// The nodes of a graph in the order of import. If the branches of an If give values of different types, the
// nodes that use these values are imported into both branches, until both give the same types again. If that
// If is in a function, the nodes that follow the call may be imported into its branches too.
#pragma once

#include "compiler/frontend/onnx/import_state.h"

namespace firn::onnx {

// A node, or the end of the branch or function of a node, at which its outputs become the node's.
struct ImportStep {
  const Nodes* nodes;
  int index;    // number of the node
  size_t scope; // the one of NodeWalk::scopes in which the node's outputs are defined
  const wire::GraphProto* ended = nullptr;
  const wire::FunctionProto* returned = nullptr;
  size_t inner = 0; // the scope of the branch or function
  bool done = false;
  bool has_turn = false; // it holds an If whose branches disagree, and is not imported before its turn
  mutable std::shared_ptr<const std::set<std::string>> known_reads = nullptr; // a cache: such Ifs ask often

  const wire::NodeProto& node() const { return (*nodes)[index]; }
  const std::set<std::string>& reads() const;
};

struct NodeWalk {
  std::vector<ImportStep> steps;
  std::vector<Scope*> scopes;
  std::set<std::string> outputs; // names that are read behind the last step
  size_t at = 0;                 // the step at hand
  bool is_branch = false;        // an If further out may go on behind the last step
  bool is_ahead = false; // the step at hand is imported before its turn, and may not take later ones along

  void add(const Nodes& nodes, size_t scope);
};

// While it lives, nodes are imported in one branch of an If on `condition`, so that inner Ifs on it are
// decided.
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

// Whether the values that two branches give can be the outputs of one If.
bool can_agree(const Values& lhs, const Values& rhs);
// Fails the node, whose branches give values that cannot agree, but without a diagnostic: the functions below
// end the disagreement or report it.
void leave_disagreement(NodeContext& node);

// Called after the import of `node`, an If, ended in a disagreement: imports its branches again, with the
// nodes behind it as far as needed, and defines their outputs. Fails if no node brings the types together.
// Does nothing after other failures.
void import_rest_in_branches(NodeContext& node, Value condition, const wire::GraphProto& then_graph,
                             const wire::GraphProto& else_graph);
// Imports the branch `taken`, which a condition known now chooses and whose inner If disagrees, with all
// nodes behind `node`.
void import_rest_in_branch(NodeContext& node, const wire::GraphProto& taken);
// Imports a function that `node` calls and whose inner If disagrees, with all nodes behind `node`. `scope`
// holds its inputs.
void import_rest_in_function(NodeContext& node, const wire::FunctionProto& function, Scope& scope);

} // namespace firn::onnx
