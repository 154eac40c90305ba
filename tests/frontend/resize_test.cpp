// Extents and places of Resize are computed in f32, integers round as images do, and what GridSample and
// AffineGrid read at borders.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

Doubles counting(int64_t count) {
  Doubles values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i));
  return values;
}

Message resize_node(const std::vector<Message>& attributes, bool by_sizes) {
  Names inputs{"a", "", "s"};
  if (by_sizes) inputs = {"a", "", "", "s"};
  return node("Resize", inputs, {"y"}, attributes);
}

LiteralRef resized(const std::vector<Message>& attributes, const Message& wanted, bool by_sizes,
                   const LiteralRef& x) {
  Model model;
  model.opsets = {{"", 19}};
  int type = x->dtype() == DType::U8 ? U8 : F32;
  model.graph.inputs = {value("a", type, std::vector<WireDim>(x->dims().begin(), x->dims().end()))};
  model.graph.outputs = {value("y", type, {})};
  model.graph.initializers = {wanted};
  model.graph.nodes = {resize_node(attributes, by_sizes)};
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  return run(imported, {x})[0];
}

// A line of `extent` elements, each its own position, resized by a scale.
Doubles line(int64_t extent, float scale, std::vector<Message> attributes) {
  return numbers(
      resized(std::move(attributes), floats("s", {1}, {scale}), false, f32({extent}, counting(extent))));
}

} // namespace

TEST_CASE("the extent of a resized dim is computed in f32") {
  // In f64 the product of 10 and the f32 next to 0.7 lies below 7.
  CHECK(line(10, 0.7f, {}).size() == 7);
  CHECK(line(10, 0.3f, {}).size() == 3);
  CHECK(line(5, 0.6f, {}).size() == 3);
  CHECK(line(3, 1.25f, {}).size() == 3);
}

TEST_CASE("the places of a resized dim are computed in f32") {
  // (2 + 0.5) / 0.6f - 0.5 is 3.6666665 either way, (1 + 0.5) / 0.6f - 0.5 is 2 in f32 and below it in f64.
  std::vector<Message> attributes{attribute_text("nearest_mode", "floor")};
  CHECK(line(5, 0.6f, attributes) == Doubles{0, 2, 3});
  attributes.push_back(attribute_text("coordinate_transformation_mode", "asymmetric"));
  CHECK(line(5, 0.6f, attributes) == Doubles{0, 1, 3});
}

TEST_CASE("a resize that keeps the extent still resamples") {
  // The scale of 1.3 makes 3 elements of 3, at the places 0, 0.77 and 1.54.
  std::vector<Message> attributes{attribute_text("coordinate_transformation_mode", "asymmetric"),
                                  attribute_text("mode", "linear")};
  Doubles y = line(3, 1.3f, attributes);
  REQUIRE(y.size() == 3);
  CHECK(y[1] == Approx(1 / 1.3));
  CHECK(y[2] == Approx(2 / 1.3));
}

TEST_CASE("antialiased integers round after every axis, halves upwards") {
  std::vector<Message> attributes{attribute_text("mode", "linear"), attribute("antialias", 1)};
  // The elements of the near half weigh 1/2 and 3/8, the next one 1/8.
  LiteralRef x = Literal::of(DType::U8, {1, 4}, Doubles{10, 11, 11, 14});
  CHECK(numbers(resized(attributes, ints("s", {1, 2}), true, x)) == Doubles{11, 13});
  // Rows become 1 2 and 0 1 before they are averaged; without that they would be 0.25 and 1.
  LiteralRef square = Literal::of(DType::U8, {2, 4}, Doubles{0, 1, 1, 2, 0, 0, 0, 1});
  CHECK(numbers(resized(attributes, ints("s", {1, 2}), true, square)) == Doubles{1, 2});
}

TEST_CASE("empty images resize to empty ones") {
  CHECK(resized({}, floats("s", {2}, {2, 2}), false, f32({0, 3}, {}))->dims() == Ints{0, 6});
  CHECK(resized({attribute_text("mode", "linear")}, ints("s", {0, 6}), true, f32({0, 3}, {}))->dims() ==
        Ints{0, 6});
  CHECK(resized({}, ints("s", {0}), true, f32({3}, counting(3)))->dims() == Ints{0});
}

TEST_CASE("at a border the taps of a cubic sample are clamped, not its position") {
  // A position of 1 pixel beyond the last of two: its cell has taps at 1, 2, 3 and 4, all of them the last.
  Model model;
  model.opsets = {{"", 20}};
  model.graph.inputs = {value("a", F32, {1, 1, 1, 4}), value("b", F32, {1, 1, 1, 2})};
  model.graph.outputs = {value("y", F32, {1, 1, 1, 1})};
  model.graph.nodes = {node("GridSample", {"a", "b"}, {"y"},
                            {attribute_text("mode", "cubic"), attribute_text("padding_mode", "border"),
                             attribute("align_corners", 1)})};
  Imported imported = import_model(model);
  REQUIRE(imported.model);
  // x = 3.5: taps 2, 3, 4 and 5 at weights -3/32, 19/32, 19/32, -3/32.
  LiteralRef grid = f32({1, 1, 1, 2}, {4.0 / 3, 0});
  CHECK(numbers(run(imported, {f32({1, 1, 1, 4}, {0, 0, 32, 64}), grid})[0])[0] ==
        Approx(-3 + 2 * (19 + 19 - 3)).epsilon(1e-5));
}

TEST_CASE("the corners of a single pixel are its centre") {
  Model model;
  model.opsets = {{"", 20}};
  model.graph.inputs = {value("a", F32, {1, 2, 3})};
  model.graph.outputs = {value("y", F32, {1, 1, 2, 2})};
  model.graph.initializers = {ints("s", {1, 1, 1, 2})};
  model.graph.nodes = {node("AffineGrid", {"a", "s"}, {"y"}, {attribute("align_corners", 1)})};
  Imported imported = import_model(model);
  REQUIRE(imported.model);
  CHECK(numbers(run(imported, {f32({1, 2, 3}, {1, 0, 0, 0, 1, 0})})[0]) == Doubles{-1, 0, 1, 0});
}

namespace {

// y of a[1,1,?,?] whose dims are symbols or numbers.
Doubles resized_image(const std::vector<WireDim>& dims, const std::vector<Message>& attributes,
                      const Message& wanted, bool by_sizes, const LiteralRef& x) {
  Model model;
  model.opsets = {{"", 19}};
  model.graph.inputs = {value("a", F64, dims)};
  model.graph.outputs = {value("y", F64, {})};
  model.graph.initializers = {wanted};
  model.graph.nodes = {resize_node(attributes, by_sizes)};
  onnx::ImportOptions options;
  if (!dims[2].name.empty()) options.ranges = {{"h", {1, 40, 1, {}}}, {"w", {1, 40, 1, {}}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  return numbers(run(imported, {x})[0]);
}

} // namespace

TEST_CASE("dims that vary are resized as dims that are known") {
  LiteralRef x = Literal::of(DType::F64, {1, 1, 5, 7}, counting(35));
  auto same = [&](const std::vector<Message>& attributes, const Message& wanted, bool by_sizes) {
    Doubles want = resized_image({1, 1, 5, 7}, attributes, wanted, by_sizes, x);
    Doubles found = resized_image({1, 1, "h", "w"}, attributes, wanted, by_sizes, x);
    REQUIRE(found.size() == want.size());
    for (size_t i = 0; i < want.size(); ++i) CHECK(found[i] == Approx(want[i]).margin(1e-12).epsilon(0));
  };
  auto check = [&](const std::vector<Message>& attributes) {
    for (float scale : {2.0f, 0.5f, 1.5f, 3.0f, 1.3f, 1 / 3.0f}) {
      INFO(scale);
      same(attributes, floats("s", {4}, {1, 1, scale, scale}), false);
    }
    same(attributes, ints("s", {1, 1, 8, 3}), true);
    for (const char* policy : {"not_larger", "not_smaller"}) {
      INFO(policy);
      std::vector<Message> all = attributes;
      all.push_back(attribute_text("keep_aspect_ratio_policy", policy));
      all.push_back(attribute_ints("axes", {2, 3}));
      same(all, ints("s", {8, 3}), true);
    }
  };
  for (const char* place : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                            "asymmetric", "tf_half_pixel_for_nn"}) {
    INFO(place);
    Message coordinates = attribute_text("coordinate_transformation_mode", place);
    for (const char* nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
      INFO(nearest);
      check({coordinates, attribute_text("mode", "nearest"), attribute_text("nearest_mode", nearest)});
    }
    check({coordinates, attribute_text("mode", "linear")});
    check({coordinates, attribute_text("mode", "cubic")});
    check({coordinates, attribute_text("mode", "cubic"), attribute("exclude_outside", 1)});
    for (const char* mode : {"linear", "cubic"})
      for (int64_t exclude : {0, 1})
        check({coordinates, attribute_text("mode", mode), attribute("antialias", 1),
               attribute("exclude_outside", exclude)});
  }
}

TEST_CASE("an extent that no simple fraction gives as f32 does is counted") {
  Model model;
  model.graph.inputs = {value("a", U8, {"n"})};
  model.graph.outputs = {value("y", U8, {})};
  model.graph.initializers = {floats("s", {1}, {1.3f})};
  model.graph.nodes = {resize_node({}, false)};
  onnx::ImportOptions options;
  options.ranges = {{"n", {1, 800000, 1, {}}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(contains(imported.text(), "u8[<="));
  for (int64_t extent : {5, 10, 4099}) {
    auto y = run(imported, {Literal::of(DType::U8, {extent}, Ints(static_cast<size_t>(extent), 7))})[0];
    CHECK(y->dims() == Ints{static_cast<int64_t>(static_cast<float>(extent) * 1.3f)});
  }
}

namespace {

// y of images a[1,1,?,?] whose dims are symbols or numbers, sampled at a grid of six positions around them.
Doubles sampled_image(const std::vector<WireDim>& dims, const char* mode, const char* padding, int aligned,
                      const LiteralRef& x) {
  Model model;
  model.opsets = {{"", 20}};
  model.graph.inputs = {value("a", F32, dims), value("g", F32, {1, 2, 3, 2})};
  model.graph.outputs = {value("y", F32, {1, 1, 2, 3})};
  model.graph.nodes = {node("GridSample", {"a", "g"}, {"y"},
                            {attribute_text("mode", mode), attribute_text("padding_mode", padding),
                             attribute("align_corners", aligned)})};
  onnx::ImportOptions options;
  if (!dims[2].name.empty()) options.ranges = {{"h", {1, 40, 1, {}}}, {"w", {1, 40, 1, {}}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef grid = f32({1, 2, 3, 2}, {-1.7, -1, -0.3, 0.2, 0, 0, 0.4, -0.9, 1, 1.2, 2.5, -2.1});
  return numbers(run(imported, {x, grid})[0]);
}

Doubles affine_grid(const std::vector<WireDim>& dims, int aligned, const LiteralRef& x) {
  Model model;
  model.opsets = {{"", 20}};
  model.graph.inputs = {value("a", F32, dims), value("t", F32, {1, 2, 3})};
  model.graph.outputs = {value("y", F32, {})};
  model.graph.nodes = {node("Shape", {"a"}, {"s"}),
                       node("AffineGrid", {"t", "s"}, {"y"}, {attribute("align_corners", aligned)})};
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  return numbers(run(imported, {x, f32({1, 2, 3}, {1, 0.5, 0, -0.25, 1, 0.125})})[0]);
}

} // namespace

TEST_CASE("images whose size varies are sampled as those whose size is known") {
  for (const Ints& size : {Ints{5, 7}, Ints{1, 4}}) {
    LiteralRef x = f32({1, 1, size[0], size[1]}, counting(static_cast<int>(size[0] * size[1])));
    for (const char* mode : {"linear", "nearest", "cubic"})
      for (const char* padding : {"zeros", "border", "reflection"})
        for (int aligned : {0, 1}) {
          INFO(mode << " " << padding << " " << aligned << " " << size[0]);
          CHECK(sampled_image({1, 1, "h", "w"}, mode, padding, aligned, x) ==
                sampled_image({1, 1, size[0], size[1]}, mode, padding, aligned, x));
        }
    for (int aligned : {0, 1})
      CHECK(affine_grid({1, 1, "h", "w"}, aligned, x) == affine_grid({1, 1, size[0], size[1]}, aligned, x));
  }
}

TEST_CASE("dims that vary are padded with their elements as dims that are known") {
  auto padded = [](const std::vector<WireDim>& dims, const char* mode, int64_t low, int64_t high) {
    Model model;
    model.opsets = {{"", 19}};
    model.graph.inputs = {value("a", F32, dims)};
    model.graph.outputs = {value("y", F32, {})};
    model.graph.initializers = {ints("p", {low, high})};
    model.graph.nodes = {node("Pad", {"a", "p"}, {"y"}, {attribute_text("mode", mode)})};
    onnx::ImportOptions options;
    if (!dims[0].name.empty()) options.ranges = {{"n", {2, 40, 1, {}}}};
    Imported imported = import_model(model, options);
    INFO(imported.messages);
    REQUIRE(imported.model);
    return numbers(run(imported, {f32({4}, {1, 2, 3, 4})})[0]);
  };
  for (const char* mode : {"reflect", "edge", "wrap"})
    CHECK(padded({"n"}, mode, 3, 2) == padded({4}, mode, 3, 2));
  CHECK(padded({"n"}, "reflect", -1, 2) == Doubles{2, 3, 4, 3, 2});
}

TEST_CASE("an image is resized to a size that a run computes, and padded to a multiple") {
  // Detectors do so: floor(height * min(6 / height, 1)) rows, then zeros up to a multiple of 4.
  Model model;
  model.opsets = {{"", 19}};
  model.graph.inputs = {value("a", F32, {"h"})};
  model.graph.outputs = {value("y", F32, {}), value("z", F32, {})};
  model.graph.initializers = {floats("six", {}, {6}), floats("one", {}, {1}), floats("four", {1}, {4}),
                              ints("zero", {0})};
  std::vector<Message> to_float{attribute("to", F32)}, to_int{attribute("to", I64)};
  model.graph.nodes = {node("Shape", {"a"}, {"h1"}),
                       node("Cast", {"h1"}, {"hf"}, to_float),
                       node("Div", {"six", "hf"}, {"ratio"}),
                       node("Min", {"ratio", "one"}, {"scale"}),
                       node("Mul", {"hf", "scale"}, {"m"}),
                       node("Floor", {"m"}, {"rows"}),
                       node("Cast", {"rows"}, {"s"}, to_int),
                       resize_node({attribute_text("mode", "linear")}, true),
                       node("Shape", {"y"}, {"n"}),
                       node("Cast", {"n"}, {"nf"}, to_float),
                       node("ReduceMax", {"nf"}, {"most"}, {attribute("keepdims", 1)}),
                       node("Div", {"most", "four"}, {"q"}),
                       node("Ceil", {"q"}, {"up"}),
                       node("Mul", {"up", "four"}, {"whole"}),
                       node("Sub", {"whole", "nf"}, {"lack"}),
                       node("Concat", {"lack", "lack"}, {"both"}, {attribute("axis", 0)}),
                       node("Cast", {"both"}, {"pads"}, to_int),
                       node("Mul", {"pads", "mask"}, {"after"}),
                       node("Pad", {"y", "after"}, {"z"})};
  model.graph.initializers.push_back(ints("mask", {0, 1}));
  onnx::ImportOptions options;
  options.ranges = {{"h", {4, 40, 1, {}}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  auto twelve = run(imported, {f32({12}, counting(12))});
  CHECK(numbers(twelve[0]) == Doubles{0.5, 2.5, 4.5, 6.5, 8.5, 10.5});
  CHECK(numbers(twelve[1]) == Doubles{0.5, 2.5, 4.5, 6.5, 8.5, 10.5, 0, 0});
  CHECK(numbers(run(imported, {f32({4}, counting(4))})[1]) == counting(4));
}
