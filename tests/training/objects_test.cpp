// Objects of training steps in f32: their states from run to run against the evaluator's.
#include "compiler/driver/object_runner.h"
#include "compiler/driver/tensor_error.h"
#include "compiler/graph/hlo_text.h"
#include "tests/random/guarded_heap.h"
#include "tests/training/training_case.h"

namespace firn::test {
namespace {

constexpr int kSteps = 5;

// The function @step of a training module, compiled by itself.
std::unique_ptr<driver::Compilation> compiled_step(const Module& module) {
  std::string text = print_module(module);
  driver::CompileOptions options;
  options.model = "step.hlo";
  options.model_bytes = std::as_bytes(std::span(text));
  options.entry = "step";
  DiagnosticList diagnostics;
  auto compilation = driver::compile_in_memory(options, diagnostics);
  if (!compilation) FAIL(diagnostics.messages()[0].message);
  return compilation;
}

// Arguments of @step; states are given in the first run alone.
std::vector<LiteralRef> arguments_of(const Trainer& trainer, const LiteralRef& x, const LiteralRef& target,
                                     int64_t number) {
  std::vector<LiteralRef> arguments;
  const Function& step = trainer.function("step");
  for (size_t i = 0; i < step.parameter_names.size(); ++i) {
    const std::string& name = step.parameter_names[i];
    const Type& type = step.body().parameters()[i]->type();
    auto state = trainer.states.find(name);
    if (name == "x")
      arguments.push_back(x);
    else if (name == "labels")
      arguments.push_back(target);
    else if (name == "learning_rate")
      arguments.push_back(Literal::scalar(DType::F32, 0.01));
    else if (number > 0)
      arguments.push_back(nullptr);
    else
      arguments.push_back(state != trainer.states.end()
                              ? state->second
                              : std::make_shared<Literal>(type.dtype, type.static_dims()));
  }
  return arguments;
}

// Rows are 5, or n, as many as the step has.
void check_steps(const std::string& words, const std::string& rows) {
  INFO(words << ", " << rows << " rows");
  auto options = options_of(words, {});
  auto module = parsed(perceptron_text("f32", rows + ",4", rows));
  auto made = training::make_training_step(*module, options);
  REQUIRE(made);
  auto compilation = compiled_step(*module);
  Trainer trainer(parsed(perceptron_text("f32", rows + ",4", rows)), options);
  const Function& step = trainer.function("step");
  Type target_type = trainer.function("evaluate").body().parameters()[1]->type();
  GuardedHeap memory(/*guard_before=*/false);
  auto runner = driver::ObjectRunner::create(*compilation, &memory);
  if (!runner) FAIL(runner.error().message);
  for (int64_t number = 0; number < kSteps; ++number) {
    const int64_t count = rows == "n" ? number * 3 % 8 + 1 : 5;
    target_type.dims[0] = Dim(count);
    LiteralRef x = batch_of(DType::F32, number, count);
    LiteralRef target = target_of(options, target_type, {count, 4}, number);
    auto results = (*runner)->run(arguments_of(trainer, x, target, number));
    if (!results) FAIL(results.error().message);
    double loss = trainer.run("step", x, target, static_cast<double>(0.01F));
    CHECK((*results)[0]->get_double(0) == Approx(loss).epsilon(1e-5));
    for (size_t i = 1; i < results->size(); ++i) {
      const std::string& name = step.parameter_names[static_cast<size_t>(step.aliases[i])];
      std::string why;
      INFO(name << " after step " << number << why);
      CHECK(driver::tensor_error(*(*results)[i], *trainer.states.at(name), why) <= 1e-4);
    }
  }
  CHECK(memory.is_intact());
}

TEST_CASE("objects of steps keep their states", "[objects]") {
  for (const char* optimizer : {"sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "rmsprop"})
    check_steps("loss=softmax_cross_entropy,optimizer=" + std::string(optimizer), "5");
  for (const char* loss : {"mse", "l1", "huber", "bce_with_logits"})
    check_steps("loss=" + std::string(loss) + ",optimizer=adam,clip_norm=0.5,weight_decay=0.01", "5");
  check_steps("loss=softmax_cross_entropy,optimizer=sgd,labels=probabilities", "5");
  check_steps("loss=softmax_cross_entropy,optimizer=sgd,class_weights=1:2:0.5:3,ignore_index=2", "5");
}

TEST_CASE("objects of steps take batches of any size", "[objects]") {
  check_steps("loss=softmax_cross_entropy,optimizer=adam", "n");
  check_steps("loss=softmax_cross_entropy,optimizer=momentum,ignore_index=1,clip_norm=0.5", "n");
  for (const char* loss : {"mse", "huber", "bce_with_logits"})
    check_steps("loss=" + std::string(loss) + ",optimizer=adamw", "n");
}

} // namespace
} // namespace firn::test
