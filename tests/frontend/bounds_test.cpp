// Bounds of what a run computes, and what is known of numbers on their way to extents: as the run has them,
// rounded to their type or wrapped in it.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

using Doubles = std::vector<double>;

onnx::ImportOptions in_range(int64_t min, int64_t max) {
  onnx::ImportOptions options;
  options.ranges["n"] = {min, max, 1, {}};
  return options;
}

std::vector<Message> to(int64_t dtype) {
  return {attribute("to", dtype)};
}

// The extent of y as nodes make it of "n", the extent of x as i64[1], and of what else there is.
std::vector<int64_t> ones_of(std::vector<Message> nodes, std::vector<Message> initializers, int64_t extent,
                             const onnx::ImportOptions& options) {
  Model model;
  model.graph.inputs = {value("x", F32, {"n"})};
  model.graph.outputs = {value("y", F32, {"m"})};
  model.graph.initializers = std::move(initializers);
  model.graph.nodes = {node("Shape", {"x"}, {"n"})};
  model.graph.nodes.insert(model.graph.nodes.end(), nodes.begin(), nodes.end());
  model.graph.nodes.push_back(node("ConstantOfShape", {"m"}, {"y"}));
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  return run(imported, {f32({extent}, Doubles(static_cast<size_t>(extent)))})[0]->dims();
}

} // namespace

TEST_CASE("a bound rounds as the run does") {
  // 10 * 0.7 is below 7 and is 7 in f32.
  Model model;
  model.graph.inputs = {value("x", F32, {"n"})};
  model.graph.outputs = {value("y", F32, {"m"}), value("at", I64, {"m"})};
  model.graph.initializers = {floats("part", {}, {0.7f})};
  model.graph.nodes = {node("Shape", {"x"}, {"n"}), node("Cast", {"n"}, {"f"}, to(F32)),
                       node("Mul", {"f", "part"}, {"p"}), node("Cast", {"p"}, {"k"}, to(I64)),
                       node("TopK", {"x", "k"}, {"y", "at"})};
  Imported imported = import_model(model, in_range(1, 10));
  INFO(imported.messages);
  REQUIRE(imported.model);
  auto y = run(imported, {f32({10}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})})[0];
  CHECK(numbers(y) == Doubles{10, 9, 8, 7, 6, 5, 4});
}

TEST_CASE("a quotient by what is rounded already is left to the run") {
  // n / (1 / 7) in f32: for n = 1 that is 6.9999995.
  CHECK(ones_of({node("Cast", {"n"}, {"f"}, to(F32)), node("Mul", {"f", "none"}, {"zero"}),
                 node("Add", {"zero", "one"}, {"same"}), node("Div", {"same", "seven"}, {"part"}),
                 node("Div", {"f", "part"}, {"q"}), node("Cast", {"q"}, {"m"}, to(I64))},
                {floats("none", {}, {0}), floats("one", {}, {1}), floats("seven", {}, {7})}, 1,
                in_range(1, 8)) == std::vector<int64_t>{static_cast<int64_t>(1.0f / (1.0f / 7.0f))});
}

TEST_CASE("what 32 bits may not hold is left to the run") {
  // 3000 * 2000000 wraps.
  auto y = ones_of({node("Cast", {"n"}, {"i"}, to(I32)), node("Mul", {"i", "many"}, {"p"}),
                    node("Div", {"p", "many"}, {"q"}), node("Cast", {"q"}, {"r"}, to(I64)),
                    node("Max", {"r", "zero"}, {"s"}), node("Min", {"s", "most"}, {"m"})},
                   {tensor_header("many", I32, {1}).raw(9, std::vector<int32_t>{2000000}), ints("zero", {0}),
                    ints("most", {5000})},
                   3000, in_range(1, 4000));
  int32_t wrapped = static_cast<int32_t>(uint32_t{3000} * uint32_t{2000000});
  CHECK(y == std::vector<int64_t>{wrapped / 2000000});
}

TEST_CASE("large numbers on their way to an extent end in what is known, or in none") {
  CHECK(ones_of({node("Sub", {"n", "far"}, {"near"}), node("Cast", {"near"}, {"f"}, to(F32)),
                 node("Div", {"f", "small"}, {"q"}), node("Mul", {"q", "small"}, {"p"}),
                 node("Cast", {"p"}, {"m"}, to(I64))},
                {ints("far", {int64_t{1} << 20}), floats("small", {}, {3})}, (int64_t{1} << 20) + 1,
                in_range(int64_t{1} << 20, (int64_t{1} << 20) + 1)) == std::vector<int64_t>{1});
}

TEST_CASE("long chains of numbers are looked at once") {
  std::vector<Message> nodes{node("Cast", {"n"}, {"f0"}, to(F32))};
  constexpr int kSteps = 30;
  for (int i = 0; i < kSteps; ++i) {
    std::string from = "f" + std::to_string(i), next = "f" + std::to_string(i + 1);
    nodes.push_back(node("Add", {from, from}, {"a" + next}));
    nodes.push_back(node("Mul", {"a" + next, "half"}, {next}));
  }
  nodes.push_back(node("Cast", {"f" + std::to_string(kSteps)}, {"r"}, to(I64)));
  nodes.push_back(node("Min", {"r", "most"}, {"m"}));
  CHECK(ones_of(nodes, {floats("half", {}, {0.5f}), ints("most", {8})}, 5, in_range(1, 8)) ==
        std::vector<int64_t>{5});
}

TEST_CASE("padding beyond any extent is refused") {
  for (int64_t pad : {INT64_MIN, INT64_MAX, -(int64_t{1} << 40)}) {
    Model model;
    model.graph.inputs = {value("x", F32, {"n"})};
    model.graph.outputs = {value("y", F32, {"m"})};
    model.graph.initializers = {ints("pads", {pad, 0})};
    model.graph.nodes = {node("Pad", {"x", "pads"}, {"y"})};
    CHECK(contains(import_model(model, in_range(1, 8)).messages, "pad is out of range"));
  }
}

TEST_CASE("a product over no elements is no ratio of dims") {
  CHECK(ones_of({node("MatMul", {"tall", "wide"}, {"sums"}), node("Cast", {"sums"}, {"whole"}, to(I64)),
                 node("ReduceMax", {"whole"}, {"most"}, {attribute("keepdims", 0)}),
                 node("Add", {"n", "most"}, {"m0"}), node("Min", {"m0", "n"}, {"m"})},
                {floats("tall", {3, 0}, {}), floats("wide", {0, 3}, {})}, 4,
                in_range(1, 8)) == std::vector<int64_t>{4});
}

TEST_CASE("no index is wanted where the result has no elements") {
  Model model;
  model.graph.inputs = {value("x", F32, {"n", "m"})};
  model.graph.outputs = {value("y", I64, {1, "m"})};
  model.graph.nodes = {node("ArgMax", {"x"}, {"y"}, {attribute("axis", 0)})};
  onnx::ImportOptions options = in_range(0, 3);
  options.ranges["m"] = {0, 3, 1, {}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(run(imported, {f32({0, 0}, {})})[0]->dims() == std::vector<int64_t>{1, 0});
  CHECK(numbers(run(imported, {f32({2, 1}, {1, 2})})[0]) == Doubles{1});
  CHECK(ends_early(imported, {f32({0, 2}, {})}));
}

TEST_CASE("a loop has as many rows as it takes steps, not as it may take") {
  // n - 3 steps, none below 3.
  Graph body;
  body.inputs = {value("i", I64, {}), value("go", Bool, {}), value("s", F32, {})};
  body.nodes = {node("Identity", {"go"}, {"on"}), node("Add", {"s", "one"}, {"t"}),
                node("Identity", {"t"}, {"row"})};
  body.outputs = {value("on", Bool, {}), value("t", F32, {}), value("row", F32, {})};
  Model model;
  model.graph.inputs = {value("x", F32, {"n"})};
  model.graph.outputs = {value("last", F32, {}), value("rows", F32, {"k"})};
  model.graph.initializers = {floats("zero", {}, {0}), floats("one", {}, {1}), ints("three", {3})};
  model.graph.nodes = {
      node("Shape", {"x"}, {"n"}), node("Sub", {"n", "three"}, {"trips"}),
      node("Loop", {"trips", "", "zero"}, {"last", "rows"}, {attribute_graph("body", body.encode())})};
  Imported imported = import_model(model, in_range(1, 8));
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(numbers(run(imported, {f32({5}, Doubles(5))})[1]) == Doubles{1, 2});
  CHECK(run(imported, {f32({2}, Doubles(2))})[1]->dims() == std::vector<int64_t>{0});
}

TEST_CASE("sizes of a split end a run that does not fit, also where nothing reads their part") {
  // Splits n elements into n - 3, 2 and 1; only the second part is read.
  Model model;
  model.graph.inputs = {value("x", F32, {"n"})};
  model.graph.outputs = {value("y", F32, {2})};
  model.graph.initializers = {ints("three", {3}), ints("others", {2, 1})};
  model.graph.nodes = {node("Shape", {"x"}, {"n"}), node("Sub", {"n", "three"}, {"first"}),
                       node("Concat", {"first", "others"}, {"sizes"}, {attribute("axis", 0)}),
                       node("Split", {"x", "sizes"}, {"a", "y", "b"})};
  Imported imported = import_model(model, in_range(0, 8));
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(numbers(run(imported, {f32({4}, {1, 2, 3, 4})})[0]) == Doubles{2, 3});
  CHECK(ends_early(imported, {f32({2}, {1, 2})}));
}
