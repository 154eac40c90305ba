// Maps: values and keys as tensors, and stored maps in whatever order of keys.
#include "compiler/frontend/onnx/import/stored_tensors.h"
#include "compiler/support/output_set.h"
#include "compiler/support/temporary_folder.h"
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

using Texts = std::vector<std::string>;

constexpr int kString = 8;
const char* kMl = "ai.onnx.ml";

Message untyped(const std::string& name) {
  return Message().text(1, name);
}

// A value of a map's type.
Message map_value(const std::string& name, int keys, int values) {
  Message held = Message().message(1, Message().number(1, values).message(2, Message()));
  Message map = Message().number(1, keys).message(2, held);
  return Message().text(1, name).message(2, Message().message(5, map));
}

Model model_of(std::vector<Message> nodes, std::vector<Message> inputs, const Names& outputs) {
  Model model;
  model.opsets = {{"", 18}, {kMl, 3}};
  model.graph.inputs = std::move(inputs);
  model.graph.nodes = std::move(nodes);
  for (const std::string& name : outputs) model.graph.outputs.push_back(untyped(name));
  return model;
}

Message zip(const std::vector<Message>& attributes) {
  return node("ZipMap", {"x"}, {"z"}, attributes, kMl);
}

LiteralRef texts(const Texts& values) {
  return Literal::strings({static_cast<int64_t>(values.size())}, values);
}

// The result of a node on a map m from integers to `values`.
LiteralRef of_map(const Message& made, int values, const std::vector<int64_t>& keys, const LiteralRef& held) {
  onnx::ImportOptions options;
  options.ranges["m_size"] = {0, 5};
  Imported imported = import_model(model_of({made}, {map_value("m", I64, values)}, {"y"}), options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(imported.model->module->main().parameter_names == Texts{"m_keys", "m"});
  return run(imported, {Literal::of_i64(keys), held})[0];
}

// A file of two maps of strings to f32.
std::string file_of_maps(const TemporaryFolder& folder, const Texts& first, const Texts& second) {
  Message sequence;
  float number = 0;
  for (const Texts& keys : {first, second}) {
    Message map, values;
    for (const std::string& key : keys) {
      map.text(4, key);
      values.message(3, floats("", {}, {++number}));
    }
    sequence.message(6, map.number(2, kString).message(5, values));
  }
  REQUIRE(write_file(folder.path() + "/output_0.pb", sequence.bytes));
  return folder.path();
}

onnx::ModelFacts facts_of_maps() {
  onnx::ModelFacts facts;
  facts.outputs.push_back({"z", "sequence<map<string, f32[]>>"});
  return facts;
}

} // namespace

TEST_CASE("scores by class are a tensor and its keys") {
  Model model =
      model_of({zip({attribute_ints("classlabels_int64s", {7, -3})}), node("Identity", {"z"}, {"y"})},
               {value("x", F32, {2, 2})}, {"y"});
  Imported imported = import_model(model);
  auto got = run(imported, {f32({2, 2}, {1, 2, 3, 4})});
  CHECK(imported.model->module->main().result_names == Texts{"y", "y_keys"});
  CHECK(numbers(got[0]) == std::vector<double>{1, 2, 3, 4});
  CHECK(numbers(got[1]) == std::vector<double>{7, -3});
}

TEST_CASE("labels that do not fit the classes are refused") {
  auto messages = [](const Message& made) {
    return import_model(model_of({made}, {value("x", F32, {2, 2})}, {"z"})).messages;
  };
  CHECK(contains(messages(zip({attribute_ints("classlabels_int64s", {1, 2, 3})})), "3 labels for 2 classes"));
  CHECK(contains(messages(zip({attribute_texts("classlabels_strings", {"a", "a"})})),
                 "two of its labels are the same"));
  CHECK(contains(messages(zip({})), "wants either attribute classlabels_strings or classlabels_int64s"));
  Imported element = import_model(
      model_of({zip({attribute_ints("classlabels_int64s", {1, 2})}), node("SequenceAt", {"z", "p"}, {"y"})},
               {value("x", F32, {2, 2}), value("p", I64, {})}, {"y"}));
  CHECK(contains(element.messages, "is a map, or a sequence of maps, wants a sequence of tensors"));
  Imported keyed =
      import_model(model_of({node("Identity", {"m"}, {"y"})}, {map_value("m", F32, F32)}, {"y"}));
  CHECK(contains(keyed.messages, "graph input 'm' is no tensor"));
}

TEST_CASE("a vocabulary takes what a map has, none and strings too") {
  Message made = node("DictVectorizer", {"m"}, {"y"}, {attribute_ints("int64_vocabulary", {2, 9, 2})}, kMl);
  CHECK(numbers(of_map(made, F32, {9, 1, 2}, f32({3}, {4, 5, 6}))) == std::vector<double>{6, 4, 6});
  CHECK(numbers(of_map(made, F32, {}, f32({0}, {}))) == std::vector<double>{0, 0, 0});
  CHECK(of_map(made, kString, {9, 1}, texts({"nine", "one"}))->string_values() == Texts{"", "nine", ""});
}

TEST_CASE("values of a map in the order of its keys or at their places") {
  auto cast = [](const char* to, const char* form) {
    return node("CastMap", {"m"}, {"y"},
                {attribute_text("cast_to", to), attribute_text("map_form", form), attribute("max_map", 4)},
                kMl);
  };
  CHECK(of_map(cast("TO_STRING", "DENSE"), kString, {9, -1, 2}, texts({"c", "a", "b"}))->string_values() ==
        Texts{"a", "b", "c"});
  CHECK(of_map(cast("TO_STRING", "SPARSE"), kString, {2, 7, 0}, texts({"c", "a", "b"}))->string_values() ==
        Texts{"b", "", "c", ""});
  CHECK(numbers(of_map(cast("TO_INT64", "SPARSE"), F32, {3, 1}, f32({2}, {2.5, -7.75}))) ==
        std::vector<double>{0, -7, 0, 2});
  CHECK(of_map(cast("TO_FLOAT", "DENSE"), F32, {}, f32({0}, {}))->dims() == std::vector<int64_t>{1, 0});
}

TEST_CASE("stored maps are compared in the order of the keys that were got") {
  auto folder = TemporaryFolder::make();
  REQUIRE(folder);
  auto stored = onnx::read_stored_outputs(file_of_maps(*folder, {"a", "b"}, {"b", "a"}), facts_of_maps());
  REQUIRE(stored);
  auto in_order = [&](const Texts& keys) {
    return onnx::as_results(*stored, {"z", "z_keys"}, {f32({2, 2}, {0, 0, 0, 0}), texts(keys)});
  };
  CHECK(numbers(in_order({"b", "a"})[0]) == std::vector<double>{2, 1, 3, 4});
  CHECK(numbers(in_order({"a", "b"})[0]) == std::vector<double>{1, 2, 4, 3});
  // Stored keys that a run did not give stay as they are, so that the comparison shows them.
  CHECK(in_order({"a", "c"})[1]->string_values() == Texts{"a", "b"});
  auto apart = onnx::read_stored_outputs(file_of_maps(*folder, {"a", "b"}, {"b", "c"}), facts_of_maps());
  REQUIRE(!apart);
  CHECK(contains(apart.error().message, "its maps differ in their keys"));
}
