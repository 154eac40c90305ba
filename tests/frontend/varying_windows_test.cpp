// Windows over dims that vary: pools, convolutions, regions of images and what undoes them are those of
// static dims.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>
#include <numeric>

using namespace firn;
using namespace firn::test;

namespace {

using Numbers = std::vector<double>;

struct WindowCase {
  std::string op;
  int64_t size, stride;
  std::vector<int64_t> pads;
  int64_t dilation, ceil, include;
  std::string auto_pad;

  std::string text() const {
    return op + " " + std::to_string(size) + " by " + std::to_string(stride) + ", dilation " +
           std::to_string(dilation) + ", ceil " + std::to_string(ceil) + ", include " +
           std::to_string(include) + ", " + auto_pad;
  }
};

std::vector<WindowCase> window_cases(const std::string& op) {
  std::vector<WindowCase> cases;
  for (int64_t size : {2, 3})
    for (int64_t stride : {1, 2, 3})
      for (int64_t dilation : {1, 2}) {
        for (const char* same : {"SAME_UPPER", "SAME_LOWER"}) {
          cases.push_back({op, size, stride, {}, dilation, 0, 0, same});
          if (op != "Conv") cases.push_back({op, size, stride, {}, dilation, 0, 1, same});
        }
        for (int64_t ceil : {0, 1})
          for (const auto& pads : std::vector<std::vector<int64_t>>{{0, 0}, {1, 1}, {0, 1}, {1, 0}})
            for (int64_t include : {0, 1})
              if (op != "Conv") cases.push_back({op, size, stride, pads, dilation, ceil, include, "NOTSET"});
      }
  return cases;
}

Model window_model(const WindowCase& each, const WireDim& extent) {
  std::vector<Message> attributes{
      attribute_ints("kernel_shape", {each.size}), attribute_ints("strides", {each.stride}),
      attribute_ints("dilations", {each.dilation}), attribute_text("auto_pad", each.auto_pad)};
  if (!each.pads.empty()) attributes.push_back(attribute_ints("pads", each.pads));
  if (each.ceil) attributes.push_back(attribute("ceil_mode", 1));
  if (each.include) attributes.push_back(attribute("count_include_pad", 1));
  Model model;
  model.opsets = {{"", 19}};
  model.graph.inputs = {value("x", F32, {1, 1, extent})};
  model.graph.outputs = {value("y", F32, {1, 1, "m"})};
  Names inputs{"x"}, outputs{"y"};
  if (each.op == "Conv") {
    inputs.push_back("w");
    model.graph.initializers = {
        floats("w", {1, 1, each.size}, std::vector<float>(each.size == 2 ? 2 : 3, 2))};
  }
  if (each.op == "MaxPool") {
    outputs.push_back("places");
    model.graph.outputs.push_back(value("places", I64, {1, 1, "m"}));
  }
  model.graph.nodes = {node(each.op, inputs, outputs, attributes)};
  return model;
}

// n of 1 to 9.
onnx::ImportOptions n_in_range() {
  onnx::ImportOptions options;
  options.ranges = {{"n", {1, 9, 1, {}}}};
  return options;
}

void check_same(const std::vector<LiteralRef>& found, const std::vector<LiteralRef>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    REQUIRE(found[i]->dims() == wanted[i]->dims());
    for (int64_t k = 0; k < wanted[i]->num_elements(); ++k) {
      double value = wanted[i]->get_double(k);
      if (value == value) CHECK(found[i]->get_double(k) == Approx(value)); // no mean of nothing
    }
  }
}

} // namespace

TEST_CASE("pools and convolutions along a dim that varies are those of static dims") {
  const Numbers signal{3, -1, 4, 1, -5, 9, 2, -6, 5};
  for (const char* op : {"AveragePool", "MaxPool", "LpPool", "Conv"})
    for (const WindowCase& each : window_cases(op)) {
      Imported varying = import_model(window_model(each, "n"), n_in_range());
      for (int64_t n = 1; n <= 9; ++n) {
        Imported fixed = import_model(window_model(each, n));
        if (!fixed.model) continue; // smaller than the window by two strides
        INFO(each.text() << ", over " << n);
        LiteralRef x = f32({1, 1, n}, Numbers(signal.begin(), signal.begin() + n));
        check_same(run(varying, {x}), run(fixed, {x}));
      }
    }
}

namespace {

LiteralRef some(std::vector<int64_t> dims, double scale = 1) {
  int64_t count = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  Numbers values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i * 7 % 11 - 5) * scale);
  return f32(std::move(dims), values);
}

// y = op(x, w), by named dims each of 1 to 6.
Imported import_filtered(const std::string& op, const std::vector<WireDim>& x, const std::vector<WireDim>& w,
                         const std::vector<Message>& attributes) {
  Model model;
  model.graph.inputs = {value("x", F32, x), value("w", F32, w)};
  model.graph.outputs = {value("y", F32, {})};
  model.graph.nodes = {node(op, {"x", "w"}, {"y"}, attributes)};
  onnx::ImportOptions options;
  for (const auto* dims : {&x, &w})
    for (const WireDim& dim : *dims)
      if (!dim.name.empty()) options.ranges[dim.name] = {1, 6, 1, {}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  return imported;
}

} // namespace

TEST_CASE("filters whose channels and taps vary are those of static dims") {
  std::vector<Message> wide{attribute_ints("strides", {2, 1}), attribute_ints("dilations", {1, 2}),
                            attribute_ints("pads", {0, 0, 0, 1})};
  std::vector<Message> in_groups = wide;
  in_groups.push_back(attribute("group", 2));
  for (const char* op : {"Conv", "ConvTranspose"})
    for (const auto& attributes : {std::vector<Message>{}, wide, in_groups}) {
      Imported varying = import_filtered(op, {"b", "c", "h", 6}, {"m", "d", "k", "l"}, attributes);
      int64_t groups = attributes.size() == 4 ? 2 : 1;
      bool forward = std::string(op) == "Conv";
      for (const std::vector<int64_t>& d :
           std::vector<std::vector<int64_t>>{{1, 1, 3, 1, 1, 1}, {2, 2, 5, 3, 2, 3}, {1, 3, 4, 2, 3, 2}}) {
        std::vector<int64_t> x{d[0], d[1] * groups, d[2], 6}, w{d[3] * groups, d[1], d[4], d[5]};
        if (!forward) w = {d[1] * groups, d[3], d[4], d[5]};
        INFO(op << ", " << groups << " groups, " << d[4] << "x" << d[5]);
        Imported fixed = import_filtered(op, {x[0], x[1], x[2], x[3]}, {w[0], w[1], w[2], w[3]}, attributes);
        check_same(run(varying, {some(x), some(w, 0.5)}), run(fixed, {some(x), some(w, 0.5)}));
      }
      CHECK(ends_early(varying, {some({1, 2 * groups, 3, 6}), some({4 * groups, 3, 1, 1})}));
      if (forward) CHECK(ends_early(varying, {some({1, groups, 2, 6}), some({groups, 1, 5, 1})}));
    }
}

TEST_CASE("taps are as many as kernel_shape says, or the run ends") {
  Imported imported =
      import_filtered("Conv", {1, "c", 6}, {2, "d", "k"}, {attribute_ints("kernel_shape", {2})});
  CHECK(!ends_early(imported, {some({1, 2, 6}), some({2, 2, 2})}));
  CHECK(ends_early(imported, {some({1, 2, 6}), some({2, 2, 3})}));
}

TEST_CASE("columns are added up to images that vary") {
  auto model_of = [](const WireDim& batch, const WireDim& height, const WireDim& places) {
    Model model;
    model.opsets = {{"", 18}};
    model.graph.inputs = {value("x", F32, {batch, 8, places}), value("z", F32, {height, 3})};
    model.graph.outputs = {value("y", F32, {})};
    model.graph.initializers = {ints("block", {2, 2})};
    model.graph.nodes = {node("Shape", {"z"}, {"shape"}),
                         node("Col2Im", {"x", "shape", "block"}, {"y"},
                              {attribute_ints("strides", {2, 1}), attribute_ints("pads", {1, 0, 0, 0})})};
    return model;
  };
  onnx::ImportOptions options;
  options.ranges = {{"b", {1, 3, 1, {}}}, {"n", {1, 9, 1, {}}}, {"p", {1, 12, 1, {}}}};
  Imported varying = import_model(model_of("b", "n", "p"), options);
  INFO(varying.messages);
  REQUIRE(varying.model);
  for (int64_t batch : {1, 3})
    for (int64_t height : {1, 4, 9}) {
      int64_t places = ((height - 1) / 2 + 1) * 2;
      std::vector<LiteralRef> inputs{some({batch, 8, places}), some({height, 3})};
      check_same(run(varying, inputs), run(import_model(model_of(batch, height, places)), inputs));
    }
  CHECK(ends_early(varying, {some({1, 8, 3}), some({4, 3})}));
}

TEST_CASE("a deformable convolution of images that vary is that of static ones") {
  auto model_of = [](const WireDim& batch, const WireDim& height, const WireDim& rows) {
    Model model;
    model.opsets = {{"", 19}};
    model.graph.inputs = {value("x", F32, {batch, 2, height, 3}), value("offset", F32, {batch, 8, rows, 2}),
                          value("mask", F32, {batch, 4, rows, 2})};
    model.graph.outputs = {value("y", F32, {batch, 1, "m", 2})};
    model.graph.initializers = {floats("w", {1, 2, 2, 2}, {1, -2, 3, 4, -5, 6, 7, -8})};
    model.graph.nodes = {node("DeformConv", {"x", "w", "offset", "", "mask"}, {"y"},
                              {attribute_ints("strides", {2, 1}), attribute_ints("pads", {1, 0, 0, 0})})};
    return model;
  };
  onnx::ImportOptions options;
  options.ranges = {{"b", {1, 3, 1, {}}}, {"n", {1, 9, 1, {}}}, {"r", {1, 9, 1, {}}}};
  Imported varying = import_model(model_of("b", "n", "r"), options);
  INFO(varying.messages);
  REQUIRE(varying.model);
  for (int64_t batch : {1, 3})
    for (int64_t height : {1, 4, 9}) {
      int64_t rows = (height - 1) / 2 + 1;
      std::vector<LiteralRef> inputs{some({batch, 2, height, 3}, 1), some({batch, 8, rows, 2}, 0.25),
                                     some({batch, 4, rows, 2}, 0.5)};
      check_same(run(varying, inputs), run(import_model(model_of(batch, height, rows)), inputs));
    }
  CHECK(ends_early(varying, {f32({1, 2, 1, 3}, Numbers(6)), f32({1, 8, 2, 2}, Numbers(32)),
                             f32({1, 4, 2, 2}, Numbers(16))}));
}

TEST_CASE("images that vary are unpooled") {
  Model model;
  model.graph.inputs = {value("x", F32, {"b", 1, "n"}), value("z", F32, {1, 1, "r"})};
  model.graph.outputs = {value("y", F32, {}), value("longer", F32, {})};
  std::vector<Message> window{attribute_ints("kernel_shape", {2}), attribute_ints("strides", {2})};
  model.graph.nodes = {node("MaxPool", {"x"}, {"p", "i"}, window),
                       node("MaxUnpool", {"p", "i"}, {"y"}, window),
                       node("Shape", {"x"}, {"own"}, {attribute("end", 2)}),
                       node("Shape", {"z"}, {"row"}, {attribute("start", 2)}),
                       node("Concat", {"own", "row"}, {"shape"}, {attribute("axis", 0)}),
                       node("MaxUnpool", {"p", "i", "shape"}, {"longer"}, window)};
  onnx::ImportOptions options;
  options.ranges = {{"b", {1, 3, 1, {}}}, {"n", {2, 8, 2, {}}}, {"r", {1, 9, 1, {}}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef x = f32({1, 1, 4}, {1, 5, 3, 2});
  auto y = run(imported, {x, f32({1, 1, 5}, Numbers(5))});
  CHECK(numbers(y[0]) == Numbers{0, 5, 3, 0});
  CHECK(numbers(y[1]) == Numbers{0, 5, 3, 0, 0});
  CHECK(ends_early(imported, {x, f32({1, 1, 3}, Numbers(3))}));
}

TEST_CASE("a causal convolution is as long as its steps, and so is what it leaves") {
  Model model;
  model.opsets = {{"", 29}};
  model.graph.inputs = {value("x", F32, {1, 1, "n"}), value("w", F32, {1, 1, 3}),
                        value("past", F32, {1, 1, 2})};
  model.graph.outputs = {value("y", F32, {1, 1, "n"}), value("state", F32, {1, 1, 2})};
  model.graph.nodes = {node("CausalConvWithState", {"x", "w", "", "past"}, {"y", "state"})};
  Imported imported = import_model(model, n_in_range());
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef w = f32({1, 1, 3}, {1, 1, 1}), past = f32({1, 1, 2}, {10, 20});
  auto results = run(imported, {f32({1, 1, 4}, {1, 2, 3, 4}), w, past});
  CHECK(numbers(results[0]) == Numbers{31, 23, 6, 9});
  CHECK(numbers(results[1]) == Numbers{3, 4});
  results = run(imported, {f32({1, 1, 1}, {1}), w, past});
  CHECK(numbers(results[0]) == Numbers{31});
  CHECK(numbers(results[1]) == Numbers{20, 1});
}

TEST_CASE("regions are taken from images of any size") {
  // An image whose pixels count from 0 on, and 2 x 2 bins of it from corner to corner.
  Model model;
  model.opsets = {{"", 21}, {"com.microsoft", 1}};
  model.graph.inputs = {value("x", F32, {1, 1, "n", "m"}), value("crop", F32, {1, 4}),
                        value("roi", F32, {1, 5})};
  model.graph.outputs = {value("crops", F32, {1, 1, 2, 2}), value("bins", F32, {1, 1, 2, 2})};
  model.graph.initializers = {tensor_header("of", I32, {1}).raw(9, std::vector<int32_t>{0}),
                              tensor_header("size", I32, {2}).raw(9, std::vector<int32_t>{2, 2})};
  model.graph.nodes = {node("CropAndResize", {"x", "crop", "of", "size"}, {"crops"}, {}, "com.microsoft"),
                       node("MaxRoiPool", {"x", "roi"}, {"bins"}, {attribute_ints("pooled_shape", {2, 2})})};
  onnx::ImportOptions options;
  options.ranges = {{"n", {1, 9, 1, {}}}, {"m", {1, 9, 1, {}}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{4, 6}, {2, 2}, {9, 4}}) {
    Numbers pixels(static_cast<size_t>(rows * columns));
    std::iota(pixels.begin(), pixels.end(), 0);
    double last = static_cast<double>(rows * columns - 1), right = static_cast<double>(columns - 1),
           below = static_cast<double>((rows - 1) * columns);
    auto results = run(imported, {f32({1, 1, rows, columns}, pixels), f32({1, 4}, {0, 0, 1, 1}),
                                  f32({1, 5}, {0, 0, 0, right, static_cast<double>(rows - 1)})});
    CHECK(numbers(results[0]) == Numbers{0, right, below, last});
    CHECK(numbers(results[1])[3] == last);
    CHECK(numbers(results[1])[1] == static_cast<double>(((rows + 1) / 2 - 1) * columns) + right);
  }
}
