// Operators along dims that vary, or that a run counts: sizes, places and windows that follow them.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>
#include <functional>
#include <numeric>

using namespace firn;
using namespace firn::test;

namespace {

using Numbers = std::vector<double>;

// x: f32[n] with n of 1 to 9, and k, the same as a number.
Model model_of(std::vector<Message> nodes, std::vector<Message> initializers, const Names& outputs) {
  Model model;
  model.graph.inputs = {value("x", F32, {"n"})};
  model.graph.initializers = std::move(initializers);
  model.graph.nodes = {node("Shape", {"x"}, {"shape"}), node("Size", {"x"}, {"k"})};
  model.graph.nodes.insert(model.graph.nodes.end(), nodes.begin(), nodes.end());
  for (const std::string& output : outputs)
    model.graph.outputs.push_back(value(output, F32, {("n_" + output).c_str()}));
  return model;
}

Imported import_varying(const Model& model) {
  onnx::ImportOptions options;
  options.ranges = {{"n", {1, 9, 1, {}}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  return imported;
}

// 1, 2, 3 ...
LiteralRef first(int64_t count) {
  Numbers values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1);
  return f32({count}, values);
}

LiteralRef truths(const Numbers& values) {
  return Literal::of(DType::Bool, {static_cast<int64_t>(values.size())}, values);
}

} // namespace

TEST_CASE("equal parts of a dim that varies, or that a run counts") {
  for (int64_t opset : {13, 18}) {
    std::vector<Message> attributes{attribute("axis", 0)};
    if (opset == 18) attributes.push_back(attribute("num_outputs", 3));
    Model model = model_of({node("Split", {"x"}, {"a", "b", "c"}, attributes),
                            node("Compress", {"x", "m"}, {"some"}, {attribute("axis", 0)}),
                            node("Split", {"some"}, {"d", "e", "f"}, attributes)},
                           {}, {"a", "b", "c", "d", "e", "f"});
    model.opsets = {{"", opset}};
    model.graph.inputs.push_back(value("m", Bool, {"n"}));
    Imported imported = import_varying(model);
    auto parts = run(imported, {first(6), truths({1, 0, 1, 0, 0, 1})});
    std::vector<Numbers> wanted{{1, 2}, {3, 4}, {5, 6}, {1}, {3}, {6}};
    for (size_t i = 0; i < wanted.size(); ++i) CHECK(numbers(parts[i]) == wanted[i]);
    // Since opset 18 the last part may be smaller; before, the parts are equal or the run ends.
    std::vector<LiteralRef> uneven{first(7), truths({1, 1, 1, 1, 1, 1, 1})};
    CHECK(ends_early(imported, uneven) == (opset == 13));
    if (opset == 13) continue;
    parts = run(imported, uneven);
    for (size_t i : {0, 3}) {
      CHECK(numbers(parts[i]) == Numbers{1, 2, 3});
      CHECK(numbers(parts[i + 2]) == Numbers{7});
    }
  }
}

TEST_CASE("parts of given sizes are the whole of a dim that varies or is counted, or the run ends") {
  Model model = model_of({node("Split", {"x", "sizes"}, {"a", "b"}, {attribute("axis", 0)}),
                          node("Compress", {"x", "m"}, {"some"}, {attribute("axis", 0)}),
                          node("Split", {"some", "given"}, {"c", "d"}, {attribute("axis", 0)})},
                         {ints("sizes", {1, 3})}, {"a", "b", "c", "d"});
  model.graph.inputs.push_back(value("m", Bool, {"n"}));
  model.graph.inputs.push_back(value("given", I64, {2}));
  Imported imported = import_varying(model);
  auto parts = run(imported, {first(4), truths({1, 0, 1, 1}), i64({2}, {2, 1})});
  std::vector<Numbers> wanted{{1}, {2, 3, 4}, {1, 3}, {4}};
  for (size_t i = 0; i < wanted.size(); ++i) CHECK(numbers(parts[i]) == wanted[i]);
  CHECK(ends_early(imported, {first(4), truths({1, 0, 1, 1}), i64({2}, {2, 2})}));
  CHECK(ends_early(imported, {first(4), truths({1, 0, 1, 1}), i64({2}, {4, -1})}));
  CHECK(ends_early(imported, {first(5), truths({1, 0, 1, 1, 0}), i64({2}, {2, 1})}));
}

TEST_CASE("pads made of dims crop where they are below zero") {
  // Pads of n - 5 before and 1 behind.
  std::vector<std::pair<std::string, std::vector<Numbers>>> modes{
      {"constant", {{0}, {2, 3, 4, 0}, {1, 2, 3, 4, 5, 0}, {0, 1, 2, 3, 4, 5, 6, 0}}},
      {"edge", {{3}, {2, 3, 4, 4}, {1, 2, 3, 4, 5, 5}, {1, 1, 2, 3, 4, 5, 6, 6}}},
      {"wrap", {{3}, {2, 3, 4, 2}, {1, 2, 3, 4, 5, 1}, {6, 1, 2, 3, 4, 5, 6, 1}}}};
  for (const auto& [mode, wanted] : modes) {
    Model model = model_of({node("Sub", {"shape", "five"}, {"low"}),
                            node("Concat", {"low", "one"}, {"p"}, {attribute("axis", 0)}),
                            node("Pad", {"x", "p"}, {"y"}, {attribute_text("mode", mode)})},
                           {ints("five", {5}), ints("one", {1})}, {"y"});
    model.opsets = {{"", 19}};
    Imported imported = import_varying(model);
    CHECK(!contains(imported.text(), "count"));
    INFO(mode);
    CHECK(ends_early(imported, {first(1)}));
    for (int64_t n = 4; n <= 6; ++n)
      CHECK(numbers(run(imported, {first(n)})[0]) == wanted[static_cast<size_t>(n - 3)]);
  }
}

TEST_CASE("conditions beyond what there is choose nothing") {
  Model model = model_of({node("Compress", {"x", "m"}, {"y"}, {attribute("axis", 0)})}, {}, {"y"});
  model.graph.inputs.push_back(value("m", Bool, {3}));
  Imported imported = import_varying(model);
  CHECK(numbers(run(imported, {first(2), truths({0, 1, 1})})[0]) == Numbers{2});
  CHECK(numbers(run(imported, {first(4), truths({0, 1, 1})})[0]) == Numbers{2, 3});
}

TEST_CASE("numbers crop a dim that varies down to padding") {
  Model model = model_of({node("Pad", {"x", "p"}, {"y"}), node("Pad", {"x", "q"}, {"z"})},
                         {ints("p", {2, -2}), ints("q", {-3, 1})}, {"y", "z"});
  Imported imported = import_varying(model);
  CHECK(ends_early(imported, {first(1)})); // two fewer than none are left in z
  auto padded = run(imported, {first(2)});
  CHECK(numbers(padded[0]) == Numbers{0, 0});
  CHECK(numbers(padded[1]).empty());
  padded = run(imported, {first(5)});
  CHECK(numbers(padded[0]) == Numbers{0, 0, 1, 2, 3});
  CHECK(numbers(padded[1]) == Numbers{4, 5, 0});
}

TEST_CASE("what is cropped or padded around the centre may vary") {
  Model model =
      model_of({node("CenterCropPad", {"x", "four"}, {"y"}), node("CenterCropPad", {"w", "shape"}, {"z"})},
               {ints("four", {4}), floats("w", {3}, {7, 8, 9})}, {"y", "z"});
  model.opsets = {{"", 18}};
  Imported imported = import_varying(model);
  for (int64_t n = 1; n <= 9; ++n) {
    Model fixed = model;
    fixed.graph.inputs = {value("x", F32, {n})};
    INFO(n);
    auto found = run(imported, {first(n)}), wanted = run(import_model(fixed), {first(n)});
    for (size_t i = 0; i < 2; ++i) CHECK(numbers(found[i]) == numbers(wanted[i]));
  }
}

TEST_CASE("blocks of an image that varies divide it, or the run ends") {
  Model model;
  model.graph.inputs = {value("x", F32, {1, 1, "n", 2})};
  model.graph.outputs = {value("y", F32, {1, 4, "m", 1})};
  model.graph.nodes = {node("SpaceToDepth", {"x"}, {"y"}, {attribute("blocksize", 2)})};
  Imported imported = import_varying(model);
  LiteralRef y = run(imported, {f32({1, 1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})})[0];
  CHECK(y->dims() == std::vector<int64_t>{1, 4, 2, 1});
  CHECK(numbers(y) == Numbers{1, 5, 2, 6, 3, 7, 4, 8});
  CHECK(ends_early(imported, {f32({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6})}));
}

TEST_CASE("pads that a run computes pad or crop") {
  Model model = model_of({node("Pad", {"x", "p", "value"}, {"y"}),
                          node("Pad", {"x", "p"}, {"z"}, {attribute_text("mode", "reflect")})},
                         {floats("value", {}, {7})}, {"y", "z"});
  model.graph.inputs.push_back(value("p", I64, {2}));
  onnx::ImportOptions options;
  options.ranges = {{"n", {1, 9, 1, {}}}};
  options.bounds = {{"p", {3}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  auto padded = [&](int64_t low, int64_t high) { return run(imported, {first(4), i64({2}, {low, high})}); };
  CHECK(numbers(padded(2, 1)[0]) == Numbers{7, 7, 1, 2, 3, 4, 7});
  CHECK(numbers(padded(2, 1)[1]) == Numbers{3, 2, 1, 2, 3, 4, 3});
  CHECK(numbers(padded(-1, 2)[0]) == Numbers{2, 3, 4, 7, 7});
  CHECK(numbers(padded(-1, 2)[1]) == Numbers{2, 3, 4, 3, 2});
  CHECK(numbers(padded(-2, -1)[0]) == Numbers{3});
  CHECK(ends_early(imported, {first(4), i64({2}, {-3, -2})}));
  CHECK(ends_early(imported, {first(4), i64({2}, {9, 9})}));
}

TEST_CASE("ranges fall, and are empty where their end lies on the other side") {
  Model model =
      model_of({node("Neg", {"k"}, {"minus"}), node("Range", {"zero", "minus", "down"}, {"a"}),
                node("Range", {"k", "three", "down"}, {"b"}), node("Range", {"three", "k", "two"}, {"c"}),
                node("Range", {"three", "minus", "minus"}, {"d"})},
               {int_scalar("zero", 0), int_scalar("two", 2), int_scalar("three", 3), int_scalar("down", -1)},
               {"a", "b", "c", "d"});
  Imported imported = import_varying(model);
  CHECK(!contains(imported.text(), "count"));
  auto ranges = run(imported, {first(2)});
  CHECK(numbers(ranges[0]) == Numbers{0, -1});
  CHECK(numbers(ranges[1]).empty());
  CHECK(numbers(ranges[2]).empty());
  CHECK(numbers(ranges[3]) == Numbers{3, 1, -1});
  ranges = run(imported, {first(6)});
  CHECK(numbers(ranges[0]) == Numbers{0, -1, -2, -3, -4, -5});
  CHECK(numbers(ranges[1]) == Numbers{6, 5, 4});
  CHECK(numbers(ranges[2]) == Numbers{3, 5});
  CHECK(numbers(ranges[3]) == Numbers{3, -3});
}

TEST_CASE("sequences of the pieces of a dim that varies") {
  auto at = [](const std::string& sequence, const std::string& position, const std::string& y) {
    return node("SequenceAt", {sequence, position}, {y});
  };
  Model model =
      model_of({node("SplitToSequence", {"x", "sizes"}, {"s"}), at("s", "last", "a"),
                node("SplitToSequence", {"x", "given"}, {"t"}), at("t", "zero", "b"), at("t", "last", "c")},
               {ints("sizes", {1, 3}), int_scalar("zero", 0), int_scalar("last", -1)}, {"a", "b", "c"});
  model.graph.inputs.push_back(value("given", I64, {2}));
  Imported imported = import_varying(model);
  auto pieces = run(imported, {first(4), i64({2}, {3, 1})});
  std::vector<Numbers> wanted{{2, 3, 4}, {1, 2, 3}, {4}};
  for (size_t i = 0; i < wanted.size(); ++i) CHECK(numbers(pieces[i]) == wanted[i]);
  CHECK(ends_early(imported, {first(4), i64({2}, {3, 2})}));
  CHECK(ends_early(imported, {first(5), i64({2}, {3, 2})}));

  // All pieces have one size, which divides every extent.
  model = model_of({node("SplitToSequence", {"x", "two"}, {"s"}, {attribute("axis", 0)}),
                    node("SequenceLength", {"s"}, {"a"}), at("s", "last", "b")},
                   {int_scalar("two", 2), int_scalar("last", -1)}, {"b"});
  model.graph.outputs.push_back(value("a", I64, {}));
  onnx::ImportOptions options;
  options.ranges = {{"n", {2, 8, 2, {}}}};
  imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  pieces = run(imported, {first(6)});
  CHECK(numbers(pieces[0]) == Numbers{5, 6});
  CHECK(numbers(pieces[1]) == Numbers{3});
}
