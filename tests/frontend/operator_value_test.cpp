// Values of operators where ONNX's own cases are thin: attributes of old opsets, windows that overhang,
// conventions for ties. Expectations are written out or come from plain loops.
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

Model one_node(int64_t opset, const Message& made, const std::vector<std::vector<WireDim>>& inputs,
               size_t outputs = 1) {
  Model model;
  model.opsets = {{"", opset}};
  for (size_t i = 0; i < inputs.size(); ++i)
    model.graph.inputs.push_back(value(std::string(1, static_cast<char>('a' + i)), F32, inputs[i]));
  for (size_t i = 0; i < outputs; ++i)
    model.graph.outputs.push_back(value(i == 0 ? "y" : "z", i == 0 ? F32 : I64, {}));
  model.graph.nodes = {made};
  return model;
}

Doubles counting(int64_t count, double from = 0) {
  Doubles values;
  for (int64_t i = 0; i < count; ++i) values.push_back(from + static_cast<double>(i));
  return values;
}

std::vector<LiteralRef> run_model(const Model& model, const std::vector<LiteralRef>& inputs) {
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  return run(imported, inputs);
}

} // namespace

// --- Broadcasting before opset 7.

TEST_CASE("axis places the second operand before opset 7") {
  auto add = node("Add", {"a", "b"}, {"y"}, {attribute("broadcast", 1), attribute("axis", 0)});
  auto y = run_model(one_node(6, add, {{2, 3}, {2}}), {f32({2, 3}, counting(6)), f32({2}, {10, 20})});
  CHECK(numbers(y[0]) == Doubles{10, 11, 12, 23, 24, 25});
}

TEST_CASE("without axis the second operand is aligned to the right before opset 7") {
  auto add = node("Add", {"a", "b"}, {"y"}, {attribute("broadcast", 1)});
  auto y = run_model(one_node(6, add, {{2, 3}, {3}}), {f32({2, 3}, counting(6)), f32({3}, {10, 20, 30})});
  CHECK(numbers(y[0]) == Doubles{10, 21, 32, 13, 24, 35});
}

TEST_CASE("an axis without room for the second operand is refused") {
  auto add = node("Add", {"a", "b"}, {"y"}, {attribute("broadcast", 1), attribute("axis", 1)});
  Imported imported = import_model(one_node(6, add, {{2, 3}, {2, 3}}));
  CHECK(!imported.model);
  CHECK(contains(imported.messages, "axis"));
}

TEST_CASE("a slope per channel belongs to dim 1 before opset 7") {
  auto y = run_model(one_node(6, node("PRelu", {"a", "b"}, {"y"}), {{1, 2, 2}, {2}}),
                     {f32({1, 2, 2}, {-1, 2, -3, 4}), f32({2}, {10, 100})});
  CHECK(numbers(y[0]) == Doubles{-10, 2, -300, 4});
}

// --- Softmax.

TEST_CASE("softmax before opset 13 spans all dims from the axis on") {
  auto y =
      run_model(one_node(12, node("Softmax", {"a"}, {"y"}), {{2, 2, 2}}), {f32({2, 2, 2}, Doubles(8, 1))});
  CHECK(numbers(y[0]) == Doubles(8, 0.25));
}

TEST_CASE("softmax from opset 13 spans one dim") {
  auto y = run_model(one_node(13, node("Softmax", {"a"}, {"y"}, {attribute("axis", 1)}), {{2, 2, 2}}),
                     {f32({2, 2, 2}, Doubles(8, 1))});
  CHECK(numbers(y[0]) == Doubles(8, 0.5));
}

TEST_CASE("hardmax marks the first of equal elements") {
  auto y = run_model(one_node(13, node("Hardmax", {"a"}, {"y"}), {{4}}), {f32({4}, {1, 3, 3, 2})});
  CHECK(numbers(y[0]) == Doubles{0, 1, 0, 0});
}

// --- Clip.

TEST_CASE("clip without bounds keeps infinity from opset 11 on and bounds it in opset 6") {
  double infinity = std::numeric_limits<double>::infinity();
  auto later = run_model(one_node(13, node("Clip", {"a"}, {"y"}), {{1}}), {f32({1}, {infinity})});
  CHECK(numbers(later[0]) == Doubles{infinity});
  auto older = run_model(one_node(6, node("Clip", {"a"}, {"y"}), {{1}}), {f32({1}, {infinity})});
  CHECK(numbers(older[0]) == Doubles{std::numeric_limits<float>::max()});
}

TEST_CASE("clip gives the upper bound where bounds cross") {
  Model model = one_node(13, node("Clip", {"a", "low", "high"}, {"y"}), {{2}});
  model.graph.initializers = {floats("low", {}, {2}), floats("high", {}, {1})};
  CHECK(numbers(run_model(model, {f32({2}, {0, 5})})[0]) == Doubles{1, 1});
}

// --- Mod.

TEST_CASE("the remainder has the divisor's sign, with fmod the dividend's") {
  auto model = [](int64_t fmod) {
    Model m = one_node(13, node("Mod", {"a", "b"}, {"y"}, {attribute("fmod", fmod)}), {});
    m.graph.inputs = {value("a", I64, {4}), value("b", I64, {4})};
    m.graph.outputs = {value("y", I64, {4})};
    return m;
  };
  std::vector<LiteralRef> inputs{i64({4}, {7, -7, 7, -7}), i64({4}, {3, 3, -3, -3})};
  CHECK(numbers(run_model(model(0), inputs)[0]) == Doubles{1, 2, -2, -1});
  CHECK(numbers(run_model(model(1), inputs)[0]) == Doubles{1, -1, 1, -1});
}

TEST_CASE("the remainder of narrow integers does not wrap on its way") {
  Model m = one_node(13, node("Mod", {"c", "d"}, {"y"}), {}, 0);
  constexpr int kI8 = 3;
  auto bytes = [](const std::string& name, const std::vector<int8_t>& values) {
    return tensor_header(name, kI8, {3}).raw(9, values);
  };
  m.graph.outputs = {value("y", kI8, {3})};
  m.graph.initializers = {bytes("c", {-100, -128, -7}), bytes("d", {100, 127, 3})};
  CHECK(numbers(run_model(m, {})[0]) == Doubles{0, 126, 2});
}

TEST_CASE("the remainder of floats that is zero has the divisor's sign") {
  auto y = run_model(one_node(28, node("Mod", {"a", "b"}, {"y"}), {{6}, {6}}),
                     {f32({6}, {0, -0.0, 6, -6, 5, INFINITY}), f32({6}, {-3, 3, -3, 3, -INFINITY, 3})});
  Doubles found = numbers(y[0]);
  CHECK(std::vector<bool>{std::signbit(found[0]), std::signbit(found[1]), std::signbit(found[2]),
                          std::signbit(found[3])} == std::vector<bool>{true, false, true, false});
  CHECK(Doubles(found.begin(), found.begin() + 4) == Doubles{0, 0, 0, 0});
  CHECK(found[4] == -INFINITY);
  CHECK(std::isnan(found[5]));
}

// --- Padding.

TEST_CASE("of a dim that is cropped by more than it has only padding is left") {
  auto padded = [](const std::string& mode, const std::vector<int64_t>& pads) {
    Model m = one_node(18, node("Pad", {"a", "pads", "v"}, {"y"}, {attribute_text("mode", mode)}), {{2, 3}});
    m.graph.initializers = {ints("pads", pads), floats("v", {}, {7})};
    return m;
  };
  auto y = run_model(padded("constant", {1, -4, 0, 3}), {f32({2, 3}, counting(6))})[0];
  CHECK(y->dims() == std::vector<int64_t>{3, 2});
  CHECK(numbers(y) == Doubles{7, 7, 7, 7, 7, 7});
  CHECK(contains(import_model(padded("constant", {0, -4, 0, 0})).messages, "crops dim 1 below no elements"));
  CHECK(contains(import_model(padded("edge", {0, -4, 0, 3})).messages, "crops more than dim 1 has"));
}

// --- GroupedMatMul: a row for each selection, or all rows for each group.

TEST_CASE("rows are multiplied by the matrices of the groups that they choose") {
  for (int64_t groups : {3, 40}) {
    const int64_t rows = 9, selections = 2, k = 3, n = 2;
    Model model = one_node(29, node("GroupedMatMul", {"a", "b", "i", "c"}, {"y"}),
                           {{rows, k}, {groups, k, n}, {groups, n}});
    model.graph.inputs.push_back(value("i", I64, {rows, selections}));
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < rows * selections; ++i) chosen.push_back(i * 7 % groups);
    auto y =
        run_model(model, {f32({rows, k}, counting(rows * k)), f32({groups, k, n}, counting(groups * k * n)),
                          f32({groups, n}, counting(groups * n, 100)), i64({rows, selections}, chosen)})[0];
    REQUIRE(y->dims() == std::vector<int64_t>{rows, selections, n});
    Doubles want;
    for (int64_t i = 0; i < rows * selections * n; ++i) {
      int64_t row = i / n / selections, group = chosen[static_cast<size_t>(i / n)], column = i % n;
      double sum = static_cast<double>(100 + group * n + column);
      for (int64_t j = 0; j < k; ++j)
        sum += static_cast<double>((row * k + j) * ((group * k + j) * n + column));
      want.push_back(sum);
    }
    CHECK(numbers(y) == want);
  }
}

TEST_CASE("numbers that name no group end the run, negative ones too") {
  for (int64_t groups : {3, 40}) {
    Model model = one_node(29, node("GroupedMatMul", {"a", "b", "i"}, {"y"}), {{9, 3}, {groups, 3, 2}});
    model.graph.inputs.push_back(value("i", I64, {9, 1}));
    Imported imported = import_model(model);
    REQUIRE(imported.model);
    auto runs_with = [&](int64_t last) {
      std::vector<int64_t> chosen(9, 1);
      chosen.back() = last;
      return evaluate(
          *imported.model->module,
          {f32({9, 3}, counting(27)), f32({groups, 3, 2}, counting(groups * 6)), i64({9, 1}, chosen)});
    };
    CHECK(runs_with(groups - 1));
    CHECK_FALSE(runs_with(groups));
    CHECK_FALSE(runs_with(-1));
  }
}

TEST_CASE("matrices of groups that do not fit the rows are refused") {
  auto messages = [](const std::vector<WireDim>& matrices, const std::vector<WireDim>& chosen) {
    Model model = one_node(29, node("GroupedMatMul", {"a", "b", "i"}, {"y"}), {{4, 3}, matrices});
    model.graph.inputs.push_back(value("i", I64, chosen));
    return import_model(model).messages;
  };
  CHECK(contains(messages({2, 5, 2}, {4, 1}), "wants matrices of 3 rows"));
  CHECK(contains(messages({2, 3, 2}, {5, 1}), "wants i64[4,1]"));
  CHECK(messages({2, 3, 2}, {4, 0}).empty());
}

// --- Pooling.

TEST_CASE("max pooling gives flat positions, row or column first") {
  for (int64_t column_major : {0, 1}) {
    auto pool = node("MaxPool", {"a"}, {"y", "z"},
                     {attribute_ints("kernel_shape", {2, 2}), attribute_ints("strides", {2, 2}),
                      attribute("storage_order", column_major)});
    auto y = run_model(one_node(12, pool, {{1, 2, 2, 4}}, 2), {f32({1, 2, 2, 4}, counting(16))});
    CHECK(numbers(y[0]) == Doubles{5, 7, 13, 15});
    // Element 5 stands at row 1, column 1 of 2 x 4; the second channel begins at 8.
    CHECK(numbers(y[1]) == (column_major ? Doubles{3, 7, 11, 15} : Doubles{5, 7, 13, 15}));
  }
}

TEST_CASE("the first of equal elements gives the position") {
  auto pool = node("MaxPool", {"a"}, {"y", "z"}, {attribute_ints("kernel_shape", {3})});
  auto y = run_model(one_node(12, pool, {{1, 1, 3}}, 2), {f32({1, 1, 3}, {2, 2, 1})});
  CHECK(numbers(y[1]) == Doubles{0});
}

TEST_CASE("the first of equal elements is the first in row-major order, whichever way positions count") {
  for (int64_t column_major : {0, 1}) {
    auto pool = node("MaxPool", {"a"}, {"y", "z"},
                     {attribute_ints("kernel_shape", {2, 2}), attribute("storage_order", column_major)});
    auto y = run_model(one_node(12, pool, {{1, 1, 2, 2}}, 2), {f32({1, 1, 2, 2}, {1, 7, 7, 1})});
    CHECK(numbers(y[1]) == (column_major ? Doubles{2} : Doubles{1}));
  }
}

// Average over a 1-d window by loops: `overhang` windows are divided by the taps that lie in the padded
// input.
Doubles average(const Doubles& x, int64_t kernel, int64_t stride, int64_t low, int64_t high, bool ceil,
                bool padding) {
  int64_t n = static_cast<int64_t>(x.size()), room = n + low + high - kernel;
  int64_t positions = (ceil ? (room + stride - 1) / stride : room / stride) + 1;
  if (ceil && (positions - 1) * stride >= n + low) --positions;
  Doubles result;
  for (int64_t o = 0; o < positions; ++o) {
    double sum = 0, count = 0;
    for (int64_t k = 0; k < kernel; ++k) {
      int64_t at = o * stride - low + k;
      if (at >= 0 && at < n) sum += x[static_cast<size_t>(at)];
      if (padding ? at < n + high : at >= 0 && at < n) ++count;
    }
    result.push_back(sum / count);
  }
  return result;
}

TEST_CASE("average pooling divides by the elements under the window") {
  for (int64_t n : {5, 6, 7, 8})
    for (int64_t stride : {1, 2, 3})
      for (int64_t low : {0, 1})
        for (int64_t high : {0, 1})
          for (int64_t ceil : {0, 1})
            for (int64_t padding : {0, 1}) {
              CAPTURE(n, stride, low, high, ceil, padding);
              auto pool = node("AveragePool", {"a"}, {"y"},
                               {attribute_ints("kernel_shape", {3}), attribute_ints("strides", {stride}),
                                attribute_ints("pads", {low, high}), attribute("ceil_mode", ceil),
                                attribute("count_include_pad", padding)});
              Doubles x = counting(n, 1), wanted = average(x, 3, stride, low, high, ceil, padding);
              // Also with the extent open, where that leaves nothing undecided.
              for (bool open : {false, true}) {
                Imported imported =
                    import_model(one_node(12, pool, {{1, 1, open ? WireDim("n") : WireDim(n)}}));
                if (open && !imported.model) continue;
                auto y = run(imported, {f32({1, 1, n}, x)});
                REQUIRE(numbers(y[0]).size() == wanted.size());
                for (size_t i = 0; i < wanted.size(); ++i)
                  CHECK(numbers(y[0])[i] == Approx(wanted[i]).epsilon(1e-6));
              }
            }
}

// --- Transposed convolution.

TEST_CASE("a transposed convolution with output_shape cuts the odd element where auto_pad says") {
  // The full result of ones under a kernel of 3 at stride 2 is 1 1 2 1 2 1 1.
  auto cut = [](const char* auto_pad) {
    Model model = one_node(11,
                           node("ConvTranspose", {"a", "w"}, {"y"},
                                {attribute_ints("strides", {2}), attribute_ints("output_shape", {6}),
                                 attribute_text("auto_pad", auto_pad)}),
                           {{1, 1, 3}});
    model.graph.initializers = {floats("w", {1, 1, 3}, {1, 1, 1})};
    return numbers(run_model(model, {f32({1, 1, 3}, {1, 1, 1})})[0]);
  };
  CHECK(cut("SAME_UPPER") == Doubles{1, 1, 2, 1, 2, 1});
  CHECK(cut("SAME_LOWER") == Doubles{1, 2, 1, 2, 1, 1});
}

TEST_CASE("groups of a transposed convolution keep their channels apart") {
  Model model = one_node(11, node("ConvTranspose", {"a", "w"}, {"y"}, {attribute("group", 2)}), {{1, 2, 1}});
  model.graph.initializers = {floats("w", {2, 2, 1}, {1, 2, 3, 4})};
  CHECK(numbers(run_model(model, {f32({1, 2, 1}, {10, 100})})[0]) == Doubles{10, 20, 300, 400});
}

// --- Einsum.

TEST_CASE("einsum takes diagonals, ellipses and sums") {
  auto y = [](const char* equation, const std::vector<std::vector<WireDim>>& dims,
              const std::vector<LiteralRef>& inputs) {
    Names names;
    for (size_t i = 0; i < dims.size(); ++i) names.push_back(std::string(1, static_cast<char>('a' + i)));
    return numbers(run_model(
        one_node(12, node("Einsum", names, {"y"}, {attribute_text("equation", equation)}), dims), inputs)[0]);
  };
  LiteralRef square = f32({2, 2}, {1, 2, 3, 4});
  CHECK(y("ii->i", {{2, 2}}, {square}) == Doubles{1, 4});
  CHECK(y("ii", {{2, 2}}, {square}) == Doubles{5});
  CHECK(y("ij->j", {{2, 2}}, {square}) == Doubles{4, 6});
  CHECK(y("ba", {{2, 2}}, {square}) == Doubles{1, 3, 2, 4});
  CHECK(y("...j,j->...", {{2, 2}, {2}}, {square, f32({2}, {1, 10})}) == Doubles{21, 43});
  CHECK(y("ij,kj->ik", {{2, 2}, {1, 2}}, {square, f32({1, 2}, {1, 1})}) == Doubles{3, 7});
}

// --- Reductions.

TEST_CASE("no axes and noop_with_empty_axes leaves the reduction out, but not what goes with it") {
  auto sum = node("ReduceSumSquare", {"a"}, {"y"}, {attribute("noop_with_empty_axes", 1)});
  CHECK(numbers(run_model(one_node(18, sum, {{3}}), {f32({3}, {1, 2, 3})})[0]) == Doubles{1, 4, 9});
}

TEST_CASE("the log of a sum of exponentials does not overflow") {
  auto y = run_model(one_node(13, node("ReduceLogSumExp", {"a"}, {"y"}), {{2}}), {f32({2}, {1000, 1000})});
  CHECK(numbers(y[0])[0] == Approx(1000 + std::log(2.0)));
}

// --- Messages.

TEST_CASE("windows that do not fit name found and wanted") {
  Model model =
      one_node(11, node("Conv", {"a", "w"}, {"y"}, {attribute_ints("kernel_shape", {3, 2})}), {{1, 1, 4, 4}});
  model.graph.initializers = {floats("w", {1, 1, 3, 3}, std::vector<float>(9, 1))};
  CHECK(contains(import_model(model).messages, "kernel_shape is [3, 2], the filter's is [3, 3]"));
  auto pool = node("MaxPool", {"a"}, {"y"}, {attribute_ints("kernel_shape", {9})});
  CHECK(contains(import_model(one_node(11, pool, {{1, 1, 4}})).messages, "too small for a window of 9"));
  CHECK(contains(import_model(one_node(11, node("MaxPool", {"a"}, {"y"}), {{1, 1, 4}})).messages,
                 "kernel_shape is missing"));
  auto product = node("MatMul", {"a", "b"}, {"y"});
  CHECK(contains(import_model(one_node(13, product, {{2, 3}, {4, 5}})).messages, "inner extents differ"));
}

// --- Random numbers.

TEST_CASE("dropout in training scales what it keeps, alike for one seed") {
  auto dropped = [](int64_t seed, std::vector<LiteralRef>& results) {
    Model model = one_node(
        13, node("Dropout", {"a", "ratio", "training"}, {"y", "z"}, {attribute("seed", seed)}), {{1000}}, 1);
    model.graph.outputs.push_back(value("z", Bool, {1000}));
    model.graph.initializers = {floats("ratio", {}, {0.25f}), bool_scalar("training", true)};
    results = run_model(model, {f32({1000}, Doubles(1000, 3))});
  };
  std::vector<LiteralRef> first, second, other;
  dropped(1, first), dropped(1, second), dropped(2, other);
  Doubles y = numbers(first[0]), kept = numbers(first[1]);
  for (size_t i = 0; i < y.size(); ++i) CHECK(y[i] == (kept[i] != 0 ? 4 : 0));
  auto count = std::count(kept.begin(), kept.end(), 1);
  CHECK(count > 700);
  CHECK(count < 800);
  CHECK(numbers(second[0]) == y);
  CHECK(numbers(other[0]) != y);
}

TEST_CASE("multinomial draws classes as often as they are likely") {
  Model model = one_node(13, node("Multinomial", {"a"}, {"y"}, {attribute("sample_size", 1000)}), {{2, 4}});
  double never = -std::numeric_limits<double>::infinity();
  auto y =
      run_model(model, {f32({2, 4}, {never, std::log(1.0), std::log(3.0), never, never, never, never, 0})});
  Doubles drawn = numbers(y[0]);
  CHECK(std::count(drawn.begin(), drawn.begin() + 1000, 1) +
            std::count(drawn.begin(), drawn.begin() + 1000, 2) ==
        1000);
  CHECK(std::count(drawn.begin(), drawn.begin() + 1000, 2) > 700);
  CHECK(std::count(drawn.begin(), drawn.begin() + 1000, 2) < 800);
  CHECK(std::count(drawn.begin() + 1000, drawn.end(), 3) == 1000);
}
