// Shape arithmetic is resolved while importing: with static dims to constants, with symbolic ones to
// expressions.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

using Ints = std::vector<int64_t>;

// y = reshape(x, [shape(x)[0], -1]): what exporters write for flatten.
Model flatten_model(const std::vector<WireDim>& dims) {
  Model model;
  model.graph.inputs = {value("x", F32, dims)};
  model.graph.outputs = {value("y", F32, {"a", "b"})};
  model.graph.initializers = {int_scalar("zero", 0), ints("axes", {0}), ints("rest", {-1})};
  model.graph.nodes = {node("Shape", {"x"}, {"shape"}), node("Gather", {"shape", "zero"}, {"batch"}),
                       node("Unsqueeze", {"batch", "axes"}, {"row"}),
                       node("Concat", {"row", "rest"}, {"target"}, {attribute("axis", 0)}),
                       node("Reshape", {"x", "target"}, {"y"})};
  return model;
}

} // namespace

TEST_CASE("a chain on static dims leaves one reshape") {
  std::string text = import_model(flatten_model({2, 3, 4})).text();
  CHECK(contains(text, "f32[2,12]"));
  CHECK(!contains(text, "gather"));
  CHECK(!contains(text, "concatenate"));
}

TEST_CASE("a chain on a symbolic dim leaves one reshape") {
  std::string text = import_model(flatten_model({"batch", 3, 4})).text();
  CHECK(contains(text, "reshape"));
  CHECK(contains(text, "f32[batch,12]"));
  CHECK(!contains(text, "dim_size"));
}

TEST_CASE("two symbolic dims multiply") {
  CHECK(contains(import_model(flatten_model({2, "h", "w"})).text(), "f32[2,h*w]"));
}

TEST_CASE("Expand and ConstantOfShape take dims as they are known") {
  Model model;
  model.graph.inputs = {value("x", F32, {"n", 1}), value("z", F32, {1})};
  model.graph.outputs = {value("y", F32, {"n", 5}), value("ones", F32, {"n", 1})};
  model.graph.initializers = {ints("five", {1, 5})};
  model.graph.nodes = {node("Expand", {"x", "five"}, {"y"}), node("Shape", {"x"}, {"shape"}),
                       node("ConstantOfShape", {"shape"}, {"ones"})};
  std::string text = import_model(model).text();
  CHECK(contains(text, "f32[n,5]"));
  CHECK(contains(text, "f32[n,1]"));
}

TEST_CASE("a range to a symbolic dim is an iota") {
  Model model;
  model.graph.inputs = {value("x", F32, {"n"})};
  model.graph.outputs = {value("y", I64, {"n"})};
  model.graph.initializers = {int_scalar("zero", 0), int_scalar("one", 1)};
  model.graph.nodes = {node("Size", {"x"}, {"n"}), node("Range", {"zero", "n", "one"}, {"y"})};
  Imported imported = import_model(model);
  CHECK(contains(imported.text(), "iota"));
  CHECK(numbers(run(imported, {f32({3}, {5, 6, 7})})[0]) == std::vector<double>{0, 1, 2});
}

TEST_CASE("a dim that is called as a count would be is none") {
  for (const char* name : {"count_0", "count_1", "count_2"}) {
    Model model;
    model.graph.inputs = {value("x", F32, {name})};
    model.graph.outputs = {value("y", I64, {1, "n"}), value("z", F32, {name})};
    model.graph.nodes = {node("NonZero", {"x"}, {"y"}), node("Neg", {"x"}, {"z"})};
    Imported imported = import_model(model);
    INFO(imported.text());
    CHECK(numbers(run(imported, {f32({3}, {5, 0, 7})})[0]) == std::vector<double>{0, 2});
    // Options can bind it.
    model.graph.outputs.pop_back();
    model.graph.nodes = {node("Split", {"x"}, {"y", "w"}, {attribute("axis", 0)})};
    CHECK(contains(import_model(model).messages, "bind it with --dim dim_" + std::string(name) + "=<n>"));
  }
}

TEST_CASE("the last rows of a symbolic dim are a slice at a place that varies") {
  Model model;
  model.graph.inputs = {value("x", F32, {"n"})};
  model.graph.outputs = {value("y", F32, {1})};
  model.graph.initializers = {ints("start", {-1}), ints("end", {INT64_MAX}), ints("axes", {0})};
  model.graph.nodes = {node("Slice", {"x", "start", "end", "axes"}, {"y"})};
  Imported imported = import_model(model);
  CHECK(contains(imported.text(), "symbolic_slice"));
  CHECK(numbers(run(imported, {f32({3}, {5, 6, 7})})[0]) == std::vector<double>{7});
}

TEST_CASE("what -1 stands for is a quotient of dims") {
  Model model;
  model.graph.inputs = {value("x", F32, {"n", 4, "m"}), value("z", F32, {"n"})};
  model.graph.outputs = {value("y", F32, {"a", "b"}), value("r", I64, {"c"})};
  model.graph.initializers = {ints("four", {4}), ints("rest", {-1}), int_scalar("zero", 0),
                              int_scalar("one", 1)};
  // Rows are counted as n * 4 in one number; and m is what the number of elements over that is.
  model.graph.nodes = {node("Shape", {"z"}, {"n"}),
                       node("Mul", {"n", "four"}, {"rows"}),
                       node("Concat", {"rows", "rest"}, {"target"}, {attribute("axis", 0)}),
                       node("Reshape", {"x", "target"}, {"y"}),
                       node("Size", {"x"}, {"all"}),
                       node("Squeeze", {"rows"}, {"count"}),
                       node("Div", {"all", "count"}, {"columns"}),
                       node("Range", {"zero", "columns", "one"}, {"r"})};
  onnx::ImportOptions options;
  options.ranges = {{"n", {1, 8, 1, {}}}, {"m", {1, 8, 1, {}}}};
  std::string text = import_model(model, options).text();
  CHECK(contains(text, "f32[4*n,m]"));
  CHECK(contains(text, "i64[m]"));
}

TEST_CASE("a dim padded to a multiple divides into its parts") {
  for (int64_t part : {2, 8}) {
    Model model;
    model.graph.inputs = {value("x", F32, {"n"})};
    model.graph.outputs = {value("y", F32, {"a", part})};
    model.graph.initializers = {ints("zero", {0}), ints("part", {part}), ints("target", {-1, part})};
    model.graph.nodes = {node("Shape", {"x"}, {"n"}),
                         node("Neg", {"n"}, {"minus"}),
                         node("Mod", {"minus", "part"}, {"lacking"}),
                         node("Concat", {"zero", "lacking"}, {"pads"}, {attribute("axis", 0)}),
                         node("Pad", {"x", "pads"}, {"padded"}),
                         node("Reshape", {"padded", "target"}, {"y"})};
    onnx::ImportOptions options;
    options.ranges = {{"n", {1, 40, 1, {}}}};
    Imported imported = import_model(model, options);
    INFO(imported.messages);
    REQUIRE(imported.model);
    CHECK(numbers(run(imported, {f32({3}, {5, 6, 7})})[0]) ==
          (part == 2 ? std::vector<double>{5, 6, 7, 0} : std::vector<double>{5, 6, 7, 0, 0, 0, 0, 0}));
  }
}

TEST_CASE("a slice to a dim is no longer than what it is of") {
  Model model;
  model.graph.inputs = {value("x", F32, {5}), value("z", F32, {"n"})};
  model.graph.outputs = {value("y", F32, {"m"})};
  model.graph.initializers = {ints("zero", {0})};
  model.graph.nodes = {node("Shape", {"z"}, {"n"}), node("Slice", {"x", "zero", "n"}, {"y"})};
  onnx::ImportOptions options;
  options.ranges = {{"n", {1, 9, 1, {}}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef x = f32({5}, {1, 2, 3, 4, 5});
  CHECK(numbers(run(imported, {x, f32({2}, {0, 0})})[0]) == std::vector<double>{1, 2});
  CHECK(numbers(run(imported, {x, f32({7}, std::vector<double>(7))})[0]) ==
        std::vector<double>{1, 2, 3, 4, 5});
}

TEST_CASE("a row at a place that a run computes is one row of a dim that varies") {
  Model model;
  model.graph.inputs = {value("x", F32, {"n"}), value("i", I64, {1})};
  model.graph.outputs = {value("y", F32, {1}), value("z", F32, {1})};
  model.graph.initializers = {ints("one", {1}), ints("two", {2})};
  model.graph.nodes = {node("Add", {"i", "one"}, {"next"}), node("Slice", {"x", "i", "next"}, {"y"}),
                       node("Add", {"i", "two"}, {"end"}), node("Slice", {"x", "next", "end"}, {"z"})};
  onnx::ImportOptions options;
  options.ranges = {{"n", {1, 9, 1, {}}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  auto rows = run(imported, {f32({3}, {5, 6, 7}), i64({1}, {1})});
  CHECK(numbers(rows[0]) == std::vector<double>{6});
  CHECK(numbers(rows[1]) == std::vector<double>{7});
  CHECK(rows[1]->dims() == Ints{1});
}

TEST_CASE("the least integer is not next to any place") {
  Model model;
  model.graph.inputs = {value("x", F32, {5}), value("i", I64, {1})};
  model.graph.outputs = {value("y", F32, {"m"})};
  model.graph.initializers = {ints("least", {INT64_MIN})};
  model.graph.nodes = {node("Add", {"i", "least"}, {"end"}), node("Slice", {"x", "i", "end"}, {"y"})};
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(run(imported, {f32({5}, {1, 2, 3, 4, 5}), i64({1}, {1})})[0]->dims() == Ints{0});
}

// Bounds that an input gives with those that data counts: that there are too many is known from their types.
TEST_CASE("more bounds than a tensor has dims are refused before any is read") {
  Model model;
  model.graph.inputs = {value("x", F32, {4, 4}), value("c", Bool, {3}), value("many", I64, {1 << 22})};
  model.graph.outputs = {Message().text(1, "y")};
  model.graph.initializers = {ints("flat", {-1})};
  model.graph.nodes = {node("NonZero", {"c"}, {"places"}), node("Reshape", {"places", "flat"}, {"row"}),
                       node("Concat", {"many", "row"}, {"bounds"}, {attribute("axis", 0)}),
                       node("Slice", {"x", "bounds", "bounds"}, {"y"})};
  CHECK(contains(import_model(model).messages, "node 3 (Slice): input 'bounds' must be constant"));
}

TEST_CASE("sizes that pass through floats are sizes made of dims") {
  // y = ones[ceil(n / 8.0) * 8 / 4], z = ones[int(n * 0.75)], v = ones[int(n / 3.0)]
  Model model;
  model.graph.inputs = {value("x", F32, {"n"})};
  model.graph.outputs = {value("y", F32, {"a"}), value("z", F32, {"b"}), value("v", F32, {"c"})};
  model.graph.initializers = {floats("eight", {}, {8}), floats("part", {}, {0.75f}), floats("three", {}, {3}),
                              ints("four", {4})};
  auto to = [](int64_t type) { return std::vector<Message>{attribute("to", type)}; };
  model.graph.nodes = {node("Shape", {"x"}, {"n"}),           node("Cast", {"n"}, {"f"}, to(F32)),
                       node("Div", {"f", "eight"}, {"d"}),    node("Ceil", {"d"}, {"u"}),
                       node("Mul", {"u", "eight"}, {"m"}),    node("Cast", {"m"}, {"i"}, to(I64)),
                       node("Div", {"i", "four"}, {"q"}),     node("ConstantOfShape", {"q"}, {"y"}),
                       node("Mul", {"f", "part"}, {"p"}),     node("Cast", {"p"}, {"r"}, to(I64)),
                       node("ConstantOfShape", {"r"}, {"z"}), node("Div", {"f", "three"}, {"t"}),
                       node("Cast", {"t"}, {"s"}, to(I64)),   node("ConstantOfShape", {"s"}, {"v"})};
  onnx::ImportOptions options;
  options.ranges = {{"n", {1, 100, 1, {}}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  std::string text = imported.text();
  CHECK(contains(text, "f32[2*((n + 7) floordiv 8)]"));
  CHECK(contains(text, "f32[(3*n) floordiv 4]"));
  CHECK(contains(text, "f32[n floordiv 3]"));
  for (int64_t n : {1, 2, 3, 8, 9, 15, 99, 100}) {
    auto results = run(imported, {f32({n}, std::vector<double>(static_cast<size_t>(n)))});
    CHECK(results[0]->dims() == Ints{(n + 7) / 8 * 2});
    CHECK(results[1]->dims() == Ints{n * 3 / 4});
    CHECK(results[2]->dims() == Ints{n / 3});
  }
}

TEST_CASE("what a convolution lacks to cover a dim is known where floats compute it") {
  // TensorFlow's padding: max((ceil(n / 2) - 1) * 2 + 3 - n, 0), half of it before.
  Model model;
  model.graph.inputs = {value("x", F32, {"n"})};
  model.graph.outputs = {value("y", F32, {"m"})};
  model.graph.initializers = {floats("one", {}, {1}), floats("two", {}, {2}), floats("zero", {}, {0}),
                              floats("three", {}, {3}), ints("at", {0})};
  std::vector<Message> to_float{attribute("to", F32)}, to_int{attribute("to", I64)};
  model.graph.nodes = {node("Size", {"x"}, {"n"}),
                       node("Cast", {"n"}, {"f"}, to_float),
                       node("Div", {"f", "two"}, {"d"}),
                       node("Ceil", {"d"}, {"c"}),
                       node("Sub", {"c", "one"}, {"s"}),
                       node("Mul", {"s", "two"}, {"p"}),
                       node("Add", {"p", "three"}, {"e"}),
                       node("Sub", {"e", "f"}, {"r"}),
                       node("Max", {"r", "zero"}, {"pad"}),
                       node("Div", {"pad", "two"}, {"h"}),
                       node("Cast", {"h"}, {"hi"}, to_int),
                       node("Cast", {"hi"}, {"low"}, to_float),
                       node("Sub", {"pad", "low"}, {"high"}),
                       node("Unsqueeze", {"low", "at"}, {"l1"}),
                       node("Unsqueeze", {"high", "at"}, {"h1"}),
                       node("Concat", {"l1", "h1"}, {"both"}, {attribute("axis", 0)}),
                       node("Cast", {"both"}, {"pads"}, to_int),
                       node("Pad", {"x", "pads"}, {"y"})};
  onnx::ImportOptions options;
  options.ranges = {{"n", {1, 99, 1, {}}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(!contains(imported.text(), "count"));
  CHECK(numbers(run(imported, {f32({2}, {5, 6})})[0]) == std::vector<double>{5, 6, 0});
  CHECK(numbers(run(imported, {f32({3}, {5, 6, 7})})[0]) == std::vector<double>{0, 5, 6, 7, 0});
}

TEST_CASE("a dim below zero divides towards zero") {
  // y = ones[n + (-n) / 2]
  Model model;
  model.graph.inputs = {value("x", F32, {"n"})};
  model.graph.outputs = {value("y", F32, {"m"})};
  model.graph.initializers = {ints("two", {2})};
  model.graph.nodes = {node("Shape", {"x"}, {"n"}), node("Neg", {"n"}, {"minus"}),
                       node("Div", {"minus", "two"}, {"half"}), node("Add", {"n", "half"}, {"size"}),
                       node("ConstantOfShape", {"size"}, {"y"})};
  onnx::ImportOptions options;
  options.ranges = {{"n", {1, 9, 1, {}}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(!contains(imported.text(), "count"));
  CHECK(run(imported, {f32({5}, std::vector<double>(5))})[0]->dims() == Ints{3});
}

TEST_CASE("what needs a static dim names the symbolic one") {
  Model model;
  model.graph.inputs = {value("x", F32, {"n", 4})};
  model.graph.outputs = {value("y", F32, {4, 4})};
  model.graph.nodes = {node("Split", {"x"}, {"y", "z"}, {attribute("axis", 0)})};
  Imported imported = import_model(model);
  CHECK(imported.fault == Fault::Unsupported);
  CHECK(contains(imported.messages, "does not support symbolic dim 'n'; bind it with --dim n=<n>"));
}

TEST_CASE("a run decides whether elements that it counts fill a shape") {
  Model model;
  model.graph.inputs = {value("x", F32, {"n", 3}), value("kept", Bool, {3})};
  model.graph.outputs = {value("y", F32, {"rows", 4})};
  model.graph.nodes = {node("Compress", {"x", "kept"}, {"z"}, {attribute("axis", 1)}),
                       node("Reshape", {"z", "shape"}, {"y"})};
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{-1, 4}, {2, 4}}) {
    model.graph.initializers = {ints("shape", shape)};
    onnx::ImportOptions options;
    options.ranges["n"] = {1, 4};
    Imported imported = import_model(model, options);
    INFO(imported.messages);
    REQUIRE(imported.model);
    LiteralRef x = f32({4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    auto kept = [](int64_t a, int64_t b, int64_t c) {
      return Literal::of(DType::Bool, {3}, std::vector{a, b, c});
    };
    CHECK(numbers(run(imported, {x, kept(1, 0, 1)})[0]) == std::vector<double>{1, 3, 4, 6, 7, 9, 10, 12});
    for (const LiteralRef& rest : {f32({3, 3}, std::vector<double>(9)), f32({1, 3}, {1, 2, 3})})
      CHECK(ends_early(imported, {rest, kept(1, 1, 0)}));
  }
}

TEST_CASE("padding as wide as strides want it leaves a plain extent") {
  // max((ceil(h / 2) - 1) * 2 + 3 - h, 0), as exporters write it for frameworks that pad on both sides.
  Model model;
  model.graph.inputs = {value("x", F32, {1, 1, "h", 8}), value("w", F32, {1, 1, 3, 1})};
  model.graph.outputs = {value("y", F32, {1, 1, "rows", 8})};
  model.graph.initializers = {ints("two", {2}), ints("one", {1}), ints("none", {0}), ints("axis", {2}),
                              floats("half", {1}, {2})};
  model.graph.nodes = {node("Shape", {"x"}, {"shape"}),
                       node("Gather", {"shape", "axis"}, {"h"}),
                       node("Cast", {"h"}, {"wide"}, {attribute("to", int64_t{F32})}),
                       node("Div", {"wide", "half"}, {"share"}),
                       node("Ceil", {"share"}, {"up"}),
                       node("Cast", {"up"}, {"places"}, {attribute("to", int64_t{I64})}),
                       node("Mul", {"places", "two"}, {"reach"}),
                       node("Add", {"reach", "one"}, {"end"}),
                       node("Sub", {"end", "h"}, {"lacking"}),
                       node("Max", {"lacking", "none"}, {"all"}),
                       node("Div", {"all", "two"}, {"low"}),
                       node("Sub", {"all", "low"}, {"high"}),
                       node("Concat", {"low", "high"}, {"around"}, {attribute("axis", 0)}),
                       node("Pad", {"x", "around", "", "axis"}, {"padded"}),
                       node("Conv", {"padded", "w"}, {"y"}, {attribute_ints("strides", {2, 1})})};
  onnx::ImportOptions options;
  options.ranges["h"] = {32, 512, 1, {}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(contains(imported.text(), "f32[1,1,(h + 1) floordiv 2,8]"));
  CHECK_FALSE(contains(imported.text(), "max("));
}

TEST_CASE("reshapes that do not fit are refused") {
  Model model;
  model.graph.inputs = {value("x", F32, {2, 3})};
  model.graph.outputs = {value("y", F32, {6})};
  auto messages = [&](const std::vector<int64_t>& shape) {
    model.graph.initializers = {ints("shape", shape)};
    model.graph.nodes = {node("Reshape", {"x", "shape"}, {"y"})};
    return import_model(model).messages;
  };
  CHECK(messages({6}).empty());
  CHECK(messages({0, -1}).empty());
  CHECK(contains(messages({7}), "cannot reshape f32[2,3] to f32[7]"));
  CHECK(contains(messages({-1, -1}), "-1 twice"));
  CHECK(contains(messages({4, -1}), "do not divide"));
  CHECK(contains(messages({-5}), "the shape holds -5"));
  CHECK(contains(messages({1, 1, 0}), "0 as dim 2"));
  CHECK(contains(messages({INT64_MAX, INT64_MAX}), "more than Firn can hold"));
}
