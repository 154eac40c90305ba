// The compiler inside another process: a fault of it is a diagnostic, and it leaves the process as it was.
#include "compiler/driver/compile.h"
#include "compiler/driver/guarded.h"
#include "compiler/support/pass_list.h"
#include "compiler/support/temporary_folder.h"

#include <catch2/catch.hpp>

#include <clocale>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
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
struct UnitOptions : RewriteLimit {};

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

TEST_CASE("compiling prints nothing and changes neither signals, locale nor folder") {
  auto folder = TemporaryFolder::make();
  REQUIRE(folder);
  std::string printed = folder->path() + "/printed";
  ProcessState before;
  {
    Redirected output(1, printed), errors(2, printed);
    DiagnosticList diagnostics;
    driver::compile(digits(folder->path() + "/digits"), diagnostics);
    driver::CompileOptions missing = digits(folder->path() + "/missing");
    missing.model = folder->path() + "/missing.onnx";
    driver::compile(missing, diagnostics);
  }
  CHECK(before == ProcessState());
  std::ifstream text(printed);
  CHECK(std::string(std::istreambuf_iterator<char>(text), {}).empty());
}
