// The compiler inside another process: a fault of it is a diagnostic, and it leaves the process as it was.
#include "compiler/driver/compile_to_memory.h"
#include "compiler/driver/guarded.h"
#include "compiler/support/pass_list.h"
#include "compiler/support/temporary_folder.h"
#include "tests/frontend/model_writer.h"

#include <catch2/catch.hpp>

#include <clocale>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <unistd.h>

using namespace firn;

namespace {

driver::CompileOptions digits(const std::string& stem) {
  driver::CompileOptions options;
  options.model = FIRN_SOURCE_DIR "/models/digits/model.onnx";
  options.output = stem;
  options.cpu = "x86-64-v3";
  options.triple = "x86_64-linux-gnu";
  return options;
}

struct Unit {};
struct UnitOptions : RewriteLimit, PassRefusal {};

// The state that the compiler may not change: handlers of signals, the locale, the folder.
struct ProcessState {
  std::vector<std::vector<char>> handlers;
  std::string locale = std::setlocale(LC_ALL, nullptr), folder = std::filesystem::current_path();

  ProcessState() {
    for (int signal = 1; signal < 32; ++signal) {
      struct sigaction action {};
      ::sigaction(signal, nullptr, &action);
      std::vector<char> bytes(sizeof action.sa_handler);
      std::memcpy(bytes.data(), &action.sa_handler, bytes.size());
      handlers.push_back(std::move(bytes));
    }
  }
  bool operator==(const ProcessState&) const = default;
};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The options with the bytes, which outlive them, in the place of the model's file.
driver::CompileOptions with_bytes(driver::CompileOptions options, const std::string& bytes) {
  options.model_bytes = std::as_bytes(std::span(bytes));
  return options;
}

// The files that a compilation wrote hold what another gave as bytes.
void check_equal(const std::string& stem, const driver::MemoryOutputs& outputs) {
  CHECK(content(stem + ".o") == outputs.object);
  CHECK(content(stem + ".h") == outputs.header);
  CHECK(content(stem + ".json") == outputs.manifest);
  CHECK_FALSE(outputs.object.empty());
  CHECK(outputs.compilation->description.object_bytes == static_cast<int64_t>(outputs.object.size()));
}

// Compiles the options' model from its file and from its bytes, each to files and to memory: all four make
// the same.
void check_four_ways(driver::CompileOptions options) {
  const std::string bytes = content(options.model);
  DiagnosticList none;
  REQUIRE(driver::compile(options, none));
  auto from_file = driver::compile_to_memory(options, none);
  REQUIRE(from_file);
  check_equal(options.output, *from_file);
  auto from_bytes = driver::compile_to_memory(with_bytes(options, bytes), none);
  REQUIRE(from_bytes);
  check_equal(options.output, *from_bytes);
  options.output += "_bytes";
  REQUIRE(driver::compile(with_bytes(options, bytes), none));
  check_equal(options.output, *from_file);
}

// Compiles what is no model, or not all of one. The message.
std::string refusal(const driver::CompileOptions& options) {
  DiagnosticList diagnostics;
  CHECK_FALSE(driver::compile_to_memory(options, diagnostics));
  REQUIRE_FALSE(diagnostics.empty());
  return diagnostics.messages()[0].message;
}

constexpr char kLine[] = R"(module @line {
  func @main(%x: f32[8]) -> (f32[8]) outputs ["y"] {
    %scale = constant [2, 2, 2, 2, 2, 2, 2, 2] : f32[8]
    %y = multiply %x, %scale : f32[8]
    return %y
  }
}
)";

// A model that adds 1 and 2, which are in weights.bin.
std::string model_with_external_data() {
  auto entry = test::Message().text(1, "location").text(2, "weights.bin");
  test::Model model;
  model.graph.inputs = {test::value("x", test::F32, {2})};
  model.graph.initializers = {test::tensor_header("w", test::F32, {2}).number(14, 1).message(13, entry)};
  model.graph.nodes = {test::node("Add", {"x", "w"}, {"y"})};
  model.graph.outputs = {test::value("y", test::F32, {2})};
  return model.encode();
}

// Sends a descriptor to a file for as long as it lives.
class Redirected {
public:
  Redirected(int descriptor, const std::string& path) : descriptor_(descriptor), saved_(::dup(descriptor)) {
    FILE* file = std::fopen(path.c_str(), "w");
    ::dup2(::fileno(file), descriptor);
    std::fclose(file);
  }
  ~Redirected() {
    std::fflush(nullptr);
    ::dup2(saved_, descriptor_);
    ::close(saved_);
  }

private:
  int descriptor_, saved_;
};

} // namespace

TEST_CASE("a failed check names stage and model, and the next model compiles") {
  auto folder = TemporaryFolder::make();
  REQUIRE(folder);
  driver::CompileOptions options = digits(folder->path() + "/digits");
  options.progress = [](const std::string& stage) { FIRN_CHECK(stage != "plan", "provoked"); };
  DiagnosticList diagnostics;
  CHECK_FALSE(driver::compile(options, diagnostics));
  REQUIRE(diagnostics.messages().size() == 1);
  const Diagnostic& diagnostic = diagnostics.messages()[0];
  CHECK(diagnostic.fault == Fault::Internal);
  for (const char* part : {"digits/model.onnx", "stage 'plan'", "provoked", "library_test.cpp"}) {
    INFO(diagnostic.message);
    CHECK(diagnostic.message.find(part) != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(folder->path() + "/digits.o"));

  DiagnosticList none;
  CHECK(driver::compile(digits(folder->path() + "/digits"), none));
  CHECK(std::filesystem::exists(folder->path() + "/digits.o"));
}

TEST_CASE("a failed check in a pass names the pass") {
  PassLevel<Unit, UnitOptions> level{
      {{"break-something", "", [](Unit&, const UnitOptions&) -> bool { FIRN_UNREACHABLE("broken"); }}},
      [](const Unit&) { return Result(); },
      [](const Unit&) { return std::string(); }};
  Unit unit;
  PassListRun<Unit, UnitOptions> run;
  Result result =
      driver::guarded("some.onnx", [&] { return run_pass_list(unit, level, "break-something", run); });
  REQUIRE(!result);
  CHECK(result.error().fault == Fault::Internal);
  CHECK(result.error().message.find("some.onnx: in pass break-something, ") == 0);
}

TEST_CASE("files and bytes of a model make the same files and the same bytes") {
  auto folder = TemporaryFolder::make();
  REQUIRE(folder);
  SECTION("ONNX") {
    check_four_ways(digits(folder->path() + "/digits"));
  }
  SECTION("ONNX, with weights that the program prepares") {
    driver::CompileOptions options = digits(folder->path() + "/digits");
    options.weights = driver::Weights::Init;
    check_four_ways(options);
  }
  SECTION("an object that is not ELF") {
    driver::CompileOptions options = digits(folder->path() + "/digits");
    options.triple = "x86_64-apple-macos11";
    check_four_ways(options);
  }
  SECTION("a graph in text form") {
    driver::CompileOptions options = digits(folder->path() + "/line");
    options.model = *folder->write("line.hlo", kLine);
    check_four_ways(options);
    // Without the ending, bytes are known by their first word.
    driver::CompileOptions unnamed = options;
    unnamed.model = "line";
    DiagnosticList none;
    const std::string text = kLine;
    auto outputs = driver::compile_to_memory(with_bytes(unnamed, text), none);
    REQUIRE(outputs);
    CHECK(outputs->object == content(folder->file("line.o")));
  }
}

TEST_CASE("external data of a model in memory lies beneath the folder that is given") {
  auto folder = TemporaryFolder::make();
  REQUIRE(folder);
  const float weights[] = {1, 2};
  REQUIRE(folder->write("weights.bin", {reinterpret_cast<const char*>(weights), sizeof weights}));
  const std::string bytes = model_with_external_data();
  driver::CompileOptions options = digits(folder->path() + "/sum");
  options.model = *folder->write("sum.onnx", bytes);
  DiagnosticList none;
  REQUIRE(driver::compile(options, none));
  driver::CompileOptions in_memory = with_bytes(options, bytes);
  CHECK(refusal(in_memory).find("a model that has no folder") != std::string::npos);
  in_memory.model_folder = folder->path();
  auto outputs = driver::compile_to_memory(in_memory, none);
  REQUIRE(outputs);
  check_equal(options.output, *outputs);
}

TEST_CASE("bytes that hold no whole model are refused, and so is what makes no object") {
  const driver::CompileOptions options = digits("");
  const std::string bytes = content(options.model), line = kLine;
  for (size_t size : {size_t{0}, size_t{1}, size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
    INFO(size);
    const std::string part = bytes.substr(0, size);
    CHECK_FALSE(refusal(with_bytes(options, part)).empty());
  }
  driver::CompileOptions graph = options;
  graph.model = "line.hlo";
  const std::string half = line.substr(0, line.size() / 2);
  CHECK(refusal(with_bytes(graph, half)).starts_with("line.hlo:"));
  graph.emit = driver::Emit::Graph;
  CHECK(refusal(with_bytes(graph, line)).find("--emit") != std::string::npos);
}

TEST_CASE("the text of --emit goes to the function that prints, and fails as that does") {
  driver::CompileOptions options = digits("");
  options.emit = driver::Emit::Graph;
  DiagnosticList unheard;
  CHECK(driver::compile(options, unheard) == nullptr);
  std::string printed;
  options.print = [&](const std::string& text) -> Result {
    printed += text;
    return {};
  };
  DiagnosticList diagnostics;
  REQUIRE(driver::compile(options, diagnostics));
  CHECK(printed.starts_with("module @"));
  options.print = [](const std::string&) -> Result { return usage_error("no paper"); };
  CHECK_FALSE(driver::compile(options, diagnostics));
  REQUIRE(diagnostics.messages().size() == 1);
  CHECK(diagnostics.messages()[0].message == "no paper");
}

TEST_CASE("compiling prints nothing and changes neither signals, locale nor folder") {
  auto folder = TemporaryFolder::make();
  REQUIRE(folder);
  std::string printed = folder->path() + "/printed";
  ProcessState before;
  {
    Redirected output(1, printed), errors(2, printed);
    DiagnosticList diagnostics;
    driver::compile(digits(folder->path() + "/digits"), diagnostics);
    const std::string bytes = content(digits("").model), part = bytes.substr(0, bytes.size() / 2);
    driver::compile_to_memory(with_bytes(digits(""), bytes), diagnostics);
    driver::compile_to_memory(with_bytes(digits(""), part), diagnostics);
    driver::CompileOptions missing = digits(folder->path() + "/missing");
    missing.model = folder->path() + "/missing.onnx";
    driver::compile(missing, diagnostics);
  }
  CHECK(before == ProcessState());
  CHECK(content(printed).empty());
}
