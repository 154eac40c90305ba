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
  CHECK(identifiers({"offsetof", "typeof", "run_with", "std"}) ==
        Names{"offsetof_", "typeof_", "run_with_", "std_"});
}

TEST_CASE("names in the style of macros get an underscore") {
  CHECK(identifiers({"SIZE_MAX", "NAN", "PRId64", "M_PIf", "I"}) ==
        Names{"SIZE_MAX_", "NAN_", "PRId64_", "M_PIf_", "I_"});
  CHECK(identifiers({"X", "Y", "Input3", "Q_proj"}) == Names{"X", "Y", "Input3", "Q_proj"});
  CHECK(identifiers({"X1", "X1/"}) == Names{"X1_", "X1_2_"});
}

TEST_CASE("a tensor's macros do not take the place of the model's") {
  CHECK(identifiers({"ARENA"}) == Names{"ARENA_"});
  CHECK(identifiers({"Arena"}) == Names{"Arena_"});
  CHECK(identifiers({"aRENA"}) == Names{"aRENA_"});
}

TEST_CASE("names of Firn get an underscore, whatever their case") {
  CHECK(identifiers({"firn_status", "FIRN_ABI", "Firn"}) == Names{"firn_status_", "FIRN_ABI_", "Firn_"});
}

TEST_CASE("clashes get numbers, also when only the case differs") {
  CHECK(identifiers({"x", "x/", "X"}, {"x"}) == Names{"x", "x_2", "X_2_", "x_3"});
  CHECK(identifiers({"a.b", "a:b"}) == Names{"a_b", "a_b_2"});
}

TEST_CASE("a name does not take the place of another's bind function") {
  CHECK(identifiers({"x", "bind_x"}) == Names{"x", "bind_x_2"});
  CHECK(identifiers({"bind_x", "x"}) == Names{"bind_x", "x_2"});
}

TEST_CASE("a name does not take the place of the function of another's count") {
  ModelDescription model;
  model.class_name = "Net";
  model.inputs.emplace_back().name = "boxes_dim0";
  model.outputs.emplace_back().name = "boxes";
  model.outputs[0].counted_dims = {{0, 64}};
  REQUIRE(assign_identifiers(model));
  CHECK(model.outputs[0].identifier == "boxes_2");
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

TEST_CASE("renames reach dims that no tensor shares the name of") {
  const auto names = [](const std::vector<std::pair<std::string, std::string>>& renames) {
    ModelDescription model;
    model.class_name = "Net";
    model.inputs.emplace_back().name = "seq";
    model.outputs.emplace_back().name = "refusal";
    for (const char* name : {"batch", "seq", "items"})
      model.dims.push_back({std::make_shared<Symbol>(Symbol{name, 1, 8}), name, "", 1, {}});
    const Result assigned = assign_identifiers(model, renames);
    return assigned ? Names{model.inputs[0].identifier, model.outputs[0].identifier, model.dims[0].identifier,
                            model.dims[1].identifier, model.dims[2].identifier}
                    : Names{assigned.error().message};
  };
  CHECK(names({}) == Names{"seq", "refusal_2", "batch", "seq", "items"});
  CHECK(names({{"items", "batch"}, {"n", "seq"}}) == Names{"n", "refusal_2", "items", "seq", "items_2"});
  CHECK(names({{"dims", "batch"}}) == Names{"name 'dims=batch': 'dims' is already taken"});
  CHECK(names({{"n", "batch"}, {"N", "items"}}) == Names{"name 'N=items': 'N' is already taken"});
}

TEST_CASE("unusable renames are usage errors that name both sides") {
  const auto error = [](const std::string& new_name, const std::string& old_name) {
    ModelDescription model = digits_sample();
    const Result result = assign_identifiers(model, {{new_name, old_name}});
    REQUIRE_FALSE(result);
    CHECK(result.error().fault == Fault::Usage);
    return result.error().message;
  };
  CHECK(
      error("x", "nothing") ==
      "name 'x=nothing': the model has no input, output, state or dim that varies 'nothing' left to rename");
  CHECK(error("int", "image") ==
        "name 'int=image': 'int' is a keyword, a macro, or written like one; lower-case words are safe");
  CHECK(error("IMAGE", "image") ==
        "name 'IMAGE=image': 'IMAGE' is a keyword, a macro, or written like one; lower-case words are safe");
  CHECK(error("a-b", "image") == "name 'a-b=image': 'a-b' is not usable as a C++ name");
  CHECK(error("a__b", "image") == "name 'a__b=image': 'a__b' is not usable as a C++ name");
  CHECK(error("Digits", "image") == "name 'Digits=image': 'Digits' is not usable as a C++ name");
  CHECK(error("run", "image") == "name 'run=image': 'run' is already taken");
}

TEST_CASE("class names") {
  CHECK(check_class_name("Digits"));
  CHECK(check_class_name("a::b::C"));
  for (const char* bad : {"", "::A", "A::", "a::class", "1A", "a b", "std::X", "std2::X", "posix::X",
                          "firn::X", "my::firn::X", "Weights", "_A", "a__b", "NAN", "main", "a::offsetof"})
    CHECK_FALSE(check_class_name(bad));
  CHECK(check_class_name("net::VGG16"));
  CHECK(default_class_name("/x/mobilenet-v2_7.onnx") == "MobilenetV27");
  CHECK(default_class_name("3d.onnx") == "Model3d");
  CHECK(default_class_name("weights.onnx") == "WeightsModel");
  CHECK(default_class_name("") == "Model");
  CHECK(default_class_name("FILE.onnx") == "FILEModel");
  CHECK(default_class_name("firn.onnx") == "FirnModel");
}

TEST_CASE("prefixes of C functions are in snake case") {
  CHECK(symbol_prefix("vision::Digits") == "vision_digits");
  CHECK(symbol_prefix("MobileNetV2") == "mobile_net_v2");
  CHECK(symbol_prefix("HTTPServer") == "http_server");
  CHECK(symbol_prefix("a_b::CD") == "a_b_cd");
}

TEST_CASE("prefixes of C functions are of no library") {
  CHECK(symbol_prefix("Int") == "int_model");
  CHECK(symbol_prefix("Index") == "index_model");
  CHECK(symbol_prefix("pthread::Mutex") == "pthread_mutex_model");
  CHECK(symbol_prefix("Firn::Status") == "firn_status_model");
  CHECK(symbol_prefix("size::T") == "size_t_model");
}

TEST_CASE("dims get members of their own, and tensors keep away from their setters") {
  ModelDescription model = digits_sample();
  const auto add = [&](const char* name) {
    model.dims.push_back({std::make_shared<Symbol>(Symbol{"s", 1, 8}), name, "", 1, {}});
  };
  for (const char* name : {"batch", "Batch", "dims", "dim", "class", "3 d", "INT_MAX", ""}) add(name);
  model.inputs[0].name = "set_batch";
  model.outputs[0].name = "dims";
  REQUIRE(assign_identifiers(model));
  std::vector<std::string> made;
  for (const DimDescription& dim : model.dims) made.push_back(dim.identifier);
  CHECK(made == std::vector<std::string>{"batch", "Batch_2", "dims_2", "dim_2", "class_", "dim_3_d",
                                         "INT_MAX_", "dim_3"});
  CHECK(model.inputs[0].identifier == "set_batch_3"); // "set_Batch_2" is taken
  CHECK(model.outputs[0].identifier == "dims_2");
  for (const char* name : {"vision::Dims", "set_batch"}) {
    model.class_name = name;
    const Result named = assign_identifiers(model);
    REQUIRE_FALSE(named);
    CHECK(named.error().message.find("is a member of classes of models with dims that vary") !=
          std::string::npos);
  }
  model.dims.clear();
  CHECK(assign_identifiers(model));
}
