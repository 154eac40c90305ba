// Code loaded in the process computes the bits of code that the system's tools loaded.
#include "compiler/driver/object_runner.h"
#include "compiler/driver/seeded_inputs.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn;

namespace {

driver::CompileOptions options_for(const std::string& model) {
  driver::CompileOptions options;
  options.model = FIRN_SOURCE_DIR "/models/" + model + "/model.onnx";
  options.cpu = "native";
  return options;
}

// The bytes of all results of two runs, the second of which goes on from the states of the first.
std::vector<std::vector<std::byte>> results(driver::CompileOptions options, driver::Loader loader) {
  options.loader = loader;
  DiagnosticList diagnostics;
  auto compilation = driver::compile_in_memory(options, diagnostics);
  REQUIRE(compilation);
  auto runner = driver::ObjectRunner::create(*compilation);
  if (!runner) FAIL(runner.error().message);
  auto dims = driver::dims_at(compilation->description, {});
  REQUIRE(dims);
  std::vector<std::vector<std::byte>> all;
  for (uint32_t seed : {1u, 2u}) {
    auto outputs = (*runner)->run(driver::seeded_inputs(*compilation, *dims, seed));
    if (!outputs) FAIL(outputs.error().message);
    for (const LiteralRef& output : *outputs)
      all.emplace_back(output->bytes().begin(), output->bytes().end());
  }
  return all;
}

void check_equal_bits(const driver::CompileOptions& options) {
  const auto in_process = results(options, driver::Loader::InProcess);
  CHECK_FALSE(in_process.empty());
  CHECK(in_process == results(options, driver::Loader::System));
}

} // namespace

TEST_CASE("a model's results do not depend on the loader") {
  for (const char* model : {"digits", "denoiser"}) {
    INFO(model);
    check_equal_bits(options_for(model));
  }
}

TEST_CASE("states, threads and prepared weights do not depend on the loader") {
  driver::CompileOptions options = options_for("denoiser");
  for (const char* name : {"past", "power", "noise", "tail"})
    options.import.states.emplace_back(name, std::string(name) + "_next");
  options.goals.threads = 2;
  options.weights = driver::Weights::Init;
  check_equal_bits(options);
}

TEST_CASE("code for one of several CPUs does not depend on the loader") {
  driver::CompileOptions options = options_for("digits");
  options.cpu = "";
  options.cpus = {"x86-64-v3", "x86-64-v2"};
  for (const char* variant : {"x86-64-v3", "x86-64-v2"}) {
    INFO(variant);
    options.variant = variant;
    check_equal_bits(options);
  }
}

TEST_CASE("code and its twins outlive other code") {
  DiagnosticList diagnostics;
  auto compilation = driver::compile_in_memory(options_for("digits"), diagnostics);
  REQUIRE(compilation);
  auto dims = driver::dims_at(compilation->description, {});
  REQUIRE(dims);
  const auto inputs = driver::seeded_inputs(*compilation, *dims, /*seed=*/1);
  auto first = driver::ObjectRunner::create(*compilation),
       second = driver::ObjectRunner::create(*compilation);
  REQUIRE((first && second));
  auto twin = (*second)->make_twin();
  auto expected = (*first)->run(inputs);
  REQUIRE(expected);
  *first = nullptr; // unloads its code
  auto got = twin->run(inputs);
  REQUIRE(got);
  CHECK(std::ranges::equal((*got)[0]->bytes(), (*expected)[0]->bytes()));
}
