// Tensors in models: every form of Constant, dense and sparse data, typed fields, raw bytes that stay in the
// file.
#include "compiler/frontend/onnx/wire/wire_skeleton.h"
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace firn;
using namespace firn::test;

namespace {

Model constant_model(const Message& attribute, int type) {
  Model model;
  model.graph.outputs = {value("y", type, {})};
  model.graph.nodes = {node("Constant", {}, {"y"}, {attribute})};
  return model;
}

std::vector<double> constant_value(const Message& attribute) {
  return numbers(run(import_model(constant_model(attribute, F32)), {})[0]);
}

Imported initializer(const Message& tensor) {
  Model model;
  model.graph.initializers = {tensor};
  model.graph.nodes = {node("Identity", {"w"}, {"y"})};
  model.graph.outputs = {value("y", F32, {})};
  return import_model(model);
}

} // namespace

TEST_CASE("Constant in all its forms") {
  CHECK(constant_value(attribute_tensor("value", floats("", {2}, {1, 2}))) == std::vector<double>{1, 2});
  CHECK(constant_value(attribute_real("value_float", 1.5f)) == std::vector<double>{1.5});
  CHECK(constant_value(attribute("value_int", INT64_MAX)) == std::vector<double>{9223372036854775807.0});
  CHECK(constant_value(attribute_ints("value_ints", {3, -4})) == std::vector<double>{3, -4});
  Message reals = Message().text(1, "value_floats").number(20, 6).real(7, 1).real(7, 2);
  CHECK(constant_value(reals) == std::vector<double>{1, 2});
  Message sparse = Message().message(1, floats("", {2}, {5, 6})).message(2, ints("", {1, 3})).number(3, 4);
  CHECK(constant_value(Message().text(1, "sparse_value").message(22, sparse).number(20, 11)) ==
        std::vector<double>{0, 5, 0, 6});
}

TEST_CASE("a Constant without a value, or with two, is refused") {
  Model model = constant_model(attribute("value_int", 1), I64);
  model.graph.nodes = {
      node("Constant", {}, {"y"}, {attribute("value_int", 1), attribute_real("value_float", 1)})};
  CHECK(contains(import_model(model).messages, "has 2 of the value attributes, wants exactly one"));
}

namespace {

// y = Expand(x, Add(s, t)) with x: f32[1,1], s and t: i64[2].
Model expand_by_inputs() {
  Model model;
  model.graph.inputs = {value("x", F32, {1, 1}), value("s", I64, {2}), value("t", I64, {2})};
  model.graph.nodes = {node("Add", {"s", "t"}, {"sum"}), node("Expand", {"x", "sum"}, {"y"})};
  model.graph.outputs = {value("y", F32, {-1, -1})};
  return model;
}

} // namespace

TEST_CASE("inputs that decide shapes are fixed by options") {
  Imported open = import_model(expand_by_inputs());
  CHECK(contains(open.messages, "its value comes from graph input 's', 't': fix it with --const s=<value> "
                                "--const t=<value>"));
  onnx::ImportOptions options;
  options.constants["s"] = i64({2}, {1, 2});
  CHECK(contains(import_model(expand_by_inputs(), options).messages, "graph input 't': fix it"));
  options.constant_texts["t"] = "2,2";
  Imported fixed = import_model(expand_by_inputs(), options);
  REQUIRE(fixed.model);
  CHECK(fixed.model->module->main().parameter_names == std::vector<std::string>{"x"});
  CHECK(run(fixed, {f32({1, 1}, {0.5})})[0]->dims() == std::vector<int64_t>{3, 4});
  for (const char* wrong : {"1", "1,2,3", "x,1", "1.5,2", "", "1,,2", "99999999999999999999,1"}) {
    options.constant_texts["t"] = wrong;
    CHECK(contains(import_model(expand_by_inputs(), options).messages,
                   "is no value for graph input 't', which is i64[2]"));
  }
  options.constant_texts.clear();
  options.constants["t"] = f32({2}, {2, 2});
  CHECK(contains(import_model(expand_by_inputs(), options).messages,
                 "graph input 't' is i64[2], the value given is f32[2]"));
}

TEST_CASE("data that decides a shape is not offered to be fixed") {
  Model model = expand_by_inputs();
  model.graph.inputs[1] = value("s", I64, {2000});
  model.graph.nodes = {node("Slice", {"s", "o", "p"}, {"sum"}), node("Expand", {"x", "sum"}, {"y"})};
  model.graph.initializers = {ints("o", {0}), ints("p", {2})};
  Imported open = import_model(model);
  CHECK(contains(open.messages, "nothing bounds it"));
  CHECK(!contains(open.messages, "--const"));
}

TEST_CASE("typed fields hold elements of every width") {
  Message narrow = tensor_header("w", U8, {3});
  for (int v : {1, 200, 255}) narrow.number(5, v);
  CHECK(numbers(run(initializer(narrow), {})[0]) == std::vector<double>{1, 200, 255});
  Message half = tensor_header("w", F16, {2}).number(5, 0x3c00).number(5, 0xc000);
  CHECK(numbers(run(initializer(half), {})[0]) == std::vector<double>{1, -2});
  Message wide = tensor_header("w", I64, {1}).number(7, -5);
  CHECK(numbers(run(initializer(wide), {})[0]) == std::vector<double>{-5});
}

TEST_CASE("wrong amounts of data, unknown dtypes and broken dims are refused") {
  CHECK(contains(initializer(floats("w", {3}, {1, 2})).messages,
                 "initializer 'w': f32[3] has 8 bytes of raw data, wants 12"));
  CHECK(contains(initializer(tensor_header("w", F32, {2}).real(4, 1)).messages,
                 "f32[2] has 1 values in float_data, wants 2"));
  CHECK(contains(initializer(tensor_header("w", 99, {1})).messages, "unknown element type 99"));
  CHECK(contains(initializer(tensor_header("w", F32, {-2})).messages, "negative or too large"));
  CHECK(contains(initializer(tensor_header("w", F32, {INT64_MAX, INT64_MAX})).messages,
                 "negative or too large"));
  Message sparse = Message().message(1, floats("", {1}, {5})).message(2, ints("", {9})).number(3, 4);
  Model model = constant_model(Message().text(1, "sparse_value").message(22, sparse).number(20, 11), F32);
  CHECK(contains(import_model(model).messages, "index 9 of a sparse tensor is out of range"));
}

TEST_CASE("raw data stays in the file: the skeleton says where") {
  std::string bytes = Model{Graph{{}, {floats("w", {3}, {1, 2, 3})}, {}, {}}, 10, {{"", 17}}, {}}.encode();
  auto skeleton = onnx::make_skeleton(std::as_bytes(std::span(bytes)), onnx::WireMessage::Model);
  REQUIRE(skeleton);
  float one = 1;
  std::string raw(reinterpret_cast<const char*>(&one), 4);
  CHECK(contains(bytes, raw));
  CHECK(!contains(*skeleton, raw));
}

TEST_CASE("a file cannot say where raw data lies") {
  Message forged = tensor_header("w", F32, {1}).number(1000, 1 << 30).number(1001, 4);
  CHECK(contains(initializer(forged).messages, "f32[1] has 0 values in float_data, wants 1"));
}

namespace {

Message external(const std::string& name, const std::string& location, const std::string& offset) {
  auto entry = [](const std::string& key, const std::string& text) {
    return Message().text(1, key).text(2, text);
  };
  Message m = tensor_header(name, F32, {2}).number(14, 1);
  m.message(13, entry("location", location));
  if (!offset.empty()) m.message(13, entry("offset", offset));
  return m;
}

// Imports a model with the initializer from a folder of its own, which holds weights.bin with 1 2 3.
std::string import_from_folder(const Message& tensor) {
  std::string pattern = (std::filesystem::temp_directory_path() / "firn_external_XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()));
  std::filesystem::path folder = pattern;
  Model model;
  model.graph.initializers = {tensor};
  model.graph.nodes = {node("Identity", {"w"}, {"y"})};
  model.graph.outputs = {value("y", F32, {2})};
  float weights[] = {1, 2, 3};
  std::ofstream(folder / "weights.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(weights), sizeof weights);
  std::ofstream(folder / "model.onnx", std::ios::binary) << model.encode();
  DiagnosticList diagnostics;
  auto imported = onnx::import_onnx((folder / "model.onnx").string(), {}, diagnostics);
  std::string text = diagnostics.empty() ? "" : diagnostics.messages()[0].message;
  if (imported) {
    REQUIRE(imported->facts.external_files.size() == 1);
    Imported wrapped;
    wrapped.model = std::move(imported);
    for (double number : numbers(run(wrapped, {})[0])) text += std::to_string(static_cast<int>(number)) + " ";
  }
  std::filesystem::remove_all(folder);
  return text;
}

} // namespace

TEST_CASE("external data lies beneath the model's folder, within its file") {
  CHECK(import_from_folder(external("w", "weights.bin", "")) == "1 2 ");
  CHECK(import_from_folder(external("w", "weights.bin", "4")) == "2 3 ");
  CHECK(
      contains(import_from_folder(external("w", "weights.bin", "8")), "has 12 bytes, wanted 8 at offset 8"));
  CHECK(contains(import_from_folder(external("w", "weights.bin", "18446744073709551612")),
                 "wanted 8 at offset"));
  CHECK(contains(import_from_folder(external("w", "weights.bin", "four")), "offset 'four', wants a number"));
  CHECK(contains(import_from_folder(external("w", "missing.bin", "")), "missing.bin"));
  CHECK(contains(import_from_folder(external("w", "../weights.bin", "")), "../weights.bin"));
  CHECK(contains(import_from_folder(external("w", "/etc/passwd", "")), "absolute"));
  CHECK(contains(initializer(external("w", "weights.bin", "")).messages, "a model that has no folder"));
}

TEST_CASE("a tensor file reads back as it was written, in every dtype") {
  for (DType dtype :
       {DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3FN, DType::F4E2M1, DType::I64,
        DType::I8, DType::I4, DType::I2, DType::U64, DType::U2, DType::Bool, DType::C64}) {
    auto literal = std::make_shared<Literal>(dtype, std::vector<int64_t>{3});
    for (int64_t i = 0; i < 3 && !is_complex(dtype); ++i) literal->set_double(i, i == 1 ? 1 : 0);
    std::string path =
        (std::filesystem::temp_directory_path() / ("firn_tensor_" + std::string(dtype_name(dtype)) + ".pb"))
            .string();
    REQUIRE(onnx::write_tensor_file(path, "t", *literal));
    auto read = onnx::read_tensor_file(path);
    REQUIRE(read);
    CHECK(read->name == "t");
    CHECK(read->literal->type() == literal->type());
    CHECK(read->literal->hash() == literal->hash());
    std::filesystem::remove(path);
  }
}

// Kernels read the one number; the importer knows all elements where they decide a shape.
TEST_CASE("constants that a node repeats are stored once") {
  Model model;
  model.graph.inputs = {value("x", I64, {300})};
  model.graph.initializers = {ints("c", {7}), ints("shape", {300})};
  model.graph.nodes = {node("Add", {"x", "c"}, {"y"}), node("Expand", {"c", "shape"}, {"many"}),
                       node("NonZero", {"many"}, {"places"})};
  model.graph.outputs = {value("y", I64, {300}), value("places", I64, {1, 300})};
  Imported imported = import_model(model);
  INFO(imported.messages);
  REQUIRE(imported.model);
  const std::string text = imported.text();
  INFO(text);
  CHECK(contains(text, "broadcast_in_dim"));
  CHECK(contains(text, "(i64[300], i64[1,300])"));
  std::vector<LiteralRef> results = run(imported, {i64({300}, std::vector<int64_t>(300, -3))});
  CHECK(numbers(results[0]) == std::vector<double>(300, 4));
  CHECK(numbers(results[1])[299] == 299);
}
