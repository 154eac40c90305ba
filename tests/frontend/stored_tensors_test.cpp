// Which input each tensor of a data set is for: by name, or by ONNX's order of files.
#include "compiler/frontend/onnx/import/stored_tensors.h"

#include <catch2/catch.hpp>

using namespace firn;

namespace {

// Inputs in the order of the graph; '=' after a name: it has an initializer.
onnx::ModelFacts facts_with(const std::vector<std::string>& inputs) {
  onnx::ModelFacts facts;
  for (const std::string& input : inputs) {
    bool has_initializer = input.back() == '=';
    facts.inputs.push_back({input.substr(0, input.size() - has_initializer), "f32[1]", has_initializer});
  }
  return facts;
}

std::vector<size_t> matched(const std::vector<std::string>& inputs, const std::vector<std::string>& stored) {
  std::vector<onnx::NamedTensor> tensors;
  for (const std::string& name : stored) tensors.push_back({name, nullptr});
  auto numbers = onnx::match_stored_inputs(facts_with(inputs), tensors);
  REQUIRE(numbers);
  return *numbers;
}

using Numbers = std::vector<size_t>;

} // namespace

TEST_CASE("tensors that are called as inputs are those") {
  CHECK(matched({"w=", "x", "y"}, {"y", "x"}) == Numbers{2, 1});
  CHECK(matched({"x", "w=", "y"}, {"y", "x", "w"}) == Numbers{2, 0, 1});
  CHECK(matched({"x", "w="}, {"w"}) == Numbers{1});
}

TEST_CASE("tensors without a name, or with those of others, come in the order of the inputs") {
  CHECK(matched({"x", "y"}, {"", ""}) == Numbers{0, 1});
  CHECK(matched({"x", "y"}, {"x", "x"}) == Numbers{0, 1});
  CHECK(matched({"x", "y"}, {"y", "elsewhere"}) == Numbers{0, 1});
  // If there are as many tensors as inputs that need a value, these get them; if more, the first inputs do.
  CHECK(matched({"w=", "x", "v=", "y"}, {"", ""}) == Numbers{1, 3});
  CHECK(matched({"w=", "x", "v=", "y"}, {"", "", "", ""}) == Numbers{0, 1, 2, 3});
  CHECK(matched({"x", "w=", "v="}, {"", ""}) == Numbers{0, 1});
  CHECK(matched({"x"}, {}).empty());
}

TEST_CASE("more tensors than inputs are an error") {
  std::vector<onnx::NamedTensor> tensors(3);
  auto numbers = onnx::match_stored_inputs(facts_with({"x", "w="}), tensors);
  REQUIRE(!numbers);
  CHECK(numbers.error().message == "got 3 stored inputs, the model has 2");
}
