// Forms of operators that ONNX allows and its own cases lack, and those that ONNX Runtime alone takes.
#include "compiler/graph/evaluate.h"
#include "tests/frontend/import_case.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace firn;
using namespace firn::test;

namespace {

using Doubles = std::vector<double>;

// y = made(a, b, ...), inputs of the types and dims of `given`.
Imported import_on(int64_t opset, const Message& made, const std::vector<LiteralRef>& given,
                   const std::vector<Message>& initializers = {}) {
  Model model;
  model.opsets = {{"", opset}, {"com.microsoft", 1}};
  for (size_t i = 0; i < given.size(); ++i) {
    std::vector<WireDim> dims(given[i]->dims().begin(), given[i]->dims().end());
    int type = given[i]->dtype() == DType::F32 ? F32 : given[i]->dtype() == DType::I64 ? I64 : I32;
    model.graph.inputs.push_back(value(std::string(1, static_cast<char>('a' + i)), type, dims));
  }
  model.graph.initializers = initializers;
  model.graph.outputs = {value("y", F32, {})};
  model.graph.nodes = {made};
  return import_model(model);
}

LiteralRef result_of(int64_t opset, const Message& made, const std::vector<LiteralRef>& given,
                     const std::vector<Message>& initializers = {}) {
  Imported imported = import_on(opset, made, given, initializers);
  INFO(imported.messages);
  REQUIRE(imported.model);
  return run(imported, given)[0];
}

std::string refusal_of(int64_t opset, const Message& made, const std::vector<Message>& initializers) {
  Imported imported = import_on(opset, made, {}, initializers);
  CHECK(!imported.model);
  return imported.messages;
}

} // namespace

TEST_CASE("a mask of integers is added to the scores of attention") {
  LiteralRef q = f32({1, 1, 1, 1}, {0}), k = f32({1, 1, 3, 1}, {1, 2, 3}),
             v = f32({1, 1, 3, 1}, {1, 10, 100});
  auto mask = [](std::vector<int64_t> dims, const std::vector<int64_t>& values) {
    return Literal::of(DType::I32, std::move(dims), values);
  };
  Message attention = node("Attention", {"a", "b", "c", "d"}, {"y"});
  double e = std::exp(1), all = 1 + e + 1 / e;
  CHECK(numbers(result_of(23, attention, {q, k, v, mask({1, 3}, {0, 1, -1})}))[0] ==
        Approx((1 + 10 * e + 100 / e) / all));
  // Keys beyond a short mask are hidden.
  CHECK(numbers(result_of(23, attention, {q, k, v, mask({1, 2}, {0, 1})}))[0] ==
        Approx((1 + 10 * e) / (1 + e)));
}

TEST_CASE("one dim is a batch of one channel to normalise") {
  LiteralRef x = f32({4}, {1, 2, 3, 6}), one = f32({1}, {2}), shift = f32({1}, {1}), mean = f32({1}, {3}),
             variance = f32({1}, {4});
  for (int64_t opset : {7, 9, 15}) {
    Message norm =
        node("BatchNormalization", {"a", "b", "c", "d", "e"}, {"y"}, {attribute_real("epsilon", 0)});
    LiteralRef y = result_of(opset, norm, {x, one, shift, mean, variance});
    CHECK(y->dims() == std::vector<int64_t>{4});
    CHECK(numbers(y) == Doubles{-1, 0, 1, 4});
  }
  Message trained = node("BatchNormalization", {"a", "b", "c", "d", "e"}, {"y"},
                         {attribute_real("epsilon", 0), attribute("training_mode", 1)});
  Doubles y = numbers(result_of(15, trained, {x, one, shift, mean, variance}));
  CHECK(y[2] == Approx(1)); // the mean of the batch
  CHECK(y[0] == Approx(1 - 4 / std::sqrt(3.5)));
}

TEST_CASE("groups of channels alone are normalised") {
  Message norm = node("GroupNormalization", {"a", "b", "c"}, {"y"},
                      {attribute("num_groups", 2), attribute_real("epsilon", 0)});
  LiteralRef y =
      result_of(21, norm, {f32({1, 4}, {1, 3, 10, 14}), f32({4}, {1, 1, 1, 2}), f32({4}, {0, 0, 0, 5})});
  CHECK(numbers(y) == Doubles{-1, 1, -1, 7});
}

TEST_CASE("operators are taken below the opset that brought them, with a warning") {
  LiteralRef rows = f32({1, 2}, {1, 3}), two = f32({2}, {1, 1});
  struct {
    int64_t opset;
    Message made;
    std::vector<LiteralRef> given;
    Doubles wanted;
    const char* since;
  } cases[] = {
      {11,
       node("LayerNormalization", {"a", "b"}, {"y"}, {attribute_real("epsilon", 0)}),
       {rows, two},
       {-1, 1},
       "of opset 17"},
      {9, node("ThresholdedRelu", {"a"}, {"y"}, {attribute_real("alpha", 2)}), {rows}, {0, 3}, "of opset 10"},
      {8,
       node("MeanVarianceNormalization", {"a"}, {"y"}, {attribute("normalize_variance", 0)}),
       {f32({1, 2, 1, 2}, {1, 3, 10, 14})},
       {-1, 1, -2, 2},
       "of opset 9"},
      {8,
       node("MeanVarianceNormalization", {"a"}, {"y"},
            {attribute("across_channels", 1), attribute("normalize_variance", 0)}),
       {f32({1, 2, 1, 2}, {1, 3, 10, 14})},
       {-6, -4, 3, 7},
       "of opset 9"},
  };
  for (const auto& each : cases) {
    Imported imported = import_on(each.opset, each.made, each.given);
    INFO(imported.messages);
    REQUIRE(imported.model);
    CHECK(numbers(run(imported, each.given)[0]) == each.wanted);
    REQUIRE(imported.model->facts.warnings.size() == 1);
    CHECK(contains(imported.model->facts.warnings[0], each.since));
  }
}

TEST_CASE("filters without output or input channels make images of none or of the bias") {
  LiteralRef image = f32({1, 2, 3, 3}, Doubles(18, 1));
  LiteralRef none = result_of(17, node("Conv", {"a", "w"}, {"y"}), {image}, {floats("w", {0, 2, 2, 2}, {})});
  CHECK(none->dims() == std::vector<int64_t>{1, 0, 2, 2});
  LiteralRef transposed =
      result_of(17, node("ConvTranspose", {"a", "w"}, {"y"}), {image}, {floats("w", {2, 0, 2, 2}, {})});
  CHECK(transposed->dims() == std::vector<int64_t>{1, 0, 4, 4});
  LiteralRef bias = result_of(17, node("Conv", {"a", "w", "b"}, {"y"}), {f32({1, 0, 2, 2}, {})},
                              {floats("w", {2, 0, 1, 2}, {}), floats("b", {2}, {5, 7})});
  CHECK(numbers(bias) == Doubles{5, 5, 7, 7});
  Imported refused = import_on(17, node("Conv", {"a", "w"}, {"y"}), {image}, {floats("w", {2, 2, 0, 2}, {})});
  CHECK(contains(refused.messages, "input 'w' is an empty filter"));
}

TEST_CASE("coordinates of no dims name the whole tensor") {
  LiteralRef x = f32({2}, {1, 2}), updates = f32({2, 2}, {10, 20, 30, 40});
  auto scattered = [&](const std::string& reduction) {
    return numbers(
        result_of(18, node("ScatterND", {"a", "b", "c"}, {"y"}, {attribute_text("reduction", reduction)}),
                  {x, i64({2, 0}, {}), updates}));
  };
  CHECK(scattered("none") == Doubles{30, 40});
  CHECK(scattered("add") == Doubles{41, 62});
  CHECK(scattered("mul") == Doubles{300, 1600});
  CHECK(scattered("max") == Doubles{30, 40});
  CHECK(numbers(result_of(18, node("ScatterND", {"a", "b", "c"}, {"y"}),
                          {x, i64({0, 0}, {}), f32({0, 2}, {})})) == Doubles{1, 2});
  LiteralRef wholes = result_of(18, node("GatherND", {"a", "b"}, {"y"}), {x, i64({3, 0}, {})});
  CHECK(wholes->dims() == std::vector<int64_t>{3, 2});
  CHECK(numbers(wholes) == Doubles{1, 2, 1, 2, 1, 2});
  Message by_batch = node("GatherND", {"a", "b"}, {"y"}, {attribute("batch_dims", 1)});
  CHECK(numbers(result_of(18, by_batch, {f32({2, 2}, {1, 2, 3, 4}), i64({2, 2, 0}, {})})) ==
        Doubles{1, 2, 1, 2, 3, 4, 3, 4});
  CHECK(numbers(result_of(18, by_batch, {x, i64({2, 0}, {})})) == Doubles{1, 2});
}

TEST_CASE("ranges too large to store are computed where they are read") {
  Message range = node("Range", {"from", "to", "by"}, {"y"});
  auto ends = [](int64_t from, int64_t to, int64_t by) {
    return std::vector<Message>{int_scalar("from", from), int_scalar("to", to), int_scalar("by", by)};
  };
  Imported large = import_on(17, range, {}, ends(7, 50000000, 3));
  CHECK(contains(large.text(), "iota"));
  for (auto [from, to, by] : {std::tuple<int64_t, int64_t, int64_t>{5, 5000000, 1}, {-3, -15000000, -3}}) {
    LiteralRef y = run(import_on(17, range, {}, ends(from, to, by)), {})[0];
    REQUIRE(y->num_elements() > 4194304);
    CHECK(y->get_int(0) == from);
    CHECK(y->get_int(4999994) == from + 4999994 * by);
  }
  constexpr int64_t far = int64_t{1} << 62;
  CHECK(run(import_on(17, range, {}, ends(-far, -far + 3, 2)), {})[0]->to_ints() ==
        std::vector<int64_t>{-far, -far + 2});
  CHECK(run(import_on(17, range, {}, ends(far, -far, 1)), {})[0]->num_elements() == 0);
  CHECK(contains(refusal_of(17, range, ends(0, 5000000000, 1)), "the range has 5000000000 elements"));
  CHECK(contains(refusal_of(17, range, ends(-far, far, 1)), "the range has 9223372036854775808 elements"));
}

namespace {

// A running sum of `a`, and twice what each step leaves of it.
Message running_sum(const Names& inputs, const std::vector<int64_t>& directions) {
  Graph body;
  body.inputs = {value("s", F32, {}), value("x", F32, {})};
  body.outputs = {value("t", F32, {}), value("r", F32, {})};
  body.nodes = {node("Add", {"s", "x"}, {"t"}), node("Add", {"t", "t"}, {"r"})};
  return node("Scan", inputs, {"last", "y"},
              {attribute_graph("body", body.encode()), attribute("num_scan_inputs", 1),
               attribute_ints("directions", directions)});
}

} // namespace

TEST_CASE("entries of a batch are scanned as far as their lengths say") {
  LiteralRef x = f32({3, 3}, {1, 2, 3, 10, 20, 30, 100, 200, 300}), start = f32({3}, {0, 5, 7});
  auto sums = [&](int64_t direction, const std::vector<int64_t>& lengths) {
    return numbers(result_of(8, running_sum({"a", "b", "c"}, {direction}), {i64({3}, lengths), start, x}));
  };
  CHECK(sums(0, {3, 1, 2}) == Doubles{2, 6, 12, 30, 0, 0, 214, 614, 0});
  CHECK(sums(1, {3, 1, 2}) == Doubles{6, 10, 12, 30, 0, 0, 414, 614, 0});
  CHECK(sums(0, {0, 3, 3}) == Doubles{0, 0, 0, 30, 70, 130, 214, 614, 1214});
  Imported imported = import_on(8, running_sum({"a", "b", "c"}, {0}), {i64({3}, {1, 1, 1}), start, x});
  CHECK(ends_early(imported, {i64({3}, {1, 4, 1}), start, x}));
  CHECK(ends_early(imported, {i64({3}, {1, -1, 1}), start, x}));
  Imported refused = import_on(8, running_sum({"n", "a", "b"}, {0}), {start, x}, {ints("n", {3, 1, 4})});
  CHECK(contains(refused.messages, "input 'n' holds 4, there are 3 steps"));
}
