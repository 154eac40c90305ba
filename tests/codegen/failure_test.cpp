// Tests that Firn survives failures of LLVM.
#include "tests/codegen/model_object.h"

#include "compiler/codegen/run_guarded.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <fstream>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace firn::test {

using namespace kernel;

// LLVM never frees the memory of the work in which it failed.
struct ExpectedLeaks {
#if defined(__SANITIZE_ADDRESS__)
  ExpectedLeaks() {
    __lsan_disable();
  }
  ~ExpectedLeaks() {
    __lsan_enable();
  }
#else
  ~ExpectedLeaks() {}
#endif
};

// y = f32(unsigned x), eight at a time.
static Program unsigned_program() {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = "convert";
  Builder b(*kernel);
  int x = b.add_parameter("x", Scalar::I32, 8, false), y = b.add_parameter("y", Scalar::F32, 8, true);
  b.store(b.cast(OpKind::UIToF, b.load({Scalar::I32, 8}, x, 0), Scalar::F32), y, 0);
  return program_of(std::move(kernel));
}

TEST_CASE("a fatal error of LLVM is a diagnostic, and nothing is written", "[object]") {
  ExpectedLeaks leaks;
  TemporaryFolder folder;
  codegen::CodegenOptions options = options_for(target_of("x86_64-linux-gnu", "x86-64-v3"));
  // With AVX-512's conversions, but without its registers of 512 bits, the encoder of instructions gives up.
  options.target.features += ",+avx512f";
  for (int i = 0; i < 2; ++i) {
    auto facts = codegen::emit_object(unsigned_program(), options, folder.file("a.o"));
    REQUIRE_FALSE(facts);
    CHECK(facts.error().fault == Fault::Internal);
    INFO(facts.error().message);
    CHECK(facts.error().message.starts_with("LLVM cannot generate code for x86-64-v3 (x86_64-"));
    CHECK_FALSE(std::ifstream(folder.file("a.o")).good());
    // The next compilation succeeds.
    CHECK(codegen::emit_object(unsigned_program(), options_for(host_target()), folder.file("b.o")));
  }
}

TEST_CASE("a crash inside LLVM is told like a fatal error", "[object]") {
  std::string words = codegen::run_guarded([] { std::raise(SIGSEGV); });
  CHECK(words == "it crashed with signal " + std::to_string(SIGSEGV));
  CHECK(codegen::run_guarded([] {}).empty());
}

} // namespace firn::test
