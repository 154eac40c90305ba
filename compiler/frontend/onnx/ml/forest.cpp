// Turns all kinds of comparisons into thresholds, and packs them into tables.
//
// NaN is <= no threshold, so it always goes to `beyond`. If a NaN must go to `within`, the node compares the
// negated feature instead. The features are followed by their negations if some node does.
#include "compiler/frontend/onnx/ml/forest.h"

#include "compiler/frontend/onnx/import_state.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace firn::onnx {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

size_t at(int64_t index) {
  return static_cast<size_t>(index);
}

} // namespace

// --- Comparisons.

int64_t Forest::fresh() {
  splits_.emplace_back();
  votes_.emplace_back();
  return num_nodes() - 1;
}

void Forest::ask(int64_t node, Split split) {
  negates_ = negates_ || split.negated;
  splits_[at(node)] = split;
}

// The largest number of the features' dtype below `threshold`.
double Forest::before(double threshold) const {
  if (dtype_ == DType::F64) return std::nextafter(threshold, -kInfinity);
  return std::nextafter(static_cast<float>(threshold), -std::numeric_limits<float>::infinity());
}

void Forest::set_nan_only(int64_t node, int64_t feature, int64_t on_nan, int64_t otherwise) {
  ask(node, {feature, false, kInfinity, otherwise, on_nan});
}

// feature <= threshold
void Forest::set_at_most(int64_t node, const Branch& b) {
  if (!b.nan_is_true) return ask(node, {b.feature, false, b.threshold, b.on_true, b.on_false});
  // -feature < -threshold is false; with infinity as threshold always.
  double bound = b.threshold == kInfinity ? kNaN : before(-b.threshold);
  ask(node, {b.feature, true, bound, b.on_false, b.on_true});
}

// feature < threshold
void Forest::set_below(int64_t node, const Branch& b) {
  if (b.nan_is_true) return ask(node, {b.feature, true, -b.threshold, b.on_false, b.on_true});
  double bound = b.threshold == -kInfinity ? kNaN : before(b.threshold);
  ask(node, {b.feature, false, bound, b.on_true, b.on_false});
}

// A feature equals the threshold if it is at most that, and then not below it.
void Forest::set_equal(int64_t node, const Branch& b) {
  int64_t second = fresh();
  Branch rest = b;
  rest.on_true = second;
  set_at_most(node, rest);
  // A NaN comes here only if it counts as equal.
  rest = b;
  std::swap(rest.on_true, rest.on_false);
  rest.nan_is_true = false;
  set_below(second, rest);
}

// A binary search among the sorted members; a NaN ends at the last of them.
void Forest::set_member(int64_t node, const Branch& branch) {
  std::vector<double> members = branch.members;
  members.erase(std::remove_if(members.begin(), members.end(), [](double m) { return std::isnan(m); }),
                members.end());
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  if (members.empty())
    return set_nan_only(node, branch.feature, branch.nan_is_true ? branch.on_true : branch.on_false,
                        branch.on_false);
  struct Range {
    int64_t node;
    size_t first, end;
  };
  std::vector<Range> open{{node, 0, members.size()}};
  while (!open.empty()) {
    Range range = open.back();
    open.pop_back();
    Branch b = branch;
    b.nan_is_true = branch.nan_is_true && range.end == members.size();
    if (range.end - range.first == 1) {
      b.threshold = members[range.first];
      set_equal(range.node, b);
      continue;
    }
    size_t middle = (range.first + range.end) / 2;
    b.nan_is_true = false;
    b.threshold = members[middle - 1];
    b.on_true = fresh();
    b.on_false = fresh();
    set_at_most(range.node, b);
    open.push_back({b.on_true, range.first, middle});
    open.push_back({b.on_false, middle, range.end});
  }
}

void Forest::set_branch(int64_t node, const Branch& branch) {
  bool differs = branch.mode == BranchMode::NotEqual;
  Branch opposite = branch;
  std::swap(opposite.on_true, opposite.on_false);
  opposite.nan_is_true = !branch.nan_is_true && !differs; // a NaN differs from every threshold
  if (branch.mode != BranchMode::Member && std::isnan(branch.threshold)) {
    // Nothing compares with NaN, and everything differs from it.
    int64_t otherwise = differs ? branch.on_true : branch.on_false;
    return set_nan_only(node, branch.feature, branch.nan_is_true ? branch.on_true : otherwise, otherwise);
  }
  switch (branch.mode) {
  case BranchMode::AtMost: return set_at_most(node, branch);
  case BranchMode::Below: return set_below(node, branch);
  case BranchMode::AtLeast: return set_below(node, opposite);
  case BranchMode::Above: return set_at_most(node, opposite);
  case BranchMode::Equal: return set_equal(node, branch);
  case BranchMode::NotEqual: return set_equal(node, opposite);
  case BranchMode::Member: return set_member(node, branch);
  }
}

// --- Walks over the nodes that trees reach.

// The nodes with children before their parents, or nothing if a node is its own descendant.
std::optional<std::vector<int64_t>> Forest::children_first() const {
  enum class State : unsigned char { Unseen, Open, Done };
  std::vector<State> states(votes_.size(), State::Unseen);
  std::vector<int64_t> order, open;
  for (int64_t root : roots_) {
    open.push_back(root);
    while (!open.empty()) {
      int64_t node = open.back();
      State& state = states[at(node)];
      if (state == State::Unseen && !is_leaf(node)) {
        state = State::Open;
        for (int64_t child : {split(node).within, split(node).beyond}) {
          if (states[at(child)] == State::Open) return std::nullopt;
          if (states[at(child)] == State::Unseen) open.push_back(child);
        }
        continue;
      }
      if (state != State::Done) order.push_back(node);
      state = State::Done;
      open.pop_back();
    }
  }
  return order;
}

int64_t Forest::depth(const std::vector<int64_t>& order) const {
  std::vector<int64_t> depths(votes_.size(), 0);
  int64_t max = 0;
  for (int64_t node : order) {
    if (is_leaf(node)) continue;
    depths[at(node)] = 1 + std::max(depths[at(split(node).within)], depths[at(split(node).beyond)]);
    max = std::max(max, depths[at(node)]);
  }
  return max;
}

// The one target that each tree votes for, or nothing if a tree has several.
std::optional<std::vector<int64_t>> Forest::tree_targets(const std::vector<int64_t>& order) const {
  constexpr int64_t kAny = -1, kSeveral = -2;
  std::vector<int64_t> targets(votes_.size(), kAny);
  for (int64_t node : order) {
    if (is_leaf(node)) {
      const std::vector<Vote>& votes = votes_[at(node)];
      if (!votes.empty()) targets[at(node)] = votes.size() == 1 ? votes[0].target : kSeveral;
      continue;
    }
    int64_t a = targets[at(split(node).within)], b = targets[at(split(node).beyond)];
    targets[at(node)] = a == b || b == kAny ? a : a == kAny ? b : kSeveral;
  }
  std::vector<int64_t> result;
  for (int64_t root : roots_) {
    if (targets[at(root)] == kSeveral) return std::nullopt;
    result.push_back(std::max<int64_t>(targets[at(root)], 0));
  }
  return result;
}

bool Forest::votes_for_all(int64_t results) const {
  constexpr size_t kMaxWords = size_t{1} << 23;
  auto order = children_first();
  size_t words = at((results + 63) / 64);
  if (!order || words > kMaxWords / (votes_.size() + 1)) return false;
  std::vector<uint64_t> certain(votes_.size() * words, 0), all(words, 0);
  for (int64_t node : *order) {
    uint64_t* mine = &certain[at(node) * words];
    for (const Vote& vote : votes_[at(node)]) mine[vote.target / 64] |= uint64_t{1} << (vote.target % 64);
    if (is_leaf(node)) continue;
    const uint64_t *a = &certain[at(split(node).within) * words],
                   *b = &certain[at(split(node).beyond) * words];
    for (size_t i = 0; i < words; ++i) mine[i] = a[i] & b[i];
  }
  for (int64_t root : roots_)
    for (size_t i = 0; i < words; ++i) all[i] |= certain[at(root) * words + i];
  for (int64_t target = 0; target < results; ++target)
    if (!(all[at(target / 64)] >> (target % 64) & 1)) return false;
  return true;
}

Forest Forest::counting() const {
  Forest made = *this;
  for (std::vector<Vote>& votes : made.votes_)
    for (Vote& vote : votes) vote.weight = 1;
  return made;
}

// --- Packing.

namespace {

constexpr int64_t kMaxEntries = int64_t{1} << 26;

// Votes of one leaf for one target, as the reducer combines them.
void combine(double& sum, double weight, Opcode reducer) {
  sum = reducer == Opcode::Add       ? sum + weight
        : reducer == Opcode::Minimum ? std::min(sum, weight)
                                     : std::max(sum, weight);
}

} // namespace

Value Forest::evaluate(NodeContext& node, Value x, int64_t results, Opcode reducer) const {
  auto order = children_first();
  if (!x || node.failed() || !node.check(order.has_value(), "a node of its trees is its own descendant"))
    return {};
  int64_t features = x.dim(1), width = negates_ ? 2 * features : features;
  auto targets = tree_targets(*order);
  int64_t columns = targets ? 1 : results, entries = num_trees() + 2 * static_cast<int64_t>(order->size());
  TreeEnsemble made;
  while ((int64_t{1} << made.shift) < width) ++made.shift;
  if (!node.check(entries <= kMaxEntries / columns && made.shift < 31,
                  "its trees have more nodes and results than Firn can hold"))
    return {};
  // By node: the position in `packed` of its second child, the one beyond the threshold, which follows the
  // first. Equal subtrees share one position.
  std::vector<int64_t> children(votes_.size(), 0), packed; // nodes, in the order of entries
  packed = roots_;
  for (size_t i = 0; i < packed.size(); ++i) {
    int64_t parent = packed[i];
    if (is_leaf(parent) || children[at(parent)] != 0) continue;
    packed.push_back(split(parent).within);
    packed.push_back(split(parent).beyond);
    children[at(parent)] = static_cast<int64_t>(packed.size()) - 1;
  }
  auto count = static_cast<int64_t>(packed.size());
  double identity = reducer_identity(reducer, dtype_)->get_double(0);
  std::vector<double> thresholds(packed.size(), kNaN), values(at(count * columns), identity);
  Ints links(packed.size());
  for (int64_t i = 0; i < count; ++i) {
    const Split& asked = split(packed[at(i)]);
    bool leaf = is_leaf(packed[at(i)]);
    if (!leaf) thresholds[at(i)] = asked.threshold;
    links[at(i)] = (leaf ? i : children[at(packed[at(i)])]) << made.shift;
    if (!leaf) links[at(i)] |= asked.feature + (asked.negated ? features : 0);
    for (const Vote& vote : votes_[at(packed[at(i)])])
      combine(values[at(i * columns + (targets ? 0 : vote.target))], vote.weight, reducer);
  }
  bool narrow = count <= std::numeric_limits<int32_t>::max() >> made.shift;
  Ints roots;
  for (int64_t i = 0; i < num_trees(); ++i) roots.push_back(i);
  made.thresholds = Literal::of(dtype_, {count}, thresholds);
  made.links = Literal::of(narrow ? DType::I32 : DType::I64, {count}, links);
  made.values = Literal::of(dtype_, targets ? Ints{count} : Ints{count, columns}, values);
  made.roots = Literal::of(DType::I32, {num_trees()}, roots);
  if (targets) made.targets = Literal::of(DType::I32, {num_trees()}, *targets);
  made.depth = depth(*order);
  made.results = results;
  made.reducer = reducer;
  if (negates_) x = node.concatenate({x, node.unary(Opcode::Negate, x)}, 1);
  if (!x) return {};
  GraphBuilder builder = node.builder();
  return make_tree_ensemble(builder, x, made);
}

} // namespace firn::onnx
