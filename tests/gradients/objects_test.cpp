// Gradients as compiled code in this process, in f32, against the evaluator, between guard pages.
#include "compiler/driver/object_runner.h"
#include "compiler/driver/tensor_error.h"
#include "tests/gradients/gradient_case.h"
#include "tests/random/guarded_heap.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace firn::test {
namespace {

using Literals = std::vector<LiteralRef>;

// The text of a file of functions, with f32 in place of f64.
std::string text_in_f32(const std::string& name) {
  std::ifstream file(std::string(FIRN_GRADIENTS_DIR) + "/" + name, std::ios::binary);
  REQUIRE(file);
  std::stringstream content;
  content << file.rdbuf();
  std::string text = content.str();
  for (size_t at; (at = text.find("f64")) != std::string::npos;) text.replace(at, 3, "f32");
  return text;
}

struct Setting {
  std::string cpu;
  OptLevel opt_level = OptLevel::O3;
  Math math = Math::Default;
};

std::unique_ptr<driver::Compilation> compiled(const std::string& text, const std::string& entry,
                                              const Setting& setting, DiagnosticList& diagnostics) {
  driver::CompileOptions options;
  options.model = "gradients.hlo";
  options.model_bytes = std::as_bytes(std::span(text));
  options.entry = entry;
  options.cpu = setting.cpu;
  options.goals.opt_level = setting.opt_level;
  options.goals.math = setting.math;
  options.goals.threads = 3;
  options.goals.share_all = true;
  return driver::compile_in_memory(options, diagnostics);
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

// Runs an object by one thread and by several on values of its inputs.
void check_run(driver::ObjectRunner& runner, GuardedHeap& memory, const Function& gradient,
               const Literals& inputs, const Setting& setting) {
  auto want = evaluate_function(gradient, {inputs.begin(), inputs.end()});
  if (!want) FAIL(want.error().message);
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
  REQUIRE(alone.size() == want->size());
  for (size_t i = 0; i < alone.size(); ++i) {
    std::string why;
    double error = driver::tensor_error(*alone[i], *(*want)[i].tensor, why);
    INFO("result " << i << " for " << setting.cpu << ": " << why);
    CHECK(error <= 2e-5);
  }
}

// Compiles a gradient for one CPU and runs it at some extents. The reason if it is refused.
std::string check_object(const Module& module, const std::string& text, const std::string& name,
                         const Setting& setting) {
  DiagnosticList diagnostics;
  auto compilation = compiled(text, name, setting, diagnostics);
  if (!compilation) return diagnostics.empty() ? "no message" : diagnostics.messages()[0].message;
  const Function& gradient = *module.find(name);
  std::mt19937_64 random(1);
  for (bool guard_before : {false, true}) {
    GuardedHeap memory(guard_before);
    auto runner = driver::ObjectRunner::create(*compilation, &memory);
    if (!runner) FAIL(runner.error().message);
    for (int draw = 0; draw < 3; ++draw)
      check_run(**runner, memory, gradient, draw_inputs(module, gradient, random), setting);
  }
  return "";
}

// Checks all gradients of a file of functions: of the first order for several CPUs and goals.
void check_file(const std::string& file) {
  static const Setting kSettings[] = {{"x86-64-v3"}, {"native"}, {"x86-64-v3", OptLevel::Os, Math::Strict}};
  std::string text = text_in_f32(file);
  auto functions = parse_module(file, text);
  if (!functions) FAIL(functions.error().message);
  for (const auto& function : (*functions)->functions()) {
    if (function->name().starts_with("helper")) continue;
    auto module = parse_module(file, text);
    std::vector<Declared> all = declare_both_orders(**module, function->name());
    std::string declared = print_module(**module);
    auto derived = differentiated(declared);
    for (const Declared& each : all) {
      bool is_first_order = each.primal == function->name();
      for (const Setting& setting : std::span(kSettings, is_first_order ? std::size(kSettings) : 1)) {
        INFO(file << ": @" << each.gradient);
        CHECK(check_object(*derived, declared, each.gradient, setting) == "");
      }
    }
  }
}

TEST_CASE("objects of contractions' gradients", "[objects]") {
  check_file("contractions.hlo");
}

TEST_CASE("objects of gradients through calls, branches and loops", "[objects]") {
  check_file("control.hlo");
}

TEST_CASE("objects of gathers' and scatters' gradients", "[objects]") {
  check_file("gather.hlo");
}

TEST_CASE("objects of movements' gradients", "[objects]") {
  check_file("movement.hlo");
}

TEST_CASE("objects of reductions' gradients", "[objects]") {
  check_file("reductions.hlo");
}

} // namespace
} // namespace firn::test
