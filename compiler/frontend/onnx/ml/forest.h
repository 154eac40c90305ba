// Decision trees of ONNX's operators in one form: every node compares a feature with a threshold by <=.
#pragma once

#include "compiler/frontend/onnx/import_context.h"
#include "compiler/graph/tree_ensemble.h"

namespace firn::onnx {

// The order is that of TreeEnsemble's numbers.
enum class BranchMode : unsigned char { AtMost, Below, AtLeast, Above, Equal, NotEqual, Member };

// A comparison, and the numbers of the nodes that follow. Leaves are nodes too.
struct Branch {
  BranchMode mode = BranchMode::AtMost;
  int64_t feature = 0;
  double threshold = 0;
  std::vector<double> members; // for mode Member
  bool nan_is_true = false;    // the result if the feature is NaN
  int64_t on_true = 0, on_false = 0;
};

struct Vote {
  int64_t target = 0;
  double weight = 0;
};

class Forest {
public:
  // Makes `nodes` leaves without votes, numbered from 0, which set_branch and add_vote change. Thresholds are
  // of `dtype`, f32 or f64.
  Forest(int64_t nodes, DType dtype)
      : splits_(static_cast<size_t>(nodes)), votes_(splits_.size()), dtype_(dtype) {}

  int64_t num_nodes() const { return static_cast<int64_t>(votes_.size()); }
  void set_branch(int64_t node, const Branch& branch);
  void add_vote(int64_t leaf, Vote vote) { votes_[static_cast<size_t>(leaf)].push_back(vote); }
  void add_tree(int64_t root) { roots_.push_back(root); }
  int64_t num_trees() const { return static_cast<int64_t>(roots_.size()); }

  // [N,results] of the features' dtype, or a null Value after a failure: a node is its own descendant, or
  // tables are larger than Firn can hold. A result without votes is the reducer's identity.
  Value evaluate(NodeContext& node, Value x, int64_t results, Opcode reducer) const;
  // Whether every row gets a vote for every target. Also false if that would take too long to find out.
  bool votes_for_all(int64_t results) const;
  // The forest with all weights 1, which counts votes.
  Forest counting() const;

private:
  // Goes to `beyond` unless the feature, or its negation, is <= the threshold.
  struct Split {
    int64_t feature = -1; // none: a leaf
    bool negated = false;
    double threshold = 0;
    int64_t within = 0, beyond = 0;
  };
  bool is_leaf(int64_t node) const { return split(node).feature < 0; }
  const Split& split(int64_t node) const { return splits_[static_cast<size_t>(node)]; }
  int64_t fresh();
  void ask(int64_t node, Split split);
  void set_at_most(int64_t node, const Branch& branch);
  void set_below(int64_t node, const Branch& branch);
  void set_nan_only(int64_t node, int64_t feature, int64_t on_nan, int64_t otherwise);
  void set_equal(int64_t node, const Branch& branch);
  void set_member(int64_t node, const Branch& branch);
  double before(double threshold) const;
  std::optional<std::vector<int64_t>> children_first() const;
  int64_t depth(const std::vector<int64_t>& order) const;
  std::optional<std::vector<int64_t>> tree_targets(const std::vector<int64_t>& order) const;

  std::vector<Split> splits_;
  std::vector<std::vector<Vote>> votes_;
  std::vector<int64_t> roots_;
  DType dtype_;
  bool negates_ = false; // whether some split is negated
};

} // namespace firn::onnx
