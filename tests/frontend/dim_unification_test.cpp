// Extents that meet and are not seen to be equal: a run finds out whether they are, or whether one is 1 and
// stands for all of the other.
#include "tests/frontend/import_node.h"

#include "compiler/graph/evaluate.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

using Doubles = std::vector<double>;

// y = op(x, z)
Imported import_binary(const char* op, const std::vector<WireDim>& x, const std::vector<WireDim>& z,
                       const onnx::ImportOptions& options, const std::vector<Message>& attributes = {}) {
  return import_node(node(op, {"x", "z"}, {"y"}, attributes), {value("x", F32, x), value("z", F32, z)},
                     options);
}

} // namespace

TEST_CASE("two counts that meet are equal, or the run ends") {
  // Each mask takes as many elements of x as it has ones; the two counts meet in Add and in ScatterND.
  Model model;
  model.graph.inputs = {value("x", F32, {4}), value("m", Bool, {4}), value("n", Bool, {4})};
  model.graph.outputs = {value("sum", F32, {"k"}), value("put", F32, {4})};
  model.graph.initializers = {ints("last", {1, 0})};
  model.graph.nodes = {node("Compress", {"x", "m"}, {"a"}, {attribute("axis", 0)}),
                       node("Compress", {"x", "n"}, {"b"}, {attribute("axis", 0)}),
                       node("Add", {"a", "b"}, {"sum"}),
                       node("NonZero", {"m"}, {"columns"}),
                       node("Transpose", {"columns"}, {"places"}),
                       node("ScatterND", {"x", "places", "b"}, {"put"})};
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef x = f32({4}, {5, 6, 7, 8}), m = Literal::of(DType::Bool, {4}, std::vector<double>{1, 0, 0, 1}),
             n = Literal::of(DType::Bool, {4}, std::vector<double>{0, 1, 1, 0});
  auto results = run(imported, {x, m, n});
  CHECK(numbers(results[0]) == std::vector<double>{11, 15});
  CHECK(numbers(results[1]) == std::vector<double>{6, 6, 7, 7});
}

TEST_CASE("a count of one beside another count stands for all") {
  Model model;
  model.graph.inputs = {value("x", F32, {5}), value("m", Bool, {5}), value("z", F32, {3}),
                        value("n", Bool, {3})};
  model.graph.outputs = {value("after", F32, {"k"}), value("before", F32, {"k"})};
  model.graph.nodes = {node("Compress", {"x", "m"}, {"a"}, {attribute("axis", 0)}),
                       node("Compress", {"z", "n"}, {"b"}, {attribute("axis", 0)}),
                       node("Sub", {"a", "b"}, {"after"}), node("Sub", {"b", "a"}, {"before"})};
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  auto bools = [](std::vector<double> values) {
    return Literal::of(DType::Bool, {static_cast<int64_t>(values.size())}, values);
  };
  for (bool one : {true, false}) {
    auto results = run(imported, {f32({5}, {5, 6, 7, 8, 9}), bools({1, 0, 1, 0, 1}), f32({3}, {1, 2, 3}),
                                  one ? bools({0, 1, 0}) : bools({1, 1, 1})});
    CHECK(numbers(results[0]) == (one ? std::vector<double>{3, 5, 7} : std::vector<double>{4, 5, 6}));
    CHECK(numbers(results[1]) == (one ? std::vector<double>{-3, -5, -7} : std::vector<double>{-4, -5, -6}));
  }
}

TEST_CASE("dims that are called differently broadcast where a run finds that they do") {
  Imported imported = import_binary("Add", {"n"}, {"m"}, in_ranges({"n", "m"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef three = f32({3}, {1, 2, 3}), one = f32({1}, {10}), two = f32({2}, {1, 2});
  CHECK(numbers(run(imported, {three, three})[0]) == Doubles{2, 4, 6});
  CHECK(numbers(run(imported, {three, one})[0]) == Doubles{11, 12, 13});
  CHECK(numbers(run(imported, {one, three})[0]) == Doubles{11, 12, 13});
  CHECK(numbers(run(imported, {one, one})[0]) == Doubles{20});
  CHECK(ends_early(imported, {three, two}));
  CHECK(ends_early(imported, {two, three}));
  REQUIRE(!imported.model->facts.warnings.empty());
  CHECK(contains(imported.model->facts.warnings[0], "extents n and m are not seen to be equal"));
  CHECK(contains(imported.model->facts.warnings[0], "--dim n=<n> --dim m=<n>"));
}

TEST_CASE("a dim that varies takes the extent of one that does not") {
  Imported imported = import_binary("Mul", {"n", 2}, {3, 2}, in_ranges({"n"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(contains(imported.text(), "f32[3,2]"));
  LiteralRef z = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  CHECK(numbers(run(imported, {f32({1, 2}, {10, 100}), z})[0]) == Doubles{10, 200, 30, 400, 50, 600});
  CHECK(numbers(run(imported, {z, z})[0]) == Doubles{1, 4, 9, 16, 25, 36});
  CHECK(ends_early(imported, {f32({2, 2}, {1, 2, 3, 4}), z}));
}

TEST_CASE("extents that must be equal end a run that finds them to differ") {
  onnx::ImportOptions either = in_ranges({"n", "m"});
  auto pair = [](std::vector<int64_t> dims) { return f32(std::move(dims), {1, 2}); };
  Imported product = import_binary("MatMul", {1, "n"}, {"m", 1}, either);
  INFO(product.messages);
  REQUIRE(product.model);
  CHECK(numbers(run(product, {pair({1, 2}), pair({2, 1})})[0]) == Doubles{5});
  CHECK(!evaluate(*product.model->module, {pair({1, 2}), f32({1, 1}, {1})}));
  Imported batch = import_binary("MatMul", {"n", 1, 1}, {"m", 1, 1}, either);
  REQUIRE(batch.model);
  CHECK(numbers(run(batch, {pair({2, 1, 1}), pair({2, 1, 1})})[0]) == Doubles{1, 4});
  CHECK(numbers(run(batch, {f32({1, 1, 1}, {3}), pair({2, 1, 1})})[0]) == Doubles{3, 6});
  Imported joined = import_binary("Concat", {1, "n"}, {1, "m"}, either, {attribute("axis", 0)});
  REQUIRE(joined.model);
  CHECK(numbers(run(joined, {pair({1, 2}), pair({1, 2})})[0]) == Doubles{1, 2, 1, 2});
  CHECK(!evaluate(*joined.model->module, {pair({1, 2}), f32({1, 1}, {1})}));
  Imported sums = import_binary("Einsum", {"n"}, {"m"}, either, {attribute_text("equation", "i,i->")});
  INFO(sums.messages);
  REQUIRE(sums.model);
  CHECK(numbers(run(sums, {pair({2}), pair({2})})[0]) == Doubles{5});
  CHECK(!evaluate(*sums.model->module, {pair({2}), f32({3}, {1, 2, 3})}));
}

TEST_CASE("a reshape of dims that need not divide ends where they do not") {
  // y = reshape(x, [shape(z)[0], -1, 2])
  Model model;
  model.graph.inputs = {value("x", F32, {"n", 2}), value("z", F32, {"m"})};
  model.graph.outputs = {value("y", F32, {})};
  model.graph.initializers = {ints("rest", {-1, 2})};
  model.graph.nodes = {node("Shape", {"z"}, {"m"}),
                       node("Concat", {"m", "rest"}, {"target"}, {attribute("axis", 0)}),
                       node("Reshape", {"x", "target"}, {"y"})};
  Imported imported = import_model(model, in_ranges({"n", "m"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef x = f32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  auto y = run(imported, {x, f32({2}, {0, 0})})[0];
  CHECK(y->dims() == std::vector<int64_t>{2, 2, 2});
  CHECK(numbers(y) == numbers(x));
  CHECK(ends_early(imported, {x, f32({3}, {0, 0, 0})}));
}

TEST_CASE("an extent of a shape that is 0 in a run copies the dim there, unless zeros are allowed") {
  // y = reshape(x, [shape(z)[0] / 4, -1])
  Model model;
  model.graph.inputs = {value("x", F32, {2, 3}), value("z", F32, {"m"})};
  model.graph.outputs = {value("y", F32, {})};
  model.graph.initializers = {ints("four", {4}), ints("rest", {-1})};
  auto import_reshape = [&](int64_t allow_zero) {
    model.graph.nodes = {node("Shape", {"z"}, {"m"}), node("Div", {"m", "four"}, {"rows"}),
                         node("Concat", {"rows", "rest"}, {"target"}, {attribute("axis", 0)}),
                         node("Reshape", {"x", "target"}, {"y"}, {attribute("allowzero", allow_zero)})};
    Imported imported = import_model(model, in_ranges({"m"}));
    INFO(imported.messages);
    REQUIRE(imported.model);
    return imported;
  };
  LiteralRef x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  Imported copies = import_reshape(0), keeps = import_reshape(1);
  for (int64_t m : {1, 3, 4, 8}) {
    LiteralRef z = f32({m}, Doubles(static_cast<size_t>(m)));
    int64_t rows = m < 4 ? 2 : m / 4;
    CHECK(run(copies, {x, z})[0]->dims() == std::vector<int64_t>{rows, 6 / rows});
    CHECK(ends_early(keeps, {x, z}) == (m < 4));
  }
}

TEST_CASE("an Expand to a dim that is called differently takes it") {
  Model model;
  model.graph.inputs = {value("x", F32, {"n"}), value("z", F32, {"m"})};
  model.graph.outputs = {value("y", F32, {})};
  model.graph.nodes = {node("Shape", {"z"}, {"m"}), node("Expand", {"x", "m"}, {"y"})};
  Imported imported = import_model(model, in_ranges({"n", "m"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef one = f32({1}, {7}), two = f32({2}, {1, 2}), three = f32({3}, {1, 2, 3});
  CHECK(numbers(run(imported, {one, two})[0]) == Doubles{7, 7});
  CHECK(numbers(run(imported, {two, one})[0]) == Doubles{1, 2});
  CHECK(numbers(run(imported, {two, two})[0]) == Doubles{1, 2});
  CHECK(ends_early(imported, {two, three}));
  CHECK(ends_early(imported, {three, two}));
}

TEST_CASE("parameters of channels do not stretch what they belong to") {
  Model model;
  model.graph.inputs = {value("x", F32, {2, "n"}), value("scale", F32, {"m"})};
  model.graph.outputs = {value("y", U8, {})};
  model.graph.nodes = {node("QuantizeLinear", {"x", "scale"}, {"y"}, {attribute("axis", 1)})};
  Imported imported = import_model(model, in_ranges({"n", "m"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef column = f32({2, 1}, {2, 4}), square = f32({2, 2}, {2, 4, 6, 8});
  CHECK(numbers(run(imported, {square, f32({2}, {1, 2})})[0]) == Doubles{2, 2, 6, 4});
  CHECK(numbers(run(imported, {square, f32({1}, {2})})[0]) == Doubles{1, 2, 3, 4});
  CHECK(ends_early(imported, {column, f32({2}, {1, 2})}));
}

TEST_CASE("what Gemm adds has extents of the product, or 1") {
  Imported imported =
      import_node(node("Gemm", {"a", "b", "c"}, {"y"}),
                  {value("a", F32, {"k", 1}), value("b", F32, {1, "n"}), value("c", F32, {"m"})},
                  in_ranges({"k", "n", "m"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef a = f32({2, 1}, {1, 2}), b = f32({1, 3}, {1, 2, 3}), one = f32({1}, {10});
  CHECK(numbers(run(imported, {a, b, f32({3}, {10, 20, 30})})[0]) == Doubles{11, 22, 33, 12, 24, 36});
  CHECK(numbers(run(imported, {a, b, one})[0]) == Doubles{11, 12, 13, 12, 14, 16});
  CHECK(ends_early(imported, {a, b, f32({2}, {10, 20})}));
  CHECK(ends_early(imported, {a, f32({1, 1}, {1}), f32({2}, {10, 20})}));
}

TEST_CASE("what Gemm adds a part of is refused where it does not fit") {
  Imported imported = import_node(node("Gemm", {"a", "a", "c"}, {"y"}, {attribute_real("beta", 0.5)}),
                                  {value("a", F32, {2, 2}), value("c", F32, {3})}, {});
  CHECK(imported.fault == Fault::Model);
  CHECK(contains(imported.messages, "wants a shape that broadcasts to f32[2,2]"));
}

TEST_CASE("a convolution has as many biases as filters") {
  Imported imported =
      import_node(node("Conv", {"x", "w", "b"}, {"y"}),
                  {value("x", F32, {1, 1, "n"}), value("w", F32, {2, 1, 1}), value("b", F32, {"m"})},
                  in_ranges({"n", "m"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef x = f32({1, 1, 1}, {3}), w = f32({2, 1, 1}, {1, 2});
  CHECK(numbers(run(imported, {x, w, f32({2}, {10, 20})})[0]) == Doubles{13, 26});
  CHECK(ends_early(imported, {x, w, f32({1}, {10})}));
}

TEST_CASE("scales and biases of norms meet the dims that they belong to") {
  auto norm_of = [](const char* op, const Names& names, const std::vector<Message>& attributes,
                    const char* domain = "") {
    std::vector<Message> inputs{value("x", F32, {2, "n"}), value("s", F32, {"m"}), value("b", F32, {"m"})};
    inputs.resize(names.size());
    return import_node(node(op, names, {"y"}, attributes, domain), inputs, in_ranges({"n", "m"}));
  };
  Imported layer = norm_of("LayerNormalization", {"x", "s", "b"}, {attribute_real("epsilon", 0)}),
           rms = norm_of("RMSNormalization", {"x", "s"}, {attribute_real("epsilon", 0)}),
           skip = norm_of("BiasGelu", {"x", "s"}, {}, "com.microsoft");
  LiteralRef x = f32({2, 2}, {-1, 1, 3, -3}), two = f32({2}, {10, 20}), three = f32({3}, {1, 2, 3});
  for (const Imported* imported : {&layer, &rms, &skip}) {
    INFO(imported->messages);
    REQUIRE(imported->model);
    REQUIRE(!imported->model->facts.warnings.empty());
  }
  CHECK(numbers(run(layer, {x, two, f32({2}, {1, 2})})[0]) == Doubles{-9, 22, 11, -18});
  CHECK(ends_early(layer, {x, three, three}));
  CHECK(numbers(run(rms, {x, two})[0]) == Doubles{-10, 20, 10, -20});
  CHECK(ends_early(rms, {x, three}));
  CHECK(ends_early(skip, {x, three}));
}

TEST_CASE("parameters of channels and groups may be called anything") {
  for (const char* op : {"InstanceNormalization", "GroupNormalization"}) {
    std::vector<Message> attributes{attribute_real("epsilon", 0)};
    if (op[0] == 'G') attributes.push_back(attribute("num_groups", 2));
    Imported imported =
        import_node(node(op, {"x", "s", "b"}, {"y"}, attributes),
                    {value("x", F32, {1, 2, "n"}), value("s", F32, {"m"}), value("b", F32, {"l"})},
                    in_ranges({"n", "m", "l"}));
    INFO(imported.messages);
    REQUIRE(imported.model);
    LiteralRef x = f32({1, 2, 2}, {-1, 1, 3, -3}), two = f32({2}, {10, 20}), three = f32({3}, {1, 2, 3});
    CHECK(numbers(run(imported, {x, two, f32({2}, {1, 2})})[0]) == Doubles{-9, 11, 22, -18});
    CHECK(ends_early(imported, {x, three, two}));
    CHECK(ends_early(imported, {x, two, three}));
  }
}

TEST_CASE("instances are normalised whose channels vary") {
  Imported imported = import_node(
      node("InstanceNormalization", {"x", "s", "b"}, {"y"}, {attribute_real("epsilon", 0)}),
      {value("x", F32, {1, "c", 2}), value("s", F32, {"m"}), value("b", F32, {"c"})}, in_ranges({"c", "m"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef x = f32({1, 2, 2}, {-1, 1, 3, -3}), two = f32({2}, {10, 20});
  CHECK(numbers(run(imported, {x, two, f32({2}, {1, 2})})[0]) == Doubles{-9, 11, 22, -18});
  CHECK(ends_early(imported, {x, f32({1}, {10}), two}));
}

TEST_CASE("indices of elements may be fewer than the elements, and no more") {
  std::vector<Message> inputs{value("x", F32, {"n", "k"}), value("i", I64, {"m", "l"}),
                              value("u", F32, {"p", "q"})};
  Imported scatter = import_node(node("ScatterElements", {"x", "i", "u"}, {"y"}, {attribute("axis", 1)}),
                                 inputs, in_ranges({"n", "k", "m", "l", "p", "q"}));
  inputs.pop_back();
  Imported gather = import_node(node("GatherElements", {"x", "i"}, {"y"}, {attribute("axis", 1)}), inputs,
                                in_ranges({"n", "k", "m", "l"}));
  INFO(gather.messages << scatter.messages);
  REQUIRE(gather.model);
  REQUIRE(scatter.model);
  LiteralRef x = f32({2, 2}, {1, 2, 3, 4}), one = i64({1, 3}, {1, 0, -1}), three = i64({3, 1}, {0, 1, 0});
  auto taken = run(gather, {x, one})[0];
  CHECK(taken->dims() == std::vector<int64_t>{1, 3});
  CHECK(numbers(taken) == Doubles{2, 1, 2});
  CHECK(ends_early(gather, {x, three}));
  CHECK(numbers(run(scatter, {x, i64({1, 1}, {1}), f32({1, 1}, {9})})[0]) == Doubles{1, 9, 3, 4});
  CHECK(ends_early(scatter, {x, three, f32({3, 1}, {7, 8, 9})}));
  CHECK(ends_early(scatter, {x, i64({1, 1}, {1}), f32({1, 2}, {8, 9})}));
}

TEST_CASE("batches of data and of indices meet") {
  onnx::ImportOptions options = in_ranges({"n", "m"});
  Imported gather = import_node(node("GatherND", {"x", "i"}, {"y"}, {attribute("batch_dims", 1)}),
                                {value("x", F32, {"n", 2}), value("i", I64, {"m", 1})}, options);
  Imported reverse = import_node(node("ReverseSequence", {"x", "i"}, {"y"}),
                                 {value("x", F32, {2, "n"}), value("i", I64, {"m"})}, options);
  INFO(gather.messages << reverse.messages);
  REQUIRE(gather.model);
  REQUIRE(reverse.model);
  LiteralRef x = f32({2, 2}, {1, 2, 3, 4});
  CHECK(numbers(run(gather, {x, i64({2, 1}, {1, 0})})[0]) == Doubles{2, 3});
  CHECK(ends_early(gather, {x, i64({1, 1}, {1})}));
  CHECK(numbers(run(reverse, {x, i64({2}, {2, 1})})[0]) == Doubles{3, 2, 1, 4});
  CHECK(ends_early(reverse, {x, i64({3}, {2, 1, 1})}));
}

TEST_CASE("elements of a sequence that are joined meet beside the axis") {
  Model model;
  model.graph.inputs = {value("x", F32, {"k", "n"}), value("z", F32, {"l", "m"})};
  model.graph.outputs = {value("y", F32, {})};
  model.graph.nodes = {node("SequenceConstruct", {"x", "z"}, {"s"}),
                       node("ConcatFromSequence", {"s"}, {"y"}, {attribute("axis", 0)})};
  Imported imported = import_model(model, in_ranges({"k", "l", "n", "m"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef x = f32({1, 2}, {1, 2});
  CHECK(numbers(run(imported, {x, f32({2, 2}, {3, 4, 5, 6})})[0]) == Doubles{1, 2, 3, 4, 5, 6});
  CHECK(ends_early(imported, {x, f32({2, 1}, {3, 4})}));
}

TEST_CASE("inputs of a Scan have as many steps as each other, and its state keeps its shape") {
  Graph body;
  body.inputs = {value("s", F32, {}), value("a", F32, {}), value("b", F32, {})};
  body.outputs = {value("t", F32, {}), value("p", F32, {})};
  body.nodes = {node("Add", {"s", "a"}, {"t"}), node("Mul", {"t", "b"}, {"p"})};
  Imported imported =
      import_node(node("Scan", {"s", "a", "b"}, {"t", "y"},
                       {attribute("num_scan_inputs", 2), attribute_graph("body", body.encode())}),
                  {value("s", F32, {"k"}), value("a", F32, {"n", "l"}), value("b", F32, {"m", "l"})},
                  in_ranges({"k", "l", "n", "m"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef s = f32({1}, {1}), a = f32({2, 1}, {1, 2});
  CHECK(numbers(run(imported, {s, a, a})[0]) == Doubles{2, 8});
  CHECK(ends_early(imported, {s, a, f32({1, 1}, {1})}));
  CHECK(ends_early(imported, {s, f32({1, 2}, {1, 2}), f32({1, 2}, {1, 2})}));
}

TEST_CASE("an input of Einsum that is left out is refused") {
  Imported imported =
      import_node(node("Einsum", {"x", "", "x"}, {"y"}, {attribute_text("equation", "i,i,i->")}),
                  {value("x", F32, {3})}, {});
  CHECK_FALSE(imported.model);
  CHECK(contains(imported.messages, "Einsum"));
}

TEST_CASE("a letter that is repeated in Einsum stands for one extent") {
  Imported trace = import_node(node("Einsum", {"x"}, {"y"}, {attribute_text("equation", "ii->")}),
                               {value("x", F32, {"n", "m"})}, in_ranges({"n", "m"}));
  INFO(trace.messages);
  REQUIRE(trace.model);
  CHECK(numbers(run(trace, {f32({2, 2}, {1, 2, 3, 4})})[0]) == Doubles{5});
  CHECK(ends_early(trace, {f32({1, 2}, {1, 2})}));
}

TEST_CASE("states and lengths of a recurrent layer are of its batch") {
  Model model;
  model.graph.inputs = {value("x", F32, {1, "n", 1}), value("l", I32, {"m"}), value("h", F32, {1, "k", 1})};
  model.graph.outputs = {value("y", F32, {})};
  model.graph.initializers = {floats("w", {1, 1, 1}, {1})};
  model.graph.nodes = {node("RNN", {"x", "w", "w", "", "l", "h"}, {"y"},
                            {attribute("hidden_size", 1), attribute_texts("activations", {"Relu"})})};
  Imported imported = import_model(model, in_ranges({"n", "m", "k"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  auto of = [](std::vector<int64_t> dims) { return f32(std::move(dims), {1, 2}); };
  auto lengths = [](const Doubles& values) {
    return Literal::of(DType::I32, {static_cast<int64_t>(values.size())}, values);
  };
  CHECK(numbers(run(imported, {of({1, 2, 1}), lengths({1, 1}), of({1, 2, 1})})[0]) == Doubles{2, 4});
  CHECK(ends_early(imported, {of({1, 2, 1}), lengths({1}), of({1, 2, 1})}));
  CHECK(ends_early(imported, {of({1, 2, 1}), lengths({1, 1}), f32({1, 1, 1}, {1})}));
}

TEST_CASE("grids, regions and scores are of the images and boxes beside them") {
  Imported grid = import_binary("GridSample", {"n", 1, 1, 1}, {"m", 1, 1, 2}, in_ranges({"n", "m"}));
  INFO(grid.messages);
  REQUIRE(grid.model);
  LiteralRef two = f32({2, 1, 1, 1}, {3, 4}), middle = f32({2, 1, 1, 2}, {0, 0, 0, 0});
  CHECK(numbers(run(grid, {two, middle})[0]) == Doubles{3, 4});
  CHECK(ends_early(grid, {two, f32({1, 1, 1, 2}, {0, 0})}));
  Imported align =
      import_node(node("RoiAlign", {"x", "r", "i"}, {"y"}),
                  {value("x", F32, {1, 1, 2, 2}), value("r", F32, {"n", 4}), value("i", I64, {"m"})},
                  in_ranges({"n", "m"}));
  INFO(align.messages);
  REQUIRE(align.model);
  LiteralRef x = f32({1, 1, 2, 2}, {5, 5, 5, 5}), region = f32({1, 4}, {0, 0, 1, 1});
  CHECK(numbers(run(align, {x, region, i64({1}, {0})})[0]) == Doubles{5});
  CHECK(ends_early(align, {x, region, i64({2}, {0, 0})}));
}

TEST_CASE("labels and weights of a loss are of its batch and classes") {
  Imported imported = import_node(
      node("NegativeLogLikelihoodLoss", {"x", "t", "w"}, {"y"}, {attribute_text("reduction", "none")}),
      {value("x", F32, {"n", 2}), value("t", I64, {"m"}), value("w", F32, {"c"})},
      in_ranges({"n", "m", "c"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef x = f32({2, 2}, {1, 2, 3, 4}), w = f32({2}, {1, 10});
  CHECK(numbers(run(imported, {x, i64({2}, {1, 0}), w})[0]) == Doubles{-20, -3});
  CHECK(ends_early(imported, {x, i64({1}, {1}), w}));
  CHECK(ends_early(imported, {x, i64({2}, {1, 0}), f32({3}, {1, 1, 1})}));
}

TEST_CASE("as many rows as there are choose matrices of groups") {
  Imported grouped =
      import_node(node("GroupedMatMul", {"a", "b", "i"}, {"y"}),
                  {value("a", F32, {"n", "k"}), value("b", F32, {2, "q", 1}), value("i", I64, {"m", 1})},
                  in_ranges({"n", "k", "q", "m"}));
  INFO(grouped.messages);
  REQUIRE(grouped.model);
  LiteralRef a = f32({2, 1}, {1, 2}), b = f32({2, 1, 1}, {10, 100});
  CHECK(numbers(run(grouped, {a, b, i64({2, 1}, {1, 0})})[0]) == Doubles{100, 20});
  CHECK(ends_early(grouped, {a, b, i64({1, 1}, {1})}));
  CHECK(ends_early(grouped, {a, f32({2, 2, 1}, {1, 2, 3, 4}), i64({2, 1}, {1, 0})}));
}

TEST_CASE("a dim may be called as another, or as a sum of some") {
  auto text_of = [](std::map<std::string, std::string> names) {
    Model model;
    model.graph.inputs = {value("x", F32, {"n"}), value("z", F32, {"m"}), value("v", F32, {"k"})};
    model.graph.outputs = {value("y", F32, {}), value("w", F32, {})};
    model.graph.nodes = {node("Add", {"x", "z"}, {"y"}),
                         node("Concat", {"x", "z"}, {"both"}, {attribute("axis", 0)}),
                         node("Add", {"both", "v"}, {"w"})};
    onnx::ImportOptions options = in_ranges({"n"});
    options.dim_names = std::move(names);
    Imported imported = import_model(model, options);
    return imported.model ? imported.text() : imported.messages;
  };
  std::string text = text_of({{"m", "n"}, {"k", "2*n"}});
  CHECK(contains(text, "f32[2*n]"));
  CHECK(!contains(text, "gather"));
  CHECK(text_of({{"m", "n"}, {"k", "n+m"}}) == text);
  CHECK(text_of({{"m", "n"}, {"k", "m*2"}}) == text);
  CHECK(contains(text_of({{"m", "n"}, {"k", "2*n"}, {"q", "n"}}), "the model has no symbolic dim 'q'"));
  for (const auto& circle : {std::map<std::string, std::string>{{"m", "k"}, {"k", "m"}},
                             {{"m", "k+k"}, {"k", "m+m"}},
                             {{"m", "m+n"}, {"k", "n"}}})
    CHECK(contains(text_of(circle), "in [1, inf]")); // without a value
}

TEST_CASE("extents that no run can find equal are refused") {
  CHECK(import_binary("Add", {"n", 3}, {"n", 4}, in_ranges({"n"})).fault == Fault::Model);
  CHECK(import_binary("Add", {"n"}, {10}, in_ranges({"n"}, 2)).fault == Fault::Unsupported);
  CHECK(import_binary("MatMul", {1, "n"}, {12, 1}, in_ranges({"n"})).fault == Fault::Model);
}
