// Declared state: what a pair of an input and an output has to be.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

// next = past + x; grown = concat(past, x).
Model state_model() {
  Model model;
  model.graph.inputs = {value("x", F32, {2, 3}), value("past", F32, {2, 3})};
  model.graph.outputs = {value("next", F32, {2, 3}), value("grown", F32, {4, 3})};
  model.graph.nodes = {node("Add", {"past", "x"}, {"next"}),
                       node("Concat", {"past", "x"}, {"grown"}, {attribute("axis", 0)})};
  return model;
}

onnx::ImportOptions with_states(std::vector<std::pair<std::string, std::string>> states) {
  onnx::ImportOptions options;
  options.states = std::move(states);
  return options;
}

void check_error(const std::vector<std::pair<std::string, std::string>>& states, const std::string& wanted) {
  std::string text = import_model(state_model(), with_states(states)).messages;
  INFO(text);
  CHECK(contains(text, wanted));
}

} // namespace

TEST_CASE("a pair of state makes the result live in the parameter") {
  Imported imported = import_model(state_model(), with_states({{"past", "next"}}));
  const Function& main = imported.model->module->main();
  CHECK(main.aliases == std::vector<int>{1, -1});
  CHECK(main.is_state(1));
  CHECK(!main.is_state(0));
}

TEST_CASE("a state's first value is the initializer of its name") {
  Model model = state_model();
  model.graph.initializers = {floats("past", {2, 3}, {1, 2, 3, 4, 5, 6})};
  Imported imported = import_model(model, with_states({{"past", "next"}}));
  REQUIRE(imported.model->initial_states.count("past"));
  CHECK(imported.model->initial_states.at("past")->get_double(5) == 6);
  CHECK(imported.model->module->main().parameter_names == std::vector<std::string>{"x", "past"});
}

TEST_CASE("pairs that are none are refused with what there is") {
  check_error({{"pest", "next"}},
              "state pest=next: the model has no input 'pest'; its inputs are 'x', 'past'");
  check_error({{"past", "y"}}, "state past=y: the model has no output 'y'; its outputs are 'next', 'grown'");
  check_error({{"past", "grown"}},
              "state past=grown: input 'past' is f32[2,3], output 'grown' is f32[4,3]: a "
              "state keeps one type and one shape");
  check_error({{"past", "next"}, {"past", "next"}}, "input 'past' is in two pairs");
  check_error({{"past", "next"}, {"x", "next"}}, "output 'next' is in two pairs");
}
