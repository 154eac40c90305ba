// Real networks of the test data: each imports with its symbolic dims open or bound, verifies, and prints and
// parses back.
#include "tests/frontend/import_case.h"

#include "compiler/frontend/onnx/import/stored_tensors.h"
#include "compiler/graph/verify.h"

#include <catch2/catch.hpp>
#include <filesystem>

using namespace firn;
using namespace firn::test;

namespace {

namespace fs = std::filesystem;

// Files of one kind beneath a folder of the test data; empty, with a note, where there is no test data.
std::vector<fs::path> model_files(const std::string& folder) {
  std::vector<fs::path> files;
  fs::path root = fs::path(FIRN_TEST_DATA) / folder;
  if (std::string_view(FIRN_TEST_DATA).empty() || !fs::exists(root)) {
    WARN("skipped: no test data in " + root.string());
    return files;
  }
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().extension() == ".onnx") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

Imported import_file(const fs::path& path, const onnx::ImportOptions& options = {}) {
  DiagnosticList diagnostics;
  Imported imported;
  imported.model = onnx::import_onnx(path.string(), options, diagnostics);
  for (const Diagnostic& each : diagnostics.messages()) imported.messages += each.message + "\n";
  if (!diagnostics.empty()) imported.fault = diagnostics.messages()[0].fault;
  return imported;
}

// The shapes of the inputs in test_data_set_0.
onnx::ImportOptions bound_shapes(const fs::path& path) {
  onnx::ImportOptions options;
  auto facts = onnx::inspect_onnx(path.string());
  REQUIRE(facts);
  auto stored = onnx::read_stored_tensors((path.parent_path() / "test_data_set_0").string(), "input");
  REQUIRE(stored);
  auto numbers = onnx::match_stored_inputs(*facts, *stored);
  REQUIRE(numbers);
  for (size_t i = 0; i < stored->size(); ++i)
    options.shapes[facts->inputs[(*numbers)[i]].name] = (*stored)[i].literal->dims();
  return options;
}

} // namespace

TEST_CASE("every network imports at the shapes of its data and round-trips") {
  for (const fs::path& path : model_files("models")) {
    INFO(path.string());
    if (path.string().find("superres") != std::string::npos) continue;
    (void)import_file(path, bound_shapes(path)).text();
  }
}

TEST_CASE("with open dims a network imports, or the message says which dim to bind") {
  for (const fs::path& path : model_files("models")) {
    INFO(path.string());
    if (path.string().find("superres") != std::string::npos) continue;
    Imported imported = import_file(path);
    INFO(imported.messages);
    if (imported.model)
      (void)imported.text();
    else
      CHECK(contains(imported.messages, "--dim"));
  }
}

TEST_CASE("custom operators are refused, each named with its domain") {
  for (const fs::path& path : model_files("models")) {
    if (path.string().find("superres") == std::string::npos) continue;
    Imported imported = import_file(path);
    CHECK(imported.fault == Fault::Unsupported);
    CHECK(contains(imported.messages, "2 operators are not supported"));
    CHECK(contains(imported.messages, "com.microsoft.extensions.DecodeImage (opset 1)"));
    CHECK(contains(imported.messages, "com.microsoft.extensions.EncodeImage (opset 1)"));
    auto facts = onnx::inspect_onnx(path.string());
    REQUIRE(facts);
    CHECK(facts->unsupported.size() == 2);
    CHECK(facts->nodes == 105);
  }
}

TEST_CASE("the classics with weights made by nodes import") {
  for (const fs::path& path : model_files("onnx/light")) {
    INFO(path.string());
    Imported imported = import_file(path);
    INFO(imported.messages);
    REQUIRE(imported.model);
    Result verified = verify(*imported.model->module);
    if (!verified) FAIL(verified.error().message);
  }
}
