// The library computes the bits of objects that the system's tools link.
#include "compiler/driver/object_runner.h"
#include "compiler/driver/seeded_inputs.h"
#include "tests/jit/sample_models.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <cstring>
#include <filesystem>

using namespace firn;
using namespace firn::test;

namespace {

struct Case {
  std::string model;
  std::map<std::string, std::pair<int64_t, int64_t>> dims = {};
  int threads = 1;
  std::string cpus = {};
};

void check(const Case& test) {
  INFO(test.model << ", threads " << test.threads << " " << test.cpus);
  driver::CompileOptions options;
  jit::ModelOptions words;
  options.model = test.model.ends_with(".onnx") ? test.model : model_path(test.model);
  options.loader = driver::Loader::System;
  options.goals.threads = test.threads;
  words.threads(test.threads);
  for (const auto& [name, range] : test.dims) {
    options.import.ranges[name] = {range.first, range.second};
    words.dim(name, range.first, range.second);
  }
  if (test.cpus.empty()) {
    options.cpu = "native";
  } else {
    options.cpus = {"x86-64-v3", "x86-64-v2"};
    words.option("--multiversion", test.cpus);
  }
  DiagnosticList diagnostics;
  auto compilation = driver::compile_in_memory(options, diagnostics);
  REQUIRE(compilation);
  auto runner = driver::ObjectRunner::create(*compilation);
  if (!runner) FAIL(runner.error().message);
  auto dims = driver::dims_at(compilation->description, {});
  auto inputs = driver::seeded_inputs(*compilation, *dims, 7);
  auto expected = (*runner)->run(inputs);
  REQUIRE(expected);

  jit::Compiler compiler;
  jit::Instance net(compiled(compiler, options.model, words));
  firn_jit_tensor tensor;
  for (size_t i = 0; i < inputs.size(); ++i) {
    REQUIRE(firn_jit_instance_tensor(net.handle(), FIRN_JIT_INPUT, i, &tensor));
    REQUIRE(tensor.bytes == inputs[i]->bytes().size());
    std::memcpy(tensor.data, inputs[i]->bytes().data(), tensor.bytes);
  }
  REQUIRE(net.run());
  for (size_t i = 0; i < expected->size(); ++i) {
    REQUIRE(firn_jit_instance_tensor(net.handle(), FIRN_JIT_OUTPUT, i, &tensor));
    REQUIRE(tensor.bytes == (*expected)[i]->bytes().size());
    CHECK(std::memcmp(tensor.data, (*expected)[i]->bytes().data(), tensor.bytes) == 0);
  }
}

} // namespace

TEST_CASE("results in the process are those of objects") {
  check({"digits"});
  check({"digits", {}, 2});
  check({"denoiser"});
  check({"text_encoder", {{"batch", {1, 3}}}});
  check({"text_encoder", {{"batch", {1, 3}}}, 2});
}

TEST_CASE("networks give the bits of objects", "[.networks]") {
  const std::map<std::string, std::map<std::string, std::pair<int64_t, int64_t>>> dims = {
      {"basic_pitch_nmp", {{"unk__749", {1, 1}}}},
      {"byte_sb_bidi_lstm", {{"batch", {1, 2}}, {"length", {1, 17}}}},
      {"magika_standard_v2_1", {{"unk__132", {1, 2}}}},
      {"micro_kws_m_qdq", {{"unk__68", {1, 1}}}},
      {"nanogpt", {{"batch_size", {1, 2}}}},
      {"silero_vad_16k_op15", {{"batch", {1, 1}}, {"sequence", {512, 512}}}}};
  const char* folders = std::getenv("FIRN_NETWORKS");
  const std::filesystem::path folder = folders ? folders : FIRN_TEST_DATA "/models";
  if (!std::filesystem::exists(folder)) {
    WARN("no networks in " << folder << ": skipped");
    return;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename(), model = entry.path() / "model.onnx";
    if (!std::filesystem::exists(model) || name == "superres_prepost_customops") continue; // which is refused
    std::map<std::string, std::pair<int64_t, int64_t>> own;
    if (auto found = dims.find(name); found != dims.end()) own = found->second;
    for (int threads : {1, 2}) check({model, own, threads});
  }
}

TEST_CASE("of code for several CPUs the best that runs here is taken") {
  check({"digits", {}, 1, "x86-64-v3,x86-64-v2"});
}
