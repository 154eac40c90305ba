// See node_walk.h. Users of an If's values are found by name alone. A node that reads the same name in
// another graph may be taken along needlessly, which costs code but is not wrong.
//
// Example. The branches of node 0 disagree: then_branch gives f32[4], else_branch gives f32[2,2].
//
//   0  s = If(c)    1  y = Neg(x)    2  r = Relu(s)    3  z = ReduceSum(r), a scalar    4  w = Add(z, y)
//
// import_if drops its If, sets `disagreement` and calls RestOfGraph::import, which takes these steps:
//   find_users    Node 1 reads no value of the If: it is imported ahead. The users are nodes 2, 3 and 4.
//   open          A new If gets a region for each branch, and the nodes of the branches are imported again.
//   import_users  After 0 users `s` is live with two types, after 1 user `r` is. After 2 users only `z` is
//                 live, with type f32[] in both regions: the search ends.
//   finish        `z` becomes the If's only output. Nodes 2 and 3 are done; node 4 follows the If as usual.
//
// If the types never agree, this is an error of node 0, unless the walk is that of a branch or a function.
// Then `disagreement` stays set, and the If or the call further out imports the nodes that follow it, too.
#include "compiler/frontend/onnx/import/node_walk.h"

#include "compiler/frontend/onnx/containers.h"
#include "compiler/frontend/onnx/import/attempt.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace firn::onnx {

const std::set<std::string>& ImportStep::reads() const {
  if (known_reads) return *known_reads;
  std::set<std::string> names;
  if (!ended && !returned) add_reads(node(), names);
  for (int i = 0; ended && i < ended->output_size(); ++i) names.insert(ended->output(i).name());
  if (returned) names.insert(returned->output().begin(), returned->output().end());
  known_reads = std::make_shared<const std::set<std::string>>(std::move(names));
  return *known_reads;
}

void NodeWalk::add(const Nodes& nodes, size_t scope) {
  steps.reserve(steps.size() + static_cast<size_t>(nodes.size()));
  for (int i = 0; i < nodes.size(); ++i) steps.push_back({&nodes, i, scope});
}

namespace {

bool can_agree(Value lhs, Value rhs) {
  if (!have_one_structure({lhs}, {rhs})) return false;
  Values one = tensors_in({lhs}), other = tensors_in({rhs});
  for (size_t i = 0; i < one.size(); ++i) {
    const Type &a = one[i].type(), &b = other[i].type();
    bool one_each = a.is_static() && b.is_static() && a.num_elements() == 1 && b.num_elements() == 1;
    if (a.dtype != b.dtype || (a.rank() != b.rank() && !one_each)) return false;
  }
  return true;
}

std::string disagreement_of(Value lhs, Value rhs, const std::string& what) {
  if (is_container(lhs) || is_container(rhs))
    return "the branches give sequences or optionals of different lengths as " + what;
  return "the branches give " + lhs.type().to_string() + " and " + rhs.type().to_string() + " as " + what +
         "; extents may differ within bounds, types may not";
}

} // namespace

// Imports the steps that follow the If (or call) `node` in its walk, where branches disagree.
class RestOfGraph {
public:
  RestOfGraph(NodeContext& node, Value condition)
      : node_(node), state_(node.state()), walk_(*state_.walk), condition_(condition) {}

  static void leave(NodeContext& node) {
    node.state_->disagreement = true;
    node.failed_ = true;
  }

  void import(const wire::GraphProto& then_graph, const wire::GraphProto& else_graph) {
    if (!begin()) return;
    add_names(node_.proto(), walk_.steps[walk_.at].scope, 0);
    if (!find_users()) return;
    Instruction* made = node_.make_typed(Opcode::If, {condition_}, {});
    if (!made) return;
    Branch branches[2];
    BranchErrors errors[2];
    Region* regions[] = {&made->add_region(), &made->add_region()};
    for (size_t i = 0; i < 2; ++i)
      in_branch(i, errors[i], [&] { open(branches[i], *regions[i], i == 0 ? then_graph : else_graph); });
    ++state_.depth;
    auto count = import_users(branches, errors);
    --state_.depth;
    if (count) return finish(made, branches, *count);
    node_.discard(made);
    auto unfit = state_.disagreement ? std::nullopt : unfit_branch(errors[0], errors[1]);
    if (!unfit) return report(node_, condition_, errors);
    take_other_branch(node_, condition_, *unfit, errors[*unfit]);
    place(*unfit == 1 ? then_graph : else_graph);
  }

  // Imports the nodes of the branch and all that follow, in the same region.
  void import_in_place(const wire::GraphProto& taken) {
    if (begin()) place(taken);
  }

  // Imports the nodes of the function and all that follow, in the same region.
  void import_in_place(const wire::FunctionProto& function, Scope& scope) {
    if (!begin()) return;
    NodeWalk inner = walk_with(scope);
    const ImportStep& self = walk_.steps[walk_.at];
    size_t own = inner.scopes.size() - 1;
    inner.add(function.node(), own);
    inner.steps.push_back({self.nodes, self.index, self.scope, nullptr, &function, own});
    import_all(inner);
  }

private:
  // One of the If's branches, in a region of its own.
  struct Branch {
    std::deque<Scope> scopes;
    NodeWalk walk;
    Region* region = nullptr;
    size_t users = 0; // the step of the first user
  };
  // A value of the If, or of a node that is imported into its branches.
  struct Name {
    std::string name;
    size_t scope;
    size_t made;            // it exists once so many users are imported
    size_t last_use = 0;    // number of the last user that reads it, from 1; 0: none
    bool is_output = false; // read behind the last step
    std::string text;       // its name in messages
  };

  NodeWalk walk_with(Scope& scope) const {
    NodeWalk inner;
    inner.scopes = walk_.scopes;
    inner.scopes.push_back(&scope);
    inner.outputs = walk_.outputs;
    inner.is_branch = walk_.is_branch;
    return inner;
  }

  void place(const wire::GraphProto& taken) {
    Scope scope(node_.scope_, node_.scope_->frame());
    GraphImporter(state_, node_.region()).import_initializers(taken, scope);
    NodeWalk inner = walk_with(scope);
    add_branch(inner, taken, inner.scopes.size() - 1);
    import_all(inner);
  }

  // Calls `f` to import in a branch, with the errors set apart.
  template <class F> void in_branch(size_t branch, BranchErrors& errors, const F& f) {
    Attempt attempt(node_);
    InBranch decided(state_, node_.input(0), branch == 0);
    f();
    attempt.end(errors);
  }

  // Imports the steps of `inner`, and all that follow the step at hand.
  void import_all(NodeWalk& inner) {
    for (size_t step = walk_.at + 1; step < walk_.steps.size(); ++step)
      inner.steps.push_back(walk_.steps[step]);
    GraphImporter importer(state_, node_.region());
    ++state_.depth;
    for (size_t step = 0; step < inner.steps.size() && goes_on(); ++step) importer.import_step(inner, step);
    --state_.depth;
    if (state_.disagreement) return;
    for (ImportStep& step : walk_.steps) step.done = true;
    node_.defines_outputs_ = true;
  }

  bool goes_on() const { return !state_.out_of_budget && !state_.disagreement; }

  // Takes over the disagreement. False if there is none, or if this step is imported ahead of its turn.
  bool begin() {
    if (walk_.is_ahead || !state_.disagreement) return false;
    state_.disagreement = false;
    node_.failed_ = false;
    if (state_.depth < kMaxDepth) return true;
    node_.fail("functions and subgraphs are nested more than " + std::to_string(kMaxDepth) + " deep");
    return false;
  }

  void add_names(const wire::NodeProto& node, size_t scope, size_t made) {
    for (int i = 0; i < node.output_size(); ++i) {
      const std::string& name = node.output(i);
      if (name.empty()) continue;
      index_[name].push_back(names_.size());
      std::string text = made == 0 ? "output " + std::to_string(i) : "'" + name + "'";
      names_.push_back({name, scope, made, 0, walk_.outputs.count(name) > 0, text});
    }
  }

  // Lists the users: steps that read the If's values, and steps that read a user's. Others are imported
  // ahead, before the If, unless they must wait for their turn. False after a failure.
  bool find_users() {
    size_t self = walk_.at;
    for (size_t step = self + 1; step < walk_.steps.size(); ++step) {
      if (walk_.steps[step].done) continue;
      if (state_.rest_budget == 0) {
        node_.fail_unsupported("too many nodes follow branches that give values of different types");
        break;
      }
      --state_.rest_budget;
      if (reads_any(step, index_)) {
        for (size_t with : taken_along(step)) add_user(with);
        add_user(step);
      } else if (walk_.steps[step].has_turn || reads_any(step, waiting_names_) || !import_ahead(step)) {
        waiting_.push_back(step);
        for (const std::string& name : walk_.steps[step].node().output()) waiting_names_.insert(name);
      }
    }
    walk_.at = self;
    return !node_.failed_;
  }

  template <class Names> bool reads_any(size_t step, const Names& names) const {
    const std::set<std::string>& reads = walk_.steps[step].reads();
    return std::any_of(reads.begin(), reads.end(), [&](const auto& name) { return names.count(name) > 0; });
  }

  bool gives_any(size_t step, const std::set<std::string>& names) const {
    const auto& outputs = walk_.steps[step].node().output();
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](const auto& name) { return names.count(name) > 0; });
  }

  void add_user(size_t step) {
    users_.push_back(step);
    for (const std::string& name : walk_.steps[step].reads())
      if (auto found = index_.find(name); found != index_.end())
        for (size_t i : found->second) names_[i].last_use = users_.size();
    add_names(walk_.steps[step].node(), walk_.steps[step].scope, users_.size());
  }

  // The waiting steps that a user needs, with those that they need or that read their values, and so on.
  std::vector<size_t> taken_along(size_t user) {
    if (!reads_any(user, waiting_names_)) return {};
    std::set<std::string> wanted = walk_.steps[user].reads(), given;
    std::set<size_t> taken;
    auto take = [&](size_t step) {
      bool is_new = (gives_any(step, wanted) || reads_any(step, given)) && taken.insert(step).second;
      if (!is_new) return;
      const std::set<std::string>& reads = walk_.steps[step].reads();
      wanted.insert(reads.begin(), reads.end());
      for (const std::string& name : walk_.steps[step].node().output())
        if (!name.empty()) given.insert(name);
    };
    for (size_t before = SIZE_MAX; before != taken.size();) {
      before = taken.size();
      std::for_each(waiting_.rbegin(), waiting_.rend(), take);
      std::for_each(waiting_.begin(), waiting_.end(), take);
    }
    std::erase_if(waiting_, [&](size_t step) { return taken.count(step) > 0; });
    return {taken.begin(), taken.end()};
  }

  bool import_ahead(size_t step) {
    bool was_ahead = std::exchange(walk_.is_ahead, true);
    GraphImporter(state_, node_.region()).import_step(walk_, step);
    walk_.is_ahead = was_ahead;
    walk_.steps[step].has_turn = std::exchange(state_.disagreement, false);
    return !walk_.steps[step].has_turn;
  }

  // Adds the nodes of a branch, and the step that makes its outputs those of the If.
  void add_branch(NodeWalk& walk, const wire::GraphProto& graph, size_t scope) {
    const ImportStep& self = walk_.steps[walk_.at];
    walk.add(graph.node(), scope);
    walk.steps.push_back({self.nodes, self.index, self.scope, &graph, nullptr, scope});
  }

  void open(Branch& branch, Region& region, const wire::GraphProto& graph) {
    branch.region = &region;
    for (const Scope* outer : walk_.scopes) branch.scopes.emplace_back(outer, outer->frame());
    branch.scopes.emplace_back(node_.scope_, node_.scope_->frame());
    NodeWalk& walk = branch.walk;
    for (Scope& scope : branch.scopes) walk.scopes.push_back(&scope);
    walk.outputs = walk_.outputs;
    walk.is_branch = walk_.is_branch;
    add_branch(walk, graph, walk.scopes.size() - 1);
    branch.users = walk.steps.size();
    for (size_t user : users_) walk.steps.push_back(walk_.steps[user]);
    GraphImporter importer(state_, region);
    importer.import_initializers(graph, branch.scopes.back());
    for (size_t step = 0; step < branch.users && goes_on(); ++step) importer.import_step(walk, step);
  }

  // Imports users in both branches until all values that are used later agree. Returns how many that took;
  // nothing after a failure, or with a disagreement that an If further out may end.
  std::optional<size_t> import_users(Branch (&branches)[2], BranchErrors (&errors)[2]) {
    std::optional<size_t> first; // types agree after so many, but integers would no longer be known
    for (size_t count = 0; goes_on() && errors[0].none() && errors[1].none(); ++count) {
      Agreement agreement = agreement_after(count, branches);
      if (agreement == Agreement::Failed) return std::nullopt;
      if (agreement == Agreement::Full) return count;
      if (agreement == Agreement::OfTypes && !first) first = count;
      if (count == users_.size()) break;
      ++state_.apart;
      for (size_t i = 0; i < 2 && goes_on(); ++i)
        in_branch(i, errors[i], [&] {
          GraphImporter(state_, *branches[i].region).import_step(branches[i].walk, branches[i].users + count);
        });
      --state_.apart;
    }
    if (!goes_on() || !errors[0].none() || !errors[1].none()) return std::nullopt;
    if (first) return first;
    if (walk_.is_branch)
      state_.disagreement = true;
    else
      node_.fail_unknown({condition_}, message_);
    return std::nullopt;
  }

  enum class Agreement : uint8_t { None, OfTypes, Full, Failed };

  // Called for one count after the other: names that have agreed once are not looked at again.
  Agreement agreement_after(size_t count, Branch (&branches)[2]) {
    for (; agreed_ < names_.size() && names_[agreed_].made <= count; ++agreed_) {
      const Name& name = names_[agreed_];
      if (!is_live(name, count)) continue;
      const NamedValue* found[2];
      for (size_t i = 0; i < 2; ++i) found[i] = branches[i].walk.scopes[name.scope]->find(name.name);
      // An inner If may have taken the name's node and all its users into its own branches.
      if (!found[0] || !found[1]) return Agreement::None;
      if (found[0]->failed || found[1]->failed) return Agreement::Failed;
      Value lhs = found[0]->value, rhs = found[1]->value;
      if (!can_agree(lhs, rhs)) {
        message_ = disagreement_of(lhs, rhs, name.text);
        return Agreement::None;
      }
      if (node_.known_ints(lhs) || node_.known_ints(rhs)) known_.push_back(&name);
    }
    std::erase_if(known_, [&](const Name* name) { return !is_live(*name, count); });
    return known_.empty() ? Agreement::Full : Agreement::OfTypes;
  }

  bool is_live(const Name& name, size_t count) const {
    return name.made <= count && (name.is_output || name.last_use > count);
  }

  void finish(Instruction* made, Branch (&branches)[2], size_t count) {
    std::vector<const Name*> live;
    for (const Name& name : names_)
      if (is_live(name, count)) live.push_back(&name);
    Values values[2];
    for (size_t i = 0; i < 2; ++i) {
      for (const Name* name : live)
        values[i].push_back(branches[i].walk.scopes[name->scope]->find(name->name)->value);
      branches[i].region->set_results(tensors_in(values[i]));
    }
    auto results = node_.finish_if(made, condition_);
    if (!results) return;
    Values outputs = with_tensors(node_, values[0], *results);
    for (size_t i = 0; i < live.size(); ++i)
      (void)walk_.scopes[live[i]->scope]->define(live[i]->name, {outputs[i], !outputs[i]});
    for (size_t i = 0; i < count; ++i) walk_.steps[users_[i]].done = true;
    node_.defines_outputs_ = true;
  }

  NodeContext& node_;
  ImportState& state_;
  NodeWalk& walk_;
  Value condition_;
  std::string message_;
  std::vector<Name> names_;
  std::map<std::string, std::vector<size_t>> index_; // positions in names_; several graphs may have the name
  std::vector<size_t> users_;                        // steps in order
  std::vector<size_t> waiting_;                      // steps not imported ahead (has_turn), and their users
  std::set<std::string> waiting_names_;              // outputs of the waiting steps
  size_t agreed_ = 0;                                // names_ before this are dead or of one type
  std::vector<const Name*> known_;                   // live names that hold known integers
};

bool can_agree(const Values& lhs, const Values& rhs) {
  return std::equal(lhs.begin(), lhs.end(), rhs.begin(), rhs.end(),
                    [](Value a, Value b) { return can_agree(a, b); });
}

void leave_disagreement(NodeContext& node) {
  RestOfGraph::leave(node);
}

void import_rest_in_branches(NodeContext& node, Value condition, const wire::GraphProto& then_graph,
                             const wire::GraphProto& else_graph) {
  RestOfGraph(node, condition).import(then_graph, else_graph);
}

void import_rest_in_branch(NodeContext& node, const wire::GraphProto& taken) {
  RestOfGraph(node, {}).import_in_place(taken);
}

void import_rest_in_function(NodeContext& node, const wire::FunctionProto& function, Scope& scope) {
  RestOfGraph(node, {}).import_in_place(function, scope);
}

} // namespace firn::onnx
