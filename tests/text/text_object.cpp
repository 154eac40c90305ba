// See text_object.h.
#include "tests/text/text_object.h"

#include "compiler/driver/object_runner.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/hlo_text.h"
#include "compiler/support/temporary_folder.h"
#include "tests/random/guarded_heap.h"

#include <catch2/catch.hpp>

namespace firn::test {

namespace {

std::unique_ptr<driver::Compilation> compile_text(const std::string& module, const std::string& cpu,
                                                  bool small, const TextOptions& options,
                                                  DiagnosticList& diagnostics) {
  auto folder = TemporaryFolder::make();
  REQUIRE(folder);
  auto path = folder->write("model.hlo", module);
  REQUIRE(path);
  driver::CompileOptions compile;
  compile.model = *path;
  compile.cpu = cpu;
  compile.goals.opt_level = small ? firn::OptLevel::Os : firn::OptLevel::O3;
  compile.goals.text_bytes = options.text_bytes;
  return driver::compile_in_memory(compile, diagnostics);
}

std::string first_of(const DiagnosticList& diagnostics) {
  return diagnostics.empty() ? "" : diagnostics.messages()[0].message;
}

void expect_equal(const Literal& got, const Literal& want) {
  CHECK(got.type().to_string() == want.type().to_string());
  if (got.dtype() == DType::String) {
    CHECK(got.string_values() == want.string_values());
    return;
  }
  auto a = got.bytes(), b = want.bytes();
  CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
}

std::vector<std::string> cpus_here(const TextOptions& options) {
#if defined(__x86_64__)
  return options.cpus;
#else
  return {"native"};
#endif
}

} // namespace

LiteralRef strings(std::vector<int64_t> dims, std::vector<std::string> values) {
  return Literal::strings(std::move(dims), std::move(values));
}

void expect_like_evaluator(const std::string& text, const Literals& inputs, const TextOptions& options) {
  auto module = parse_module("model.hlo", text);
  if (!module) FAIL(module.error().message);
  auto want = evaluate(**module, inputs);
  if (!want) FAIL(want.error().message);
  for (const std::string& cpu : cpus_here(options))
    for (bool small : {false, true}) {
      INFO(cpu << (small ? " -Os" : " -O3"));
      DiagnosticList diagnostics;
      auto compilation = compile_text(text, cpu, small, options, diagnostics);
      if (!compilation) FAIL(first_of(diagnostics));
      GuardedHeap memory(/*guard_before=*/small);
      auto runner = driver::ObjectRunner::create(*compilation, &memory);
      if (!runner) FAIL(runner.error().message);
      for (std::byte before : {std::byte{0xff}, std::byte{0x5a}}) { // contents of the arena before the run
        memory.fill_arena(before);
        auto got = (*runner)->run(inputs);
        if (!got) FAIL(got.error().message);
        REQUIRE(got->size() == want->size());
        for (size_t i = 0; i < got->size(); ++i) expect_equal(*(*got)[i], *(*want)[i]);
        CHECK((*runner)->inputs_are(inputs));
      }
      CHECK(memory.is_intact());
    }
}

std::vector<std::string> run_errors(const std::string& text, const std::vector<Literals>& runs,
                                    const TextOptions& options) {
  DiagnosticList diagnostics;
  auto compilation = compile_text(text, cpus_here(options).back(), false, options, diagnostics);
  if (!compilation) FAIL(first_of(diagnostics));
  GuardedHeap memory(/*guard_before=*/false);
  auto runner = driver::ObjectRunner::create(*compilation, &memory);
  if (!runner) FAIL(runner.error().message);
  std::vector<std::string> errors;
  for (const Literals& inputs : runs) {
    auto got = (*runner)->run(inputs);
    CHECK(memory.is_intact());
    errors.push_back(got ? "" : got.error().message);
  }
  return errors;
}

std::string run_error(const std::string& text, const Literals& inputs, const TextOptions& options) {
  return run_errors(text, {inputs}, options)[0];
}

std::string compile_error(const std::string& text) {
  DiagnosticList diagnostics;
  CHECK_FALSE(compile_text(text, cpus_here({}).back(), false, {}, diagnostics));
  return first_of(diagnostics);
}

} // namespace firn::test
