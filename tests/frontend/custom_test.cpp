// Operators of the program: what becomes of inputs, attributes and declared outputs, and what is missing.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

const char* kDomain = "com.acme";

Model model_of(const std::vector<Message>& attributes, std::vector<Message> outputs) {
  Model model;
  model.opsets = {{"", 18}, {kDomain, 1}};
  model.graph.inputs = {value("x", F32, {"n", 4}), value("z", I64, {})};
  model.graph.nodes = {node("Pool", {"x", "", "z"}, {"y", "count"}, attributes, kDomain),
                       node("Neg", {"y"}, {"w"})};
  outputs.push_back(Message().text(1, "w"));
  model.graph.outputs = std::move(outputs);
  return model;
}

onnx::ImportOptions custom(int64_t n = 3) {
  onnx::ImportOptions options;
  options.custom["com.acme:Pool"] = {"com.acme:Pool", "acme_pool", 128};
  options.dims["n"] = n;
  return options;
}

} // namespace

TEST_CASE("a node of the program's operator is a call with constants for its attributes") {
  auto options = custom();
  options.values["y"] = "f16[n,2]";
  Imported imported = import_model(model_of({attribute_ints("kernel", {3, 5}), attribute_text("mode", "edge"),
                                             attribute_real("scale", 0.5f)},
                                            {value("count", I32, {"n"})}),
                                   options);
  std::string text = imported.text();
  CHECK(contains(text, "custom %x, %z, "));
  CHECK(contains(text, "attributes = \"kernel,mode,scale\""));
  CHECK(contains(text, "inputs = [0, -1, 1], operator = \"com.acme:Pool\", symbol = \"acme_pool\""));
  CHECK(contains(text, "workspace = 128"));
  CHECK(contains(text, "(f16[3,2], i32[3])"));
  options.dims.clear();
  options.ranges["n"] = {1, 8};
  CHECK(contains(import_model(model_of({}, {value("count", I32, {"n"})}), options).text(),
                 "(f16[n,2], i32[n])"));
}

TEST_CASE("outputs of the program's operators need types") {
  auto messages = [](const onnx::ImportOptions& options, std::vector<Message> outputs) {
    return import_model(model_of({}, std::move(outputs)), options).messages;
  };
  CHECK(contains(messages(custom(), {value("count", I32, {"n"})}),
                 "the model does not say the type of its output 'y'; give it, such as --value y=f32[1,8]"));
  auto options = custom();
  options.values["y"] = "f32[2,";
  CHECK(contains(messages(options, {value("count", I32, {"n"})}), "--value y=f32[2,: wants a type"));
  options.values["y"] = "f32[m]";
  CHECK(contains(messages(options, {value("count", I32, {"n"})}), "has dim 0 'm', which has no value"));
  options.values["y"] = "u4[2]";
  CHECK(contains(messages(options, {value("count", I32, {"n"})}), "which functions of programs do not give"));
  options.values["y"] = "f32[2]";
  CHECK(contains(messages(options, {value("count", I32, {"?"})}), "'?', which has no value"));
}

TEST_CASE("operators of the program that the model does not have are told") {
  auto options = custom();
  options.values["y"] = "f32[2]";
  options.custom["com.acme:Other"] = {"com.acme:Other", "other"};
  Imported imported = import_model(model_of({}, {value("count", I32, {"n"})}), options);
  CHECK(contains(imported.messages, "--custom-op com.acme:Other: the model has no such operator"));
  CHECK(imported.fault == Fault::Usage);
}

TEST_CASE("a function of the program comes before operators that are known") {
  Model model;
  model.graph.inputs = {value("x", F32, {4})};
  model.graph.nodes = {node("Neg", {"x"}, {"y"})};
  model.graph.outputs = {value("y", F32, {4})};
  onnx::ImportOptions options;
  options.custom["ai.onnx:Neg"] = {"ai.onnx:Neg", "negate"};
  CHECK(contains(import_model(model, options).text(), "symbol = \"negate\""));
}
