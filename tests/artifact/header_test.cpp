// The generated header: one pinned whole, refusals, and independence of where the model lies.
#include "compiler/artifact/header.h"
#include "compiler/artifact/manifest.h"
#include "tests/artifact/sample_models.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace firn;
using namespace firn::artifact;

namespace {

// Compares with golden/`name`; with FIRN_BLESS=1 in the environment rewrites it instead.
void check_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(FIRN_GOLDEN_DIR) + "/" + name;
  if (const char* bless = std::getenv("FIRN_BLESS"); bless && std::string(bless) == "1")
    std::ofstream(path, std::ios::binary) << text;
  std::ifstream file(path, std::ios::binary);
  std::stringstream golden;
  golden << file.rdbuf();
  INFO("FIRN_BLESS=1 rewrites " << path);
  CHECK(text == golden.str());
}

// digits_sample() with the architecture pinned, so that the golden files are those of every host.
ModelDescription golden_sample() {
  ModelDescription model = digits_sample();
  model.architecture = 1;
  model.required_features = 0x8;
  return model;
}

// varying_sample() with each kind once: dims of multiples and of a list, and an extent that a run counts.
ModelDescription golden_varying_sample() {
  ModelDescription model = varying_sample();
  model.dims.erase(model.dims.begin(), model.dims.begin() + 2);
  model.inputs = {model.inputs[1]};
  model.outputs = {model.outputs[2]};
  model.states.clear();
  return model;
}

std::string header_of(const ModelDescription& model) {
  return write_header(model);
}

} // namespace

TEST_CASE("the whole header of digits") {
  check_golden("digits.h", header_of(golden_sample()));
}

TEST_CASE("the whole manifest of digits") {
  check_golden("digits.json", write_manifest(golden_sample()));
}

TEST_CASE("the whole header and manifest of a model with dims that vary") {
  check_golden("varying.h", header_of(golden_varying_sample()));
  check_golden("varying.json", write_manifest(golden_varying_sample()));
}

TEST_CASE("the folder of the model does not show") {
  ModelDescription moved = digits_sample();
  moved.source_file = "digits.onnx";
  CHECK(header_of(moved) == header_of(digits_sample()));
  CHECK(write_manifest(moved) == write_manifest(digits_sample()));
}

TEST_CASE("string tensors are empty until they are set, in C++ and in C") {
  ModelDescription model = digits_sample();
  CHECK(header_of(model).find("firn/text.h") == std::string::npos);
  model.outputs[0].dtype = DType::String;
  const std::string header = header_of(model);
  for (const char* part :
       {"#include \"firn/text.h\"", "firn::View<const firn::Text, 1, 10>", "const firn_text*",
        "firn::ElementType::String", "if (instance_.arena) std::memset(", ", 0, 160);"})
    CHECK(header.find(part) != std::string::npos);
}

TEST_CASE("reset exists only with state") {
  CHECK(header_of(digits_sample()).find("reset()") == std::string::npos);
  CHECK(header_of(everything_sample()).find("void reset() noexcept") != std::string::npos);
}

TEST_CASE("models that clamp indices say so, in C++ and in C") {
  CHECK(header_of(digits_sample()).find("clamped") == std::string::npos);
  ModelDescription model = digits_sample();
  model.indices = Indices::Clamped;
  const std::string header = header_of(model);
  const size_t first = header.find("// Indices out of range are clamped");
  REQUIRE(first != std::string::npos);
  CHECK(header.find("// Indices out of range are clamped", first + 1) != std::string::npos);
  model.indices = Indices::Checked;
  CHECK(header_of(model).find("clamped") == std::string::npos);
  CHECK(header_of(model).find("an index out of range") != std::string::npos);
}

TEST_CASE("guards and namespaces tell two models of one class apart") {
  ModelDescription other = digits_sample();
  other.content_hash = "other";
  const auto line = [](const std::string& header, const std::string& start) {
    const size_t at = header.find(start);
    REQUIRE(at != std::string::npos);
    return header.substr(at, header.find('\n', at) - at);
  };
  for (const char* start : {"#ifndef FIRN_MODEL_", "inline namespace firn_"})
    CHECK(line(header_of(other), start) != line(header_of(digits_sample()), start));
}

TEST_CASE("models with weights to prepare have no default weights") {
  const std::string header = header_of(prepared_sample());
  CHECK(header.find("raw_weight_bytes = 128") != std::string::npos);
  CHECK(header.find("embedded()") == std::string::npos);
  CHECK(header.find("const Weights& packed) noexcept") != std::string::npos);
  CHECK(write_manifest(prepared_sample()).find("\"raw_weight_bytes\": 128") != std::string::npos);
  CHECK(header_of(digits_sample()).find("prepare") == std::string::npos);
}

TEST_CASE("raw weights that are read in place need no memory and no function") {
  const std::string header = header_of(in_place_sample()), manifest = write_manifest(in_place_sample());
  CHECK(header.find("prepared_weight_bytes = 0;") != std::string::npos);
  CHECK(header.find("#define VISION_IN_PLACE_WEIGHTS_SIZE 0\n") != std::string::npos);
  CHECK(header.find("embedded()") == std::string::npos);
  CHECK(header.find("_prepare_abi2_") == std::string::npos);
  CHECK(manifest.find("\"prepared_weight_bytes\": 0") != std::string::npos);
  CHECK(manifest.find("\"raw_weight_bytes\": 256") != std::string::npos);
  CHECK(manifest.find("prepare_symbol") == std::string::npos);
}

TEST_CASE("a header for several CPUs has their table and takes a name", "[artifact]") {
  ModelDescription model = golden_sample();
  std::string one = header_of(model);
  model.cpu = "x86-64-v4, x86-64-v3";
  model.cpus = {{"x86-64-v4", 0xfffff, 0}, {"x86-64-v3", 0x7fff, 64}};
  std::string several = header_of(model);
  for (const char* text : {"cpus[] = { {\"x86-64-v4\", 0xfffffu}, {\"x86-64-v3\", 0x7fffu} };",
                           "const char* cpu = nullptr) noexcept", "models[variant_]", "_init_for(",
                           "cpu, &model->variant);", "nullptr, variant_)"}) {
    INFO(text);
    CHECK(several.find(text) != std::string::npos);
    CHECK(one.find(text) == std::string::npos);
  }
  CHECK(several.find("firn_rt2_check_cpu(") == std::string::npos);
  std::string manifest = write_manifest(model);
  CHECK(manifest.find("\"own_weight_bytes\": 64") != std::string::npos);
}
