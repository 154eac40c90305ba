// Objects of training steps and gradients within a budget of memory: the bits of those without, in less of
// it.
#include "compiler/driver/object_runner.h"
#include "compiler/graph/hlo_text.h"
#include "tests/random/guarded_heap.h"
#include "tests/training/training_case.h"

namespace firn::test {
namespace {

constexpr int kSteps = 3;

using Compiled = std::unique_ptr<driver::Compilation>;

driver::CompileOptions options_for(const std::string& text, const std::string& entry,
                                   std::optional<int64_t> budget) {
  driver::CompileOptions options;
  options.model = "network.hlo";
  options.model_bytes = std::as_bytes(std::span(text));
  options.entry = entry;
  options.memory_budget = budget;
  return options;
}

Compiled compiled(const driver::CompileOptions& options) {
  DiagnosticList diagnostics;
  Compiled compilation = driver::compile_in_memory(options, diagnostics);
  if (!compilation) FAIL(diagnostics.messages()[0].message);
  return compilation;
}

// Drawn inputs, and states in the first run alone; labels are classes below 4.
std::vector<LiteralRef> arguments_of(const Function& function, int64_t step) {
  std::vector<LiteralRef> arguments;
  for (size_t i = 0; i < function.body().parameters().size(); ++i) {
    const Type& type = function.body().parameters()[i]->type();
    const std::string& name = function.parameter_names[i];
    if (function.is_state(i) && step > 0)
      arguments.push_back(nullptr);
    else if (type.dtype != DType::F32)
      arguments.push_back(std::make_shared<Literal>(type.dtype, type.static_dims()));
    else if (name == "learning_rate")
      arguments.push_back(Literal::scalar(DType::F32, 0.05));
    else
      arguments.push_back(drawn(type, step + static_cast<int64_t>(i), 29, 97, 64));
    // Adam divides by the root of it, which starts from zeros.
    if (name.ends_with(".square") && step == 0)
      arguments.back() = std::make_shared<Literal>(type.dtype, type.static_dims());
  }
  return arguments;
}

void check_equal_runs(driver::Compilation& plain, driver::Compilation& within) {
  GuardedHeap first(/*guard_before=*/false), second(/*guard_before=*/false);
  auto expected = driver::ObjectRunner::create(plain, &first);
  auto found = driver::ObjectRunner::create(within, &second);
  if (!expected) FAIL(expected.error().message);
  if (!found) FAIL(found.error().message);
  for (int64_t step = 0; step < kSteps; ++step) {
    auto wanted = (*expected)->run(arguments_of(plain.module->main(), step));
    auto given = (*found)->run(arguments_of(within.module->main(), step));
    if (!wanted) FAIL(wanted.error().message);
    if (!given) FAIL(given.error().message);
    for (size_t i = 0; i < wanted->size(); ++i) {
      INFO("result " << i << " of step " << step);
      const auto bytes = (*wanted)[i]->bytes(), same = (*given)[i]->bytes();
      CHECK(std::equal(bytes.begin(), bytes.end(), same.begin(), same.end()));
    }
  }
  CHECK((first.is_intact() && second.is_intact()));
}

// The bytes that parameters and states take, which no budget changes.
int64_t fixed_bytes(const driver::Compilation& compilation) {
  int64_t bytes = 0;
  for (const Instruction* each : compilation.module->main().body().parameters())
    bytes += (static_cast<int64_t>(each->type().physical_byte_size()) + 63) / 64 * 64;
  return bytes;
}

size_t count_kernels(const driver::Compilation& compilation) {
  return compilation.module->main().body().instructions().size();
}

// `part`: of the activations that the arena of the object without a budget has, in percent.
void check_within(const std::string& text, const std::string& entry, int64_t part) {
  INFO(entry << " in " << part << " %");
  Compiled plain = compiled(options_for(text, entry, std::nullopt));
  const int64_t fixed = fixed_bytes(*plain), arena = plain->program.arena_bytes;
  const int64_t budget = fixed + (arena - fixed) * part / 100;
  Compiled within = compiled(options_for(text, entry, budget));
  CHECK(within->program.arena_bytes <= budget);
  CHECK(within->program.kernels.size() <= plain->program.kernels.size() + 2);
  check_equal_runs(*plain, *within);
}

void check_unchanged(const std::string& text, const std::string& entry) {
  Compiled plain = compiled(options_for(text, entry, std::nullopt));
  Compiled within = compiled(options_for(text, entry, plain->program.arena_bytes));
  CHECK(count_kernels(*within) == count_kernels(*plain));
  CHECK(print_module(*within->module) == print_module(*plain->module));
}

void check_refused(const std::string& text, const std::string& entry) {
  DiagnosticList diagnostics;
  CHECK_FALSE(driver::compile_in_memory(options_for(text, entry, 1000), diagnostics));
  REQUIRE(diagnostics.count() == 1);
  const std::string& message = diagnostics.messages()[0].message;
  INFO(message);
  CHECK(message.find("the arena of @" + entry) != std::string::npos);
  CHECK(message.find("exceeds the budget of 1,000 B by") != std::string::npos);
  CHECK(message.find("; largest: ") != std::string::npos);
}

// @step of the module, whose @main is the network.
std::string step_text(const std::string& text, const std::string& words) {
  auto module = parsed(text);
  REQUIRE(training::make_training_step(*module, options_of(words, {})));
  return print_module(*module);
}

std::string weights(const std::string& name, const std::string& dims, int64_t count, int64_t seed) {
  std::string text = "    %" + name + " = constant [";
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::to_string(static_cast<double>((i * 37 + seed * 11) % 101 - 50) / 320);
  return text + "] : f32[" + dims + "] loc(\"" + name + "\")\n";
}

// Dense layers of 24 with a sine behind each, which the way back wants again.
std::string perceptron(int depth) {
  std::string text = "module @deep {\n  func @main(%x: f32[19,24]) -> (f32[19,24]) inputs [\"x\"] outputs "
                     "[\"y\"] {\n",
              from = "%x";
  for (int i = 0; i < depth; ++i) {
    const std::string n = std::to_string(i);
    text += weights("w" + n, "24,24", 24 * 24, i);
    text += "    %d" + n + " = dot " + from + ", %w" + n +
            " {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : f32[19,24]\n    %s" +
            n + " = sine %d" + n + " : f32[19,24]\n";
    from = "%s" + n;
  }
  return text + "    return " + from + "\n  }\n}";
}

// Residual blocks of two convolutions each, over maps of 11 x 13, and a mean over positions.
std::string residual(int blocks) {
  std::string text =
                  "module @residual {\n  func @main(%x: f32[3,8,11,13]) -> (f32[3,8]) inputs [\"x\"] outputs "
                  "[\"y\"] {\n    %zero = constant [0] : f32[]\n    %few = constant [0.00699] : f32[]\n"
                  "    %zeros = broadcast_in_dim %zero {dims = []} : f32[3,8,11,13]\n",
              from = "%x";
  auto convolution = [&](const std::string& n, const std::string& of, int seed) {
    text += weights("w" + n, "8,8,3,3", 8 * 8 * 9, seed);
    text += "    %c" + n + " = convolution " + of + ", %w" + n +
            " {groups = 1, window = 3x3 pad 1_1x1_1} : f32[3,8,11,13]\n";
  };
  for (int i = 0; i < blocks; ++i) {
    const std::string n = std::to_string(i);
    convolution(n + "a", from, 2 * i);
    text += "    %r" + n + " = maximum %c" + n + "a, %zeros : f32[3,8,11,13]\n";
    convolution(n + "b", "%r" + n, 2 * i + 1);
    text += "    %a" + n + " = add %c" + n + "b, " + from + " : f32[3,8,11,13]\n    %o" + n +
            " = maximum %a" + n + ", %zeros : f32[3,8,11,13]\n";
    from = "%o" + n;
  }
  return text + "    %sum = reduce " + from +
         ", %zero {dims = [2, 3]} region(%p: f32[], %q: f32[]) {\n      %t = add %p, %q : f32[]\n      "
         "return %t\n"
         "    } : f32[3,8]\n    %part = broadcast_in_dim %few {dims = []} : f32[3,8]\n"
         "    %y = multiply %sum, %part : f32[3,8]\n    return %y\n  }\n}";
}

// Layers of one head of attention and a dense layer, with what they add to, over 21 tokens of 16.
std::string encoder(int layers) {
  const std::string dense = " {lhs_batch = [], lhs_contract = [2], rhs_batch = [], rhs_contract = [0]} : ";
  std::string
      text = "module @encoder {\n  func @main(%x: f32[2,21,16]) -> (f32[2,21,16]) inputs [\"x\"] outputs "
             "[\"y\"] {\n    %zero = constant [0] : f32[]\n",
      from = "%x";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    for (const char* name : {"q", "k", "v"}) {
      text += weights(name + n + "w", "16,16", 256, 5 * i + name[0]);
      text += "    %" + (name + n) + " = dot " + from + ", %" + name + n + "w" + dense + "f32[2,21,16]\n";
    }
    text +=
        "    %s" + n + " = dot %q" + n + ", %k" + n +
        " {lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [2]} : f32[2,21,21]\n    %e" +
        n + " = exponential %s" + n + " : f32[2,21,21]\n    %t" + n + " = reduce %e" + n +
        ", %zero {dims = [2]} region(%p" + n + ": f32[], %r" + n + ": f32[]) {\n      %u" + n + " = add %p" +
        n + ", %r" + n + " : f32[]\n      return %u" + n + "\n    } : f32[2,21]\n    %b" + n +
        " = broadcast_in_dim %t" + n + " {dims = [0, 1]} : f32[2,21,21]\n    %m" + n + " = divide %e" + n +
        ", %b" + n + " : f32[2,21,21]\n    %o" + n + " = dot %m" + n + ", %v" + n +
        " {lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [1]} : f32[2,21,16]\n    %h" +
        n + " = add %o" + n + ", " + from + " : f32[2,21,16]\n";
    text += weights("f" + n + "w", "16,48", 768, i) + weights("g" + n + "w", "48,16", 768, i + 3);
    text += "    %i" + n + " = dot %h" + n + ", %f" + n + "w" + dense + "f32[2,21,48]\n    %j" + n +
            " = tanh %i" + n + " : f32[2,21,48]\n    %l" + n + " = dot %j" + n + ", %g" + n + "w" + dense +
            "f32[2,21,16]\n    %z" + n + " = add %l" + n + ", %h" + n + " : f32[2,21,16]\n";
    from = "%z" + n;
  }
  return text + "    return " + from + "\n  }\n}";
}

// A chain whose gradient with respect to its input is an entry function.
constexpr const char* kGradient = R"(module @gradient {
  func @main(%x: f32[37,40]) -> (f32[]) {
    %zero = constant [0] : f32[]
    %1 = exponential %x : f32[37,40]
    %p = dot %1, %x {lhs_batch = [], lhs_contract = [0], rhs_batch = [], rhs_contract = [0]} : f32[40,40]
    %2 = sine %p : f32[40,40]
    %q = dot %2, %p {lhs_batch = [], lhs_contract = [0], rhs_batch = [], rhs_contract = [0]} : f32[40,40]
    %3 = sine %q : f32[40,40]
    %r = dot %3, %q {lhs_batch = [], lhs_contract = [0], rhs_batch = [], rhs_contract = [0]} : f32[40,40]
    %4 = sine %r : f32[40,40]
    %5 = dot %4, %r {lhs_batch = [], lhs_contract = [0], rhs_batch = [], rhs_contract = [0]} : f32[40,40]
    %s = reduce %5, %zero {dims = [0, 1]} region(%a: f32[], %b: f32[]) {
      %t = add %a, %b : f32[]
      return %t
    } : f32[]
    return %s
  }
  func @g = gradient @main wrt x
})";

TEST_CASE("steps within a budget compute the same bits", "[objects]") {
  const std::string adam = "loss=mse,optimizer=adam";
  for (int64_t part : {85, 70, 60}) {
    check_within(step_text(perceptron(12), adam), "step", part);
    check_within(step_text(residual(5), adam), "step", part);
    check_within(step_text(encoder(3), "loss=mse,optimizer=momentum"), "step", part);
  }
  check_within(step_text(perceptron(24), "loss=mse,optimizer=sgd"), "step", 45);
  check_within(step_text(residual(9), "loss=mse,optimizer=sgd"), "step", 50);
}

TEST_CASE("gradients within a budget compute the same bits", "[objects]") {
  check_within(kGradient, "g", 80);
}

TEST_CASE("a budget that holds already changes nothing", "[objects]") {
  check_unchanged(step_text(perceptron(6), "loss=mse,optimizer=adam"), "step");
  check_unchanged(kGradient, "g");
}

TEST_CASE("a budget that cannot be met names what takes most", "[objects]") {
  check_refused(step_text(perceptron(6), "loss=mse,optimizer=adam"), "step");
  check_refused(kGradient, "g");
}

} // namespace
} // namespace firn::test
