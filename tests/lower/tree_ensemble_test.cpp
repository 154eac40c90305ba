// Decision trees against the evaluator: rows and trees that fill no tile, several results, smallest and
// largest leaves, both widths of features and links, walks that are short and long.
#include "compiler/graph/tree_ensemble.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace firn;
using namespace firn::test;

namespace {

struct Case {
  Dim rows = Dim(9);
  int64_t trees = 5, depth = 4, features = 3, results = 1;
  Opcode reducer = Opcode::Add;
  DType dtype = DType::F32, links = DType::I32;
  bool rows_of_values = false; // a leaf adds to all results
  int64_t stumps = 0;          // trees at the end that are a leaf
  bool has_nan = false;        // half of the features are NaN
  std::string plan = "";       // if it is not the cost model's
};

// Trees whose every other child is a leaf, so that walks end after 1 to `depth` steps.
TreeEnsemble make_trees(const Case& c) {
  std::mt19937 random(7);
  auto number = [&] { return static_cast<double>(static_cast<int>(random() % 17)) / 4 - 2; };
  TreeEnsemble made;
  while ((int64_t{1} << made.shift) < c.features) ++made.shift;
  std::vector<double> thresholds, values;
  std::vector<int64_t> links, roots, targets;
  auto leaf = [&](int64_t at) { links[static_cast<size_t>(at)] = at << made.shift; };
  auto entry = [&] {
    thresholds.push_back(std::numeric_limits<double>::quiet_NaN());
    links.push_back(0);
    return static_cast<int64_t>(links.size()) - 1;
  };
  for (int64_t tree = 0; tree < c.trees; ++tree) {
    int64_t at = entry();
    roots.push_back(at);
    targets.push_back(static_cast<int64_t>(random()) % c.results);
    for (int64_t level = 0; level < (tree < c.trees - c.stumps ? c.depth : 0); ++level) {
      int64_t within = entry(), beyond = entry();
      thresholds[static_cast<size_t>(at)] = number();
      links[static_cast<size_t>(at)] = beyond << made.shift | static_cast<int64_t>(random()) % c.features;
      bool goes_on_within = random() % 2 != 0;
      leaf(goes_on_within ? beyond : within);
      at = goes_on_within ? within : beyond;
    }
    leaf(at);
  }
  auto count = static_cast<int64_t>(links.size());
  int64_t width = c.rows_of_values ? c.results : 1;
  for (int64_t i = 0; i < count * width; ++i) values.push_back(number());
  made.thresholds = Literal::of(c.dtype, {count}, thresholds);
  made.links = Literal::of(c.links, {count}, links);
  made.values = Literal::of(
      c.dtype, c.rows_of_values ? std::vector<int64_t>{count, width} : std::vector<int64_t>{count}, values);
  made.roots = Literal::of(DType::I32, {c.trees}, roots);
  if (!c.rows_of_values) made.targets = Literal::of(DType::I32, {c.trees}, targets);
  made.depth = c.depth;
  made.results = c.results;
  made.reducer = c.reducer;
  return made;
}

void make_module(const Case& c, Module& module) {
  Region& body = module.add_function("main").body();
  GraphBuilder b(body);
  Value x = body.add_parameter(Type::tensor(c.dtype, {c.rows, Dim(c.features)}), "x")->result();
  Value y = make_tree_ensemble(b, c.has_nan ? b.unary(Opcode::Sqrt, x) : x, make_trees(c));
  if (!c.plan.empty()) y.def->attributes().set("plan", c.plan);
  body.set_results({y});
}

void expect_trees(const Case& c, LoweredOptions options = {}) {
  Module module("test");
  make_module(c, module);
  auto program = lower_program(module, "x86-64");
  CHECK(std::count_if(program.kernels.begin(), program.kernels.end(),
                      [](const auto& kernel) { return kernel->algorithm == "tree_ensemble"; }) == 1);
  options.ranges = {{"x", {-2.5, 2.5}}};
  expect_lowered_module(module, options);
}

} // namespace

TEST_CASE("rows and trees that fill tiles, and others", "[lower]") {
  for (int64_t rows : {1, 2, 7, 8, 9, 33, 300})
    for (int64_t trees : {1, 3, 8, 17}) expect_trees({.rows = Dim(rows), .trees = trees});
}

TEST_CASE("trees that add to results of their own, and leaves that add to all", "[lower]") {
  for (Opcode reducer : {Opcode::Add, Opcode::Minimum, Opcode::Maximum})
    for (int64_t results : {1, 3, 19}) {
      expect_trees({.trees = 12, .results = results, .reducer = reducer});
      expect_trees({.trees = 12, .results = results, .reducer = reducer, .rows_of_values = true});
    }
}

TEST_CASE("features of f64, links of 64 bits, one feature", "[lower]") {
  expect_trees({.results = 2, .dtype = DType::F64});
  expect_trees({.results = 5, .dtype = DType::F64, .links = DType::I64, .rows_of_values = true});
  expect_trees({.features = 1, .links = DType::I64});
}

TEST_CASE("features that are no numbers, and trees of a leaf", "[lower]") {
  for (int64_t rows : {1, 8, 21}) {
    expect_trees({.rows = Dim(rows), .trees = 9, .depth = 6, .has_nan = true});
    expect_trees({.rows = Dim(rows), .results = 3, .rows_of_values = true, .stumps = 2});
  }
}

TEST_CASE("walks of no step, and long ones", "[lower]") {
  for (int64_t depth : {0, 1, 8, 9, 13, 60}) expect_trees({.rows = Dim(21), .depth = depth});
}

TEST_CASE("a number of rows that varies", "[lower][extents]") {
  Case c;
  Module module("test");
  SymbolRef n = module.symbols.emplace_back(std::make_shared<Symbol>(Symbol{"n", 0, 40}));
  c.rows = Dim(IntExpr::symbol(n));
  make_module(c, module);
  std::vector<std::map<std::string, int64_t>> extents;
  for (int64_t rows : {0, 1, 7, 8, 23, 40}) extents.push_back({{"n", rows}});
  expect_lowered_module(module, {.extents = extents});
}

TEST_CASE("trees follow plans written by hand", "[lower][plan]") {
  for (const char* plan :
       {"trees tile 1x1 block 1", "trees tile 2x3 block 4", "trees tile 1x4 block 5",
        "trees tile 16x1 block 16", "trees tile 2x2 block 2 unchecked_steps 0 steps_per_check 1",
        "trees tile 1x4 block 5 unchecked_steps 64"})
    expect_trees({.rows = Dim(21), .trees = 7, .results = 2, .plan = plan}, {.threads = 3});
  for (const char* plan : {"trees tile 1x4 block 5 lanes 1", "trees tile 2x2 block 2 lanes 4"})
    expect_trees({.trees = 7, .results = 19, .rows_of_values = true, .plan = plan});
}

TEST_CASE("packed trees on machines without caches", "[lower]") {
  LoweredOptions options{.tolerance = 0, .cpus = {"cortex-m4", "generic-rv64", "native"}};
  auto expect_packed = [&](Case c) {
    c.plan = "trees tile 1x1 block 2 packed";
    expect_trees(c, options);
  };
  for (int64_t rows : {1, 5})
    for (int64_t trees : {1, 3, 17}) expect_packed({.rows = Dim(rows), .trees = trees});
  for (Opcode reducer : {Opcode::Add, Opcode::Minimum, Opcode::Maximum})
    for (int64_t results : {1, 3, 19})
      for (bool rows_of_values : {false, true})
        expect_packed({.trees = 6, .results = results, .reducer = reducer, .rows_of_values = rows_of_values});
  for (int64_t depth : {1, 13, 60}) expect_packed({.trees = 3, .depth = depth, .features = 7});
  for (bool rows_of_values : {false, true})
    for (int64_t stumps : {1, 4})
      expect_packed({.trees = 5, .results = 3, .rows_of_values = rows_of_values, .stumps = stumps});
  expect_packed({.trees = 9, .depth = 6, .has_nan = true});
  expect_packed({.features = 1, .links = DType::I64});
  options.cpus = {"generic-rv64", "native"};
  expect_packed({.results = 2, .dtype = DType::F64, .rows_of_values = true});
}

TEST_CASE("microcontrollers have packed trees, and others do not", "[lower][plan]") {
  auto bytes = [](const char* cpu) {
    Module module("test");
    make_module({.trees = 8, .depth = 40, .results = 3, .rows_of_values = true}, module);
    int64_t sum = 0;
    kernel::Program program = lower_program(module, cpu);
    for (const kernel::Constant& constant : program.constants)
      sum += constant.packing.packed_elements * constant.packing.element_bytes;
    return sum;
  };
  // An entry of eight bytes for each of 320 comparisons, and at most the rows of 328 leaves.
  CHECK(bytes("cortex-m4") < 8 * 320 + 12 * 328 + 64);
  CHECK(bytes("x86-64") > 2 * bytes("cortex-m4"));
}

TEST_CASE("tables that lead out of bounds have no kernel", "[lower]") {
  Case c{.trees = 1, .depth = 1};
  TreeEnsemble trees = make_trees(c);
  auto has_kernel = [&](std::vector<int64_t> links) {
    TreeEnsemble broken = trees;
    broken.links = Literal::of(DType::I32, {3}, links);
    Module module("test");
    Region& body = module.add_function("main").body();
    GraphBuilder b(body);
    Value x = body.add_parameter(Type::tensor(DType::F32, {Dim(2), Dim(3)}), "x")->result();
    return read_tree_ensemble(*make_tree_ensemble(b, x, broken).def).has_value();
  };
  CHECK(has_kernel({2 << 2, 1 << 2, 2 << 2}));
  CHECK(!has_kernel({3 << 2, 1 << 2, 2 << 2}));
  CHECK(!has_kernel({2 << 2 | 3, 1 << 2, 2 << 2}));
  CHECK(!has_kernel({0, 1 << 2, 2 << 2}));
}
