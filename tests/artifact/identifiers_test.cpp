// Identifiers made from names of models: every rule of identifiers.h, the refusals included.
#include "compiler/artifact/identifiers.h"
#include "tests/artifact/sample_models.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::artifact;

namespace {

// The identifiers that a model with these inputs and outputs gets.
std::vector<std::string> identifiers(const std::vector<std::string>& inputs,
                                     const std::vector<std::string>& outputs = {}) {
  ModelDescription model;
  model.class_name = "ns::Net";
  for (const std::string& name : inputs) model.inputs.emplace_back().name = name;
  for (const std::string& name : outputs) model.outputs.emplace_back().name = name;
  REQUIRE(assign_identifiers(model));
  std::vector<std::string> result;
  for (const TensorDescription& tensor : model.inputs) result.push_back(tensor.identifier);
  for (const TensorDescription& tensor : model.outputs) result.push_back(tensor.identifier);
  return result;
}

using Names = std::vector<std::string>;

} // namespace

TEST_CASE("characters outside identifiers become one underscore") {
  CHECK(identifiers({"serving_default_input:0"}) == Names{"serving_default_input_0"});
  CHECK(identifiers({"/a//b"}) == Names{"a_b"});
  CHECK(identifiers({"h\xc3\xa9llo"}) == Names{"h_llo"});
}

TEST_CASE("names without a letter in front get their role") {
  CHECK(identifiers({"495", ""}, {"496", "::"}) == Names{"input_495", "input", "output_496", "output"});
}

TEST_CASE("keywords, macros and members of the class get an underscore") {
  CHECK(identifiers({"class", "run", "linux", "Net", "arena"}) ==
        Names{"class_", "run_", "linux_", "Net_", "arena_"});
}

TEST_CASE("clashes get numbers, also when only the case differs") {
  CHECK(identifiers({"x", "x/", "X"}, {"x"}) == Names{"x", "x_2", "X_3", "x_4"});
  CHECK(identifiers({"a.b", "a:b"}) == Names{"a_b", "a_b_2"});
}

TEST_CASE("a name does not take the place of another's bind function") {
  CHECK(identifiers({"x", "bind_x"}) == Names{"x", "bind_x_2"});
  CHECK(identifiers({"bind_x", "x"}) == Names{"bind_x", "x_2"});
}

TEST_CASE("very long names are cut and stay unique") {
  const Names names = identifiers({std::string(5000, 'a'), std::string(5000, 'a') + "b"});
  CHECK(names[0].size() <= 128);
  CHECK(names[0] != names[1]);
}

TEST_CASE("renames give exactly the name asked for, before others are named") {
  ModelDescription model = digits_sample();
  model.inputs[0].name = "input:0";
  model.outputs[0].name = "image";
  REQUIRE(assign_identifiers(model, {{"image", "input:0"}}));
  CHECK(model.inputs[0].identifier == "image");
  CHECK(model.outputs[0].identifier == "image_2");
}

TEST_CASE("unusable renames are usage errors that name both sides") {
  const auto error = [](const std::string& new_name, const std::string& old_name) {
    ModelDescription model = digits_sample();
    const Result result = assign_identifiers(model, {{new_name, old_name}});
    REQUIRE_FALSE(result);
    CHECK(result.error().fault == Fault::Usage);
    return result.error().message;
  };
  CHECK(error("x", "nothing") ==
        "name 'x=nothing': the model has no input, output or state 'nothing' left to rename");
  CHECK(error("int", "image") == "name 'int=image': 'int' is not usable as a C++ name");
  CHECK(error("a-b", "image") == "name 'a-b=image': 'a-b' is not usable as a C++ name");
  CHECK(error("a__b", "image") == "name 'a__b=image': 'a__b' is not usable as a C++ name");
  CHECK(error("Digits", "image") == "name 'Digits=image': 'Digits' is not usable as a C++ name");
  CHECK(error("run", "image") == "name 'run=image': 'run' is already taken");
}

TEST_CASE("class names") {
  CHECK(check_class_name("Digits"));
  CHECK(check_class_name("a::b::C"));
  for (const char* bad :
       {"", "::A", "A::", "a::class", "1A", "a b", "std::X", "firn::X", "my::firn::X", "Weights", "_A"})
    CHECK_FALSE(check_class_name(bad));
  CHECK(default_class_name("/x/mobilenet-v2_7.onnx") == "MobilenetV27");
  CHECK(default_class_name("3d.onnx") == "Model3d");
  CHECK(default_class_name("weights.onnx") == "WeightsModel");
  CHECK(default_class_name("") == "Model");
}

TEST_CASE("prefixes of C functions are in snake case and no keyword") {
  CHECK(symbol_prefix("vision::Digits") == "vision_digits");
  CHECK(symbol_prefix("MobileNetV2") == "mobile_net_v2");
  CHECK(symbol_prefix("HTTPServer") == "http_server");
  CHECK(symbol_prefix("a_b::C") == "a_b_c");
  CHECK(symbol_prefix("Int") == "int_model");
}
