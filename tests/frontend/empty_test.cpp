// Models in which nothing is left to compute somewhere: empty dims, sequences without steps, no boxes wanted,
// windows larger than what they slide over. They are valid, and so are their results.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

struct Case {
  int64_t opset;
  Message made;
  std::vector<Message> initializers;
  size_t outputs = 1; // y, z, ...
};

std::vector<LiteralRef> results(const Case& test, const std::vector<LiteralRef>& inputs) {
  Model model;
  model.opsets = {{"", test.opset}};
  for (size_t i = 0; i < inputs.size(); ++i)
    model.graph.inputs.push_back(
        value(std::string(1, static_cast<char>('a' + i)), inputs[i]->dtype() == DType::I64 ? I64 : F32,
              std::vector<WireDim>(inputs[i]->dims().begin(), inputs[i]->dims().end())));
  for (size_t i = 0; i < test.outputs; ++i)
    model.graph.outputs.push_back(value(i == 0 ? "y" : i == 1 ? "z" : "zz", F32, {}));
  model.graph.initializers = test.initializers;
  model.graph.nodes = {test.made};
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  return run(imported, inputs);
}

LiteralRef zeros(Ints dims) {
  int64_t count = 1;
  for (int64_t extent : dims) count *= extent;
  return f32(std::move(dims), Doubles(static_cast<size_t>(count), 0));
}

} // namespace

TEST_CASE("a slice with a negative step over an empty dim is empty") {
  for (int64_t start : {-1, 0, 5}) {
    Case slice{13,
               node("Slice", {"a", "s", "e", "x", "t"}, {"y"}),
               {ints("s", {start}), ints("e", {-10}), ints("x", {0}), ints("t", {-1})}};
    CHECK(results(slice, {zeros({0, 3})})[0]->dims() == Ints{0, 3});
  }
}

TEST_CASE("non-maximum suppression that keeps no boxes gives none") {
  Message made = node("NonMaxSuppression", {"a", "b"}, {"y"});
  CHECK(results({11, made, {}}, {zeros({1, 2, 4}), zeros({1, 1, 2})})[0]->dims() == Ints{0, 3});
  Message limited = node("NonMaxSuppression", {"a", "b", "n"}, {"y"});
  CHECK(results({11, limited, {ints("n", {0})}}, {zeros({1, 2, 4}), zeros({1, 1, 2})})[0]->dims() ==
        Ints{0, 3});
  CHECK(results({11, limited, {ints("n", {5})}}, {zeros({1, 0, 4}), zeros({1, 1, 0})})[0]->dims() ==
        Ints{0, 3});
}

TEST_CASE("nothing is found in an empty tensor") {
  CHECK(results({13, node("NonZero", {"a"}, {"y"}), {}}, {zeros({0, 3})})[0]->dims() == Ints{2, 0});
}

TEST_CASE("a pool's window may exceed what it slides over") {
  auto pool = [](const char* op, Ints kernel, Ints strides, Ints dilations, bool ceil, const LiteralRef& x) {
    std::vector<Message> attributes{
        attribute_ints("kernel_shape", kernel), attribute_ints("strides", strides),
        attribute_ints("dilations", dilations), attribute("ceil_mode", ceil ? 1 : 0)};
    return results({22, node(op, {"a"}, {"y"}, attributes), {}}, {x})[0];
  };
  LiteralRef line = f32({1, 1, 3}, {4, 6, 5});
  for (const char* op : {"MaxPool", "AveragePool", "LpPool"}) {
    CHECK(pool(op, {4}, {1}, {1}, false, line)->dims() == Ints{1, 1, 0});
    CHECK(pool(op, {4}, {1}, {1}, true, line)->dims() == Ints{1, 1, 0});
  }
  // With a stride longer than what is missing, it sees what there is.
  for (bool ceil : {false, true}) {
    CHECK(numbers(pool("MaxPool", {4}, {2}, {1}, ceil, line)) == Doubles{6});
    CHECK(numbers(pool("AveragePool", {4}, {2}, {1}, ceil, line)) == Doubles{5});
    CHECK(numbers(pool("MaxPool", {2}, {2}, {3}, ceil, line)) == Doubles{4});
  }
}

TEST_CASE("a recurrent layer without steps gives its first states") {
  for (auto [op, gates] : {std::pair("LSTM", 4), std::pair("GRU", 3), std::pair("RNN", 1)}) {
    INFO(op);
    bool lstm = gates == 4;
    Names inputs{"a", "b", "c", "", "", "d"};
    std::vector<LiteralRef> values{zeros({0, 2, 3}), zeros({1, gates * 2, 3}), zeros({1, gates * 2, 2}),
                                   f32({1, 2, 2}, {1, 2, 3, 4})};
    if (lstm) inputs.push_back("e"), values.push_back(f32({1, 2, 2}, {5, 6, 7, 8}));
    Names outputs{"y", "z"};
    if (lstm) outputs.push_back("zz");
    auto found = results({14, node(op, inputs, outputs), {}, lstm ? size_t{3} : size_t{2}}, values);
    CHECK(found[0]->dims() == Ints{0, 1, 2, 2});
    CHECK(numbers(found[1]) == Doubles{1, 2, 3, 4});
    if (lstm) CHECK(numbers(found[2]) == Doubles{5, 6, 7, 8});
  }
}

TEST_CASE("linear attention without steps gives its first state") {
  Message made = node(
      "LinearAttention", {"a", "b", "c", "d"}, {"y", "z"},
      {attribute("q_num_heads", 1), attribute("kv_num_heads", 1), attribute_text("update_rule", "linear")});
  LiteralRef empty = zeros({1, 0, 2});
  auto found = results({27, made, {}, 2}, {empty, empty, empty, f32({1, 1, 2, 2}, {1, 2, 3, 4})});
  CHECK(found[0]->dims() == Ints{1, 0, 2});
  CHECK(numbers(found[1]) == Doubles{1, 2, 3, 4});
}

TEST_CASE("reductions of nothing give their identity, and hardmax of nothing is nothing") {
  auto axes = attribute_ints("axes", {0});
  CHECK(numbers(results({13, node("ReduceL2", {"a"}, {"y"}, {axes}), {}}, {zeros({0, 2})})[0]) ==
        Doubles{0, 0});
  CHECK(numbers(results({13, node("ReduceProd", {"a"}, {"y"}, {axes}), {}}, {zeros({0, 2})})[0]) ==
        Doubles{1, 1});
  CHECK(
      results({13, node("Hardmax", {"a"}, {"y"}, {attribute("axis", 0)}), {}}, {zeros({0, 2})})[0]->dims() ==
      Ints{0, 2});
  CHECK(numbers(results({13, node("MatMul", {"a", "b"}, {"y"}), {}}, {zeros({2, 0}), zeros({0, 1})})[0]) ==
        Doubles{0, 0});
}
