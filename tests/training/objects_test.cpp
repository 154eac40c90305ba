// Objects of training steps in f32: their states from run to run against the evaluator's.
#include "compiler/driver/object_runner.h"
#include "compiler/driver/tensor_error.h"
#include "compiler/driver/training_words.h"
#include "tests/random/guarded_heap.h"
#include "tests/training/training_case.h"

#include <algorithm>

namespace firn::test {
namespace {

constexpr int kSteps = 5;

// Rows are 5, or n or 2*n, as many as the step has.
struct Case {
  std::string words, rows = "5";
  bool norm = false;
  double dropout = 0;
  std::string adapters = {};
  int64_t micro_batch = 0;
  bool keeps = false; // gradients
  std::vector<std::string> trainable = {};
};

std::unique_ptr<Module> network_of(const Case& given) {
  auto module = parsed(perceptron_text("f32", given.rows + ",4", given.rows));
  if (given.dropout > 0) module = with_dropout(std::move(module), given.dropout);
  return given.norm ? with_norm(std::move(module)) : std::move(module);
}

training::TrainingOptions options_for(const Case& given) {
  auto options = options_of(given.words, given.trainable);
  if (!given.adapters.empty())
    if (Result read = driver::parse_adapters(given.adapters, options); !read) FAIL(read.error().message);
  options.micro_batch = given.micro_batch;
  if (given.keeps) options.kept_gradients = {"*"};
  return options;
}

int64_t rows_of(const Case& given, int64_t number) {
  if (given.rows == "5") return 5;
  return given.rows == "n" ? number * 3 % 8 + 1 : 2 * (number * 3 % 4 + 1);
}

void check_steps(const Case& given) {
  INFO(given.words << ", " << given.rows << " rows " << given.adapters << given.micro_batch);
  auto options = options_for(given);
  auto module = network_of(given);
  auto made = training::make_training_step(*module, options);
  REQUIRE(made);
  auto compilation = compiled(*module);
  Trainer trainer(network_of(given), options);
  const Function& step = trainer.function("step");
  Type target_type = trainer.function("evaluate").body().parameters()[1]->type();
  GuardedHeap memory(/*guard_before=*/false);
  auto runner = driver::ObjectRunner::create(*compilation, &memory);
  if (!runner) FAIL(runner.error().message);
  for (int64_t number = 0; number < kSteps; ++number) {
    const int64_t count = rows_of(given, number);
    target_type.dims[0] = Dim(count);
    LiteralRef x = batch_of(DType::F32, number, count);
    LiteralRef target = target_of(options, target_type, {count, 4}, number);
    auto results = (*runner)->run(arguments_of(step, trainer.states, {x, target, 0.01}, number == 0));
    if (!results) FAIL(results.error().message);
    auto others = trainer.step_results(x, target, static_cast<double>(0.01F));
    others[step.result_names[0]] = Literal::scalar(DType::F32, trainer.loss());
    for (size_t i = 0; i < results->size(); ++i) {
      const std::string& name = step.updates_state(i)
                                    ? step.parameter_names[static_cast<size_t>(step.aliases[i])]
                                    : step.result_names[i];
      std::string why;
      const auto& expected = step.updates_state(i) ? trainer.states : others;
      const double error = driver::tensor_error(*(*results)[i], *expected.at(name), why);
      INFO(name << " after step " << number << why);
      CHECK(error <= (i == 0 ? 1e-5 : 1e-4));
    }
  }
  CHECK(memory.is_intact());
}

TEST_CASE("objects of steps keep their states", "[objects]") {
  for (const char* optimizer : {"sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "rmsprop"})
    check_steps({"loss=softmax_cross_entropy,optimizer=" + std::string(optimizer)});
  for (const char* loss : {"mse", "l1", "huber", "bce_with_logits"})
    check_steps({"loss=" + std::string(loss) + ",optimizer=adam,clip_norm=0.5,weight_decay=0.01"});
  check_steps({"loss=softmax_cross_entropy,optimizer=sgd,labels=probabilities"});
  check_steps({"loss=softmax_cross_entropy,optimizer=sgd,class_weights=1:2:0.5:3,ignore_index=2"});
}

TEST_CASE("objects of steps take batches of any size", "[objects]") {
  check_steps({"loss=softmax_cross_entropy,optimizer=adam", "n"});
  check_steps({"loss=softmax_cross_entropy,optimizer=momentum,ignore_index=1,clip_norm=0.5", "n"});
  for (const char* loss : {"mse", "huber", "bce_with_logits"})
    check_steps({"loss=" + std::string(loss) + ",optimizer=adamw", "n"});
}

TEST_CASE("objects of steps normalise by the batch and drop", "[objects]") {
  const std::string words = "loss=softmax_cross_entropy,optimizer=adam";
  for (const char* rows : {"5", "n"}) {
    check_steps({.words = words + ",seed=9", .rows = rows, .dropout = 0.25});
    check_steps({.words = words + ",freeze_norms", .rows = rows, .norm = true});
  }
  // The norm takes away what is added in front of it, whose gradients are rounding. A batch of one row has no
  // deviation to divide by.
  const std::vector<std::string> trainable{"*weight", "norm.*", "fc2.bias"};
  check_steps({.words = words, .rows = "5", .norm = true, .keeps = true, .trainable = trainable});
  check_steps({.words = words, .rows = "2*n", .norm = true, .dropout = 0.5, .trainable = trainable});
}

TEST_CASE("objects of steps train adapters", "[objects]") {
  check_steps({.words = "loss=mse,optimizer=adam", .adapters = "rank=2,alpha=3:fc1.weight", .keeps = true});
  check_steps({.words = "loss=mse,optimizer=momentum", .rows = "n", .dropout = 0.25, .adapters = "rank=3:*"});
}

TEST_CASE("objects of steps add up slices of a batch", "[objects]") {
  const std::string words = "loss=softmax_cross_entropy,optimizer=adam,ignore_index=3,clip_norm=0.5";
  check_steps({.words = words, .rows = "n", .micro_batch = 1, .keeps = true});
  check_steps({.words = words, .rows = "2*n", .micro_batch = 2});
  check_steps(
      {.words = "loss=huber,optimizer=sgd", .rows = "2*n", .norm = true, .dropout = 0.25, .micro_batch = 2});
  check_steps({.words = "loss=mse,optimizer=adamw", .rows = "n", .adapters = "rank=2:fc*", .micro_batch = 1});
}

// A wide layer, so that what a batch computes is most of the arena.
std::string wide_text(const std::string& rows) {
  std::string text = R"(module @wide { symbol n in [1, 32]
  func @main(%x: f32[ROWS,8]) -> (f32[ROWS,4]) inputs ["x"] outputs ["y"] {
    %w1 = constant [W1] : f32[8,256] loc("w1")
    %1 = dot %x, %w1 {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : f32[ROWS,256]
    %2 = tanh %1 : f32[ROWS,256]
    %w2 = constant [W2] : f32[256,4] loc("w2")
    %3 = dot %2, %w2 {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : f32[ROWS,4]
    return %3
  }
})";
  auto numbers = [](int count) {
    std::string list = "0.5";
    for (int i = 1; i < count; ++i) list += i % 2 ? ", -0.25" : ", 0.5";
    return list;
  };
  text.replace(text.find("W1"), 2, numbers(8 * 256));
  text.replace(text.find("W2"), 2, numbers(256 * 4));
  for (size_t at = 0; (at = text.find("ROWS", at)) != std::string::npos;) text.replace(at, 4, rows);
  return text;
}

int64_t arena_bytes(const std::string& rows, int64_t micro_batch, const std::string& entry = "step") {
  auto module = parsed(wide_text(rows));
  auto options = options_of("loss=mse,optimizer=sgd", {});
  options.micro_batch = micro_batch;
  REQUIRE(training::make_training_step(*module, options));
  return compiled(*module, entry)->program.arena_bytes;
}

// Kernels of loops over elements that touch the larger tensor or what is kept for it.
int64_t large_updates(const std::string& optimizer) {
  auto module = parsed(wide_text("2"));
  REQUIRE(training::make_training_step(*module, options_of("loss=mse,optimizer=" + optimizer, {})));
  auto compilation = compiled(*module);
  const auto& kernels = compilation->program.kernels;
  return std::count_if(kernels.begin(), kernels.end(), [](const auto& each) {
    return each->name.starts_with("elementwise") && each->bytes >= 3 * 8 * 256 * 4;
  });
}

TEST_CASE("a check of the loss costs no kernels", "[objects]") {
  CHECK(large_updates("sgd") <= 1);
  CHECK(large_updates("momentum") <= 2);
  CHECK(large_updates("adam") == 3);
}

TEST_CASE("slices of a batch need a smaller arena", "[objects]") {
  const int64_t whole = arena_bytes("n", 0), slices = arena_bytes("n", 1);
  CHECK(whole > 32 * 256 * 4);
  CHECK(slices < whole - 20 * 256 * 4);
  CHECK(arena_bytes("n", 1, "evaluate") < arena_bytes("n", 0, "evaluate") - 20 * 256 * 4);
}

} // namespace
} // namespace firn::test
