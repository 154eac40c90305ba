// Decision trees in packed entries: what their tables say, what is held once, and which trees are refused.
#include "compiler/plan/trees/packed_trees.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace firn;
using namespace firn::plan;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// An entry of the unpacked tables: a leaf, or a comparison whose children are at `beyond` - 1 and `beyond`.
struct Entry {
  double threshold;
  int64_t beyond, feature;
};
Entry leaf(int64_t at) {
  return {kNone, at, 0};
}

TreeEnsemble trees_of(const std::vector<Entry>& entries, const std::vector<int64_t>& roots,
                      const std::vector<double>& values, int64_t depth, int64_t shift = 2) {
  std::vector<double> thresholds;
  std::vector<int64_t> links;
  for (const Entry& entry : entries) {
    thresholds.push_back(entry.threshold);
    links.push_back(entry.beyond << shift | entry.feature);
  }
  auto count = static_cast<int64_t>(entries.size());
  TreeEnsemble trees;
  trees.thresholds = Literal::of(DType::F32, {count}, thresholds);
  trees.links = Literal::of(DType::I32, {count}, links);
  trees.values = Literal::of(DType::F32, {count}, values);
  trees.roots = Literal::of(DType::I32, {static_cast<int64_t>(roots.size())}, roots);
  trees.targets =
      Literal::of(DType::I32, {static_cast<int64_t>(roots.size())}, std::vector<int64_t>(roots.size(), 0));
  trees.depth = depth;
  trees.shift = shift;
  return trees;
}

// The leaf's value that a row reaches in a tree, by the packed tables.
double walk(const PackedTrees& trees, int64_t tree, const std::vector<double>& row) {
  int64_t number = trees.roots->get_int(tree);
  while (number < trees.nodes()) {
    const auto link = static_cast<uint32_t>(trees.links->get_int(number));
    const uint32_t feature = link & ((1u << trees.feature_bits) - 1),
                   within = link >> (32 - trees.number_bits),
                   beyond = link >> (32 - 2 * trees.number_bits) & ((1u << trees.number_bits) - 1);
    number = row[feature] <= trees.thresholds->get_double(number) ? within : beyond;
  }
  return trees.values->get_double(number - trees.nodes());
}

// Feature 1 is compared with 0.5, and beyond it feature 0 with 2.
std::vector<Entry> small_tree() {
  return {{0.5, 2, 1}, leaf(1), {2, 4, 0}, leaf(3), leaf(4)};
}

} // namespace

TEST_CASE("a packed tree leads rows where the tree leads them", "[plan]") {
  auto packed = pack_trees(trees_of(small_tree(), {0}, {0, 10, 0, 20, 30}, 2));
  REQUIRE(packed);
  CHECK(packed->nodes() == 2);
  CHECK(packed->values->num_elements() == 3);
  CHECK(walk(*packed, 0, {9, 0.5}) == 10);
  CHECK(walk(*packed, 0, {9, -INFINITY}) == 10);
  CHECK(walk(*packed, 0, {2, 0.75}) == 20);
  CHECK(walk(*packed, 0, {2.5, 0.75}) == 30);
  CHECK(walk(*packed, 0, {INFINITY, INFINITY}) == 30);
}

TEST_CASE("NaN is beyond every threshold", "[plan]") {
  auto packed = pack_trees(trees_of(small_tree(), {0}, {0, 10, 0, 20, 30}, 2));
  REQUIRE(packed);
  CHECK(walk(*packed, 0, {0, kNone}) == 20);
  CHECK(walk(*packed, 0, {kNone, kNone}) == 30);
  CHECK(walk(*packed, 0, {kNone, 0}) == 10);
}

TEST_CASE("leaves of one value, comparisons that decide nothing and equal subtrees are held once", "[plan]") {
  // Both children of the second comparison hold 20: it goes, and so does the second tree, which is equal.
  std::vector<Entry> entries = small_tree();
  for (const Entry& entry : small_tree())
    entries.push_back({entry.threshold, entry.beyond + 5, entry.feature});
  auto packed = pack_trees(trees_of(entries, {0, 5}, {0, 10, 0, 20, 20, 0, 10, 0, 20, 20}, 2));
  REQUIRE(packed);
  CHECK(packed->nodes() == 1);
  CHECK(packed->values->num_elements() == 2);
  for (int64_t tree : {0, 1}) {
    CHECK(walk(*packed, tree, {9, 0.5}) == 10);
    CHECK(walk(*packed, tree, {9, 0.75}) == 20);
  }
}

TEST_CASE("a tree of one leaf is a number of a leaf", "[plan]") {
  std::vector<Entry> entries = small_tree();
  entries.push_back(leaf(5));
  auto packed = pack_trees(trees_of(entries, {5, 0}, {0, 10, 0, 20, 30, 7}, 2));
  REQUIRE(packed);
  CHECK(packed->roots->get_int(0) >= packed->nodes());
  CHECK(walk(*packed, 0, {0, 0}) == 7);
  CHECK(walk(*packed, 1, {0, 0}) == 10);
  // Nothing is compared.
  CHECK_FALSE(pack_trees(trees_of({leaf(0)}, {0}, {7}, 0)));
  CHECK_FALSE(pack_trees(trees_of(small_tree(), {}, {0, 10, 0, 20, 30}, 2)));
}

TEST_CASE("trees whose walks do not end in time, or never, are refused", "[plan]") {
  const std::vector<double> values{0, 10, 0, 20, 30};
  CHECK(pack_trees(trees_of(small_tree(), {0}, values, 3)));
  CHECK_FALSE(pack_trees(trees_of(small_tree(), {0}, values, 1)));
  // The second comparison leads back to the first one's children.
  std::vector<Entry> circle = small_tree();
  circle[2].beyond = 2;
  CHECK_FALSE(pack_trees(trees_of(circle, {0}, values, 2)));
  // An entry that is its own child but has a threshold is no leaf.
  std::vector<Entry> endless = small_tree();
  endless[3].threshold = 1;
  CHECK_FALSE(pack_trees(trees_of(endless, {0}, values, 2)));
}

TEST_CASE("links without room for numbers and features are refused", "[plan]") {
  const std::vector<double> values{0, 10, 0, 20, 30};
  CHECK(pack_trees(trees_of(small_tree(), {0}, values, 2, 26)));
  CHECK_FALSE(pack_trees(trees_of(small_tree(), {0}, values, 2, 27)));
  // Values that programs may change have no places that could be shared.
  TreeEnsemble trees = trees_of(small_tree(), {0}, values, 2);
  trees.values = Literal::refittable(trees.values);
  CHECK_FALSE(pack_trees(trees));
}
