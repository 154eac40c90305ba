// Lists of nodes: their lengths, numbers and ranges are checked here, so that forests get none that is wrong.
#include "compiler/frontend/onnx/ml/tree_lists.h"

#include <algorithm>
#include <cmath>

namespace firn::onnx {

namespace {

using Doubles = std::vector<double>;

size_t at(int64_t index) {
  return static_cast<size_t>(index);
}

// Whether all of `values` are in [0, limit).
bool check_range(NodeContext& node, const std::string& name, const Ints& values, int64_t limit) {
  for (int64_t value : values)
    if (!node.check(value >= 0 && value < limit, "attribute " + name + " holds " + std::to_string(value) +
                                                     ", wants numbers from 0 to " +
                                                     std::to_string(limit - 1)))
      return false;
  return true;
}

// --- TreeEnsembleClassifier and TreeEnsembleRegressor: nodes by tree and number.

std::optional<BranchMode> parse_mode(std::string_view word) {
  constexpr std::string_view kWords[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                         "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  for (size_t i = 0; i < std::size(kWords); ++i)
    if (word == kWords[i]) return static_cast<BranchMode>(i);
  return std::nullopt;
}

struct NodeLists {
  Ints trees, nodes, features, on_true, on_false, tracks;
  Doubles values;
  std::vector<std::string> modes;
};

std::optional<NodeLists> read_node_lists(NodeContext& node, int64_t features) {
  NodeLists lists{
      node.required_ints("nodes_treeids"),      node.required_ints("nodes_nodeids"),
      node.required_ints("nodes_featureids"),   node.required_ints("nodes_truenodeids"),
      node.required_ints("nodes_falsenodeids"), node.ints_attribute("nodes_missing_value_tracks_true"),
      reals_attribute(node, "nodes_values"),    node.strings_attribute("nodes_modes")};
  if (node.failed()) return std::nullopt;
  size_t count = lists.trees.size();
  if (!node.check(count > 0, "attribute nodes_treeids is empty") ||
      !check_length(node, "nodes_nodeids", lists.nodes.size(), count) ||
      !check_length(node, "nodes_featureids", lists.features.size(), count) ||
      !check_length(node, "nodes_truenodeids", lists.on_true.size(), count) ||
      !check_length(node, "nodes_falsenodeids", lists.on_false.size(), count) ||
      !check_length(node, "nodes_values", lists.values.size(), count) ||
      !check_length(node, "nodes_modes", lists.modes.size(), count) ||
      (!lists.tracks.empty() &&
       !check_length(node, "nodes_missing_value_tracks_true", lists.tracks.size(), count)))
    return std::nullopt;
  for (size_t i = 0; i < count; ++i)
    if (lists.modes[i] == "LEAF") lists.features[i] = 0; // a leaf's feature means nothing
  if (!check_range(node, "nodes_featureids", lists.features, features)) return std::nullopt;
  return lists;
}

// The first node of each tree that is no other's child.
bool add_roots(NodeContext& node, const NodeLists& lists, const std::vector<bool>& is_child, Forest& forest) {
  std::map<int64_t, int64_t> roots;
  for (size_t i = 0; i < lists.trees.size(); ++i) {
    auto [entry, added] = roots.try_emplace(lists.trees[i], -1);
    if (entry->second < 0 && !is_child[i]) entry->second = static_cast<int64_t>(i);
  }
  for (auto [tree, root] : roots) {
    if (!node.check(root >= 0,
                    "tree " + std::to_string(tree) + " has no root: every node is a child of another"))
      return false;
    forest.add_tree(root);
  }
  return true;
}

// --- TreeEnsemble: nodes and leaves by their places in lists.

Doubles tensor_reals(NodeContext& node, const std::string& name, bool required) {
  if (!required && !node.has_attribute(name)) return {};
  auto literal = node.tensor_attribute(name);
  if (!node.check(literal && !node.failed(), "attribute " + name + " is missing, wants a tensor") ||
      !node.check(is_float(literal->dtype()) || is_integer(literal->dtype()),
                  "attribute " + name + " is " + literal->type().to_string() + ", wants numbers"))
    return {};
  Doubles values(at(literal->num_elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = literal->get_double(static_cast<int64_t>(i));
  return values;
}

// The members of each node of mode Member, in the order of the nodes: each list ends with a NaN.
std::optional<std::vector<Doubles>> read_members(NodeContext& node, size_t wanted) {
  std::vector<Doubles> sets;
  Doubles open;
  for (double value : tensor_reals(node, "membership_values", false)) {
    if (!std::isnan(value)) {
      open.push_back(value);
      continue;
    }
    sets.push_back(std::move(open));
    open.clear();
  }
  if (!open.empty()) sets.push_back(open);
  if (node.failed() ||
      !node.check(sets.size() == wanted, "attribute membership_values has " + std::to_string(sets.size()) +
                                             " lists, wants " + std::to_string(wanted)))
    return std::nullopt;
  return sets;
}

struct PlainNodes {
  Ints features, true_nodes, false_nodes, true_leafs, false_leafs, tracks;
  Doubles modes, splits;
};

std::optional<PlainNodes> read_plain_nodes(NodeContext& node, int64_t features) {
  PlainNodes lists{
      node.required_ints("nodes_featureids"),   node.required_ints("nodes_truenodeids"),
      node.required_ints("nodes_falsenodeids"), node.required_ints("nodes_trueleafs"),
      node.required_ints("nodes_falseleafs"),   node.ints_attribute("nodes_missing_value_tracks_true"),
      tensor_reals(node, "nodes_modes", true),  tensor_reals(node, "nodes_splits", true)};
  size_t count = lists.features.size();
  if (node.failed() || !check_length(node, "nodes_truenodeids", lists.true_nodes.size(), count) ||
      !check_length(node, "nodes_falsenodeids", lists.false_nodes.size(), count) ||
      !check_length(node, "nodes_trueleafs", lists.true_leafs.size(), count) ||
      !check_length(node, "nodes_falseleafs", lists.false_leafs.size(), count) ||
      !check_length(node, "nodes_modes", lists.modes.size(), count) ||
      !check_length(node, "nodes_splits", lists.splits.size(), count) ||
      (!lists.tracks.empty() &&
       !check_length(node, "nodes_missing_value_tracks_true", lists.tracks.size(), count)) ||
      !check_range(node, "nodes_featureids", lists.features, features))
    return std::nullopt;
  for (double mode : lists.modes)
    if (!node.check(mode >= 0 && mode <= 6, "attribute nodes_modes holds " +
                                                std::to_string(static_cast<int64_t>(mode)) +
                                                ", wants 0 to 6"))
      return std::nullopt;
  return lists;
}

} // namespace

Doubles reals_attribute(NodeContext& node, const std::string& name) {
  std::string tensor = name + "_as_tensor";
  if (!node.has_attribute(tensor)) return node.floats_attribute(name);
  auto literal = node.tensor_attribute(tensor);
  if (!literal || !node.check(is_float(literal->dtype()), "attribute " + tensor + " is " +
                                                              literal->type().to_string() + ", wants floats"))
    return {};
  Doubles values(at(literal->num_elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = literal->get_double(static_cast<int64_t>(i));
  return values;
}

bool check_length(NodeContext& node, const std::string& name, size_t found, size_t wanted) {
  return node.check(found == wanted, "attribute " + name + " has " + std::to_string(found) +
                                         " elements, wants " + std::to_string(wanted));
}

std::optional<NamedNodes> read_named_nodes(NodeContext& node, int64_t features, DType dtype) {
  auto read = read_node_lists(node, features);
  if (!read) return std::nullopt;
  const NodeLists& lists = *read;
  size_t count = lists.trees.size();
  NamedNodes named{Forest(static_cast<int64_t>(count), dtype), {}, std::vector<bool>(count)};
  auto text = [](int64_t tree, int64_t number) {
    return "node " + std::to_string(number) + " of tree " + std::to_string(tree);
  };
  for (size_t i = 0; i < count; ++i)
    if (!node.check(
            named.numbers.try_emplace({lists.trees[i], lists.nodes[i]}, static_cast<int64_t>(i)).second,
            text(lists.trees[i], lists.nodes[i]) + " is there twice"))
      return std::nullopt;
  std::vector<bool> is_child(count);
  auto child = [&](size_t i, int64_t number) -> int64_t {
    auto found = named.numbers.find({lists.trees[i], number});
    if (!node.check(found != named.numbers.end(), text(lists.trees[i], number) + ", a child, is not there"))
      return 0;
    is_child[at(found->second)] = true;
    return found->second;
  };
  for (size_t i = 0; i < count && !node.failed(); ++i) {
    named.leaf[i] = lists.modes[i] == "LEAF";
    if (named.leaf[i]) continue;
    auto mode = parse_mode(lists.modes[i]);
    if (!node.check(mode.has_value(),
                    "attribute nodes_modes holds '" + lists.modes[i] + "', which is no mode"))
      return std::nullopt;
    named.forest.set_branch(static_cast<int64_t>(i), {*mode,
                                                      lists.features[i],
                                                      lists.values[i],
                                                      {},
                                                      !lists.tracks.empty() && lists.tracks[i] != 0,
                                                      child(i, lists.on_true[i]),
                                                      child(i, lists.on_false[i])});
  }
  if (node.failed() || !add_roots(node, lists, is_child, named.forest)) return std::nullopt;
  return named;
}

std::optional<Votes> read_votes(NodeContext& node, const NamedNodes& named, const std::string& kind,
                                int64_t results) {
  Ints trees = node.required_ints(kind + "_treeids"), nodes = node.required_ints(kind + "_nodeids");
  Votes votes{node.required_ints(kind + "_ids"), reals_attribute(node, kind + "_weights"), {}};
  size_t count = trees.size();
  if (node.failed() || !check_length(node, kind + "_nodeids", nodes.size(), count) ||
      !check_length(node, kind + "_ids", votes.targets.size(), count) ||
      !check_length(node, kind + "_weights", votes.weights.size(), count) ||
      !check_range(node, kind + "_ids", votes.targets, results))
    return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    auto found = named.numbers.find({trees[i], nodes[i]});
    if (!node.check(found != named.numbers.end(), "attribute " + kind + "_nodeids names node " +
                                                      std::to_string(nodes[i]) + " of tree " +
                                                      std::to_string(trees[i]) + ", which is not there"))
      return std::nullopt;
    votes.leaves.push_back(found->second);
  }
  return votes;
}

void add_votes(NamedNodes& named, const Votes& votes) {
  for (size_t i = 0; i < votes.leaves.size(); ++i)
    if (named.leaf[at(votes.leaves[i])])
      named.forest.add_vote(votes.leaves[i], {votes.targets[i], votes.weights[i]});
}

// Nodes keep their numbers; leaves follow them.
std::optional<Forest> read_forest(NodeContext& node, int64_t features, int64_t targets, DType dtype) {
  auto lists = read_plain_nodes(node, features);
  Ints roots = node.required_ints("tree_roots"), ids = node.required_ints("leaf_targetids");
  Doubles weights = tensor_reals(node, "leaf_weights", true);
  if (!lists || node.failed() || !check_length(node, "leaf_weights", weights.size(), ids.size()) ||
      !check_range(node, "leaf_targetids", ids, targets))
    return std::nullopt;
  auto count = static_cast<int64_t>(lists->features.size()), leaves = static_cast<int64_t>(ids.size());
  if (!node.check(!roots.empty(), "attribute tree_roots is empty") ||
      !check_range(node, "tree_roots", roots, count))
    return std::nullopt;
  auto members = read_members(node, at(std::count(lists->modes.begin(), lists->modes.end(), 6.0)));
  if (!members) return std::nullopt;
  Forest forest(count + leaves, dtype);
  auto child = [&](int64_t number, bool leaf) -> int64_t {
    int64_t limit = leaf ? leaves : count;
    node.check(number >= 0 && number < limit, "a node's child is " + std::string(leaf ? "leaf " : "node ") +
                                                  std::to_string(number) + " of " + std::to_string(limit));
    return leaf ? count + number : number;
  };
  size_t set = 0;
  for (size_t i = 0; i < at(count) && !node.failed(); ++i) {
    auto mode = static_cast<BranchMode>(static_cast<int>(lists->modes[i]));
    Branch branch{mode,
                  lists->features[i],
                  lists->splits[i],
                  {},
                  !lists->tracks.empty() && lists->tracks[i] != 0,
                  child(lists->true_nodes[i], lists->true_leafs[i] != 0),
                  child(lists->false_nodes[i], lists->false_leafs[i] != 0)};
    if (mode == BranchMode::Member) branch.members = (*members)[set++];
    if (!node.failed()) forest.set_branch(static_cast<int64_t>(i), branch);
  }
  for (size_t i = 0; i < ids.size(); ++i)
    forest.add_vote(count + static_cast<int64_t>(i), {ids[i], weights[i]});
  for (int64_t root : roots) forest.add_tree(root);
  if (node.failed()) return std::nullopt;
  return forest;
}

} // namespace firn::onnx
