// See object_case.h.
#include "tests/gradients/object_case.h"

#include "compiler/driver/object_runner.h"
#include "compiler/driver/tensor_error.h"
#include "tests/random/guarded_heap.h"

namespace firn::test {
namespace {

using Literals = std::vector<LiteralRef>;

std::unique_ptr<driver::Compilation> compiled(const std::string& text, const std::string& function,
                                              const ObjectSetting& setting) {
  driver::CompileOptions options;
  options.model = "gradients.hlo";
  options.model_bytes = std::as_bytes(std::span(text));
  options.entry = function;
  options.cpu = setting.cpu;
  options.goals.opt_level = setting.opt_level;
  options.goals.math = setting.math;
  options.goals.threads = 3;
  options.goals.share_all = true;
  DiagnosticList diagnostics;
  auto compilation = driver::compile_in_memory(options, diagnostics);
  if (!compilation) FAIL((diagnostics.empty() ? "no message" : diagnostics.messages()[0].message));
  return compilation;
}

void run_backwards(void*, size_t count, firn_task task, void* data) {
  while (count > 0) task(data, --count);
}

bool equal_bits(const Literals& a, const Literals& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const LiteralRef& x, const LiteralRef& y) {
    auto left = x->bytes(), right = y->bytes();
    return std::equal(left.begin(), left.end(), right.begin(), right.end());
  });
}

// The results of one thread, which are those of several.
Literals run_by_threads(driver::ObjectRunner& runner, GuardedHeap& memory, const Literals& inputs) {
  Literals alone;
  for (size_t threads : {1, 2, 3}) {
    firn_executor executor{sizeof(firn_executor), nullptr, threads, run_backwards, nullptr};
    runner.lend(&executor);
    memory.fill_arena(std::byte{0x5a});
    auto got = runner.run(inputs);
    if (!got) FAIL(got.error().message);
    if (threads == 1) alone = *got;
    CHECK(equal_bits(*got, alone));
  }
  CHECK(memory.is_intact());
  CHECK(runner.inputs_are(inputs));
  return alone;
}

void check_results(const Function& function, const Literals& inputs, const Literals& got) {
  auto want = evaluate_function(function, {inputs.begin(), inputs.end()});
  if (!want) FAIL(want.error().message);
  REQUIRE(got.size() == want->size());
  for (size_t i = 0; i < got.size(); ++i) {
    std::string why;
    double error = driver::tensor_error(*got[i], *(*want)[i].tensor, why);
    INFO("result " << i << ": " << why);
    CHECK(error <= 2e-5);
  }
}

} // namespace

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

void check_object(const std::string& text, const std::string& function, const ObjectSetting& setting) {
  INFO("@" << function << " for " << setting.cpu);
  auto compilation = compiled(text, function, setting);
  auto module = differentiated(text);
  std::mt19937_64 random(1);
  for (bool guard_before : {false, true}) {
    GuardedHeap memory(guard_before);
    auto runner = driver::ObjectRunner::create(*compilation, &memory);
    if (!runner) FAIL(runner.error().message);
    for (int draw = 0; draw < 3; ++draw) {
      Literals inputs = draw_inputs(*module, *module->find(function), random);
      check_results(*module->find(function), inputs, run_by_threads(**runner, memory, inputs));
    }
  }
}

Literals run_object(const std::string& text, const std::string& function, const Literals& inputs) {
  auto compilation = compiled(text, function, {});
  GuardedHeap memory(/*guard_before=*/false);
  auto runner = driver::ObjectRunner::create(*compilation, &memory);
  if (!runner) FAIL(runner.error().message);
  return run_by_threads(**runner, memory, inputs);
}

} // namespace firn::test
