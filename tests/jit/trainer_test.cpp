// Trainers: what a step changes, views of parameters, batches, files, and programs that misuse them.
#include "include/firn/jit_trainer.h"
#include "tests/jit/sample_models.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>

using namespace firn;
using namespace firn::test;

namespace {

// y = x * w with w: f32[3,2] and up to 8 rows.
const std::string kProduct = R"(
module @product {
  symbol n in [1, 8]
  func @main(%x: f32[n,3]) -> (f32[n,2]) inputs ["x"] outputs ["y"] {
    %w = constant [0.5, -0.5, 0.25, 0, 1, -1] : f32[3,2] loc("layer/w")
    %y = dot %x, %w {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : f32[n,2]
    return %y
  }
}
)";

jit::Model product(jit::Compiler& compiler, const std::string& optimizer = "sgd") {
  auto model = compiler.compile("product.hlo", kProduct.data(), kProduct.size(),
                                jit::ModelOptions().train("mse", optimizer));
  if (!model) FAIL(model.error().message());
  return model;
}

void fill(jit::Trainer& trainer, int seed) {
  int i = seed;
  for (float& each : trainer.input<float>("x")) each = static_cast<float>(i++ * 37 % 11 - 5) / 8;
  for (float& each : trainer.input<float>("labels")) each = static_cast<float>(i++ * 29 % 7 - 3) / 4;
}

std::vector<float> weights(jit::Trainer& trainer) {
  auto view = trainer.parameter<float>("layer/w");
  return {view.begin(), view.end()};
}

std::string scratch(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("firn-trainer-" + name)).string();
}

} // namespace

TEST_CASE("a step of SGD is w - rate * gradient") {
  jit::Compiler compiler;
  jit::Trainer trainer(product(compiler));
  if (!trainer) FAIL(trainer.error().message());
  REQUIRE(trainer.set_dim("n", 3));
  CHECK(trainer.input<float>("labels").dims() == std::vector<int64_t>{3, 2});
  fill(trainer, 1);
  const std::vector<float> before = weights(trainer);
  CHECK(before == std::vector<float>{0.5F, -0.5F, 0.25F, 0, 1, -1});
  auto x = trainer.input<float>("x"), labels = trainer.input<float>("labels");
  std::vector<double> gradient(6, 0);
  double loss = 0;
  for (size_t row = 0; row < 3; ++row)
    for (size_t column = 0; column < 2; ++column) {
      double error = -static_cast<double>(labels[row * 2 + column]);
      for (size_t i = 0; i < 3; ++i)
        error += static_cast<double>(x[row * 3 + i]) * static_cast<double>(before[i * 2 + column]);
      loss += error * error / 6;
      for (size_t i = 0; i < 3; ++i)
        gradient[i * 2 + column] += 2 * error * static_cast<double>(x[row * 3 + i]) / 6;
    }
  CHECK(trainer.evaluate());
  CHECK(trainer.loss() == Approx(loss).epsilon(1e-5));
  CHECK(weights(trainer) == before);
  CHECK(trainer.learning_rate() == 0);
  trainer.set_learning_rate(0.25);
  CHECK(trainer.step());
  CHECK(trainer.step_count() == 1);
  CHECK(trainer.loss() == Approx(loss).epsilon(1e-5));
  for (size_t i = 0; i < 6; ++i)
    CHECK(weights(trainer)[i] == Approx(static_cast<double>(before[i]) - 0.25 * gradient[i]).epsilon(1e-5));
  CHECK(trainer.infer()); // the inputs are still there
  auto y = trainer.output<float>("y");
  CHECK(y.dims() == std::vector<int64_t>{3, 2});
  CHECK(y[0] == Approx(static_cast<double>(x[0] * weights(trainer)[0] + x[1] * weights(trainer)[2] +
                                           x[2] * weights(trainer)[4])));
  trainer.reset();
  CHECK(weights(trainer) == before);
  CHECK(trainer.step_count() == 0);
}

TEST_CASE("a trainer has tensors of its own, and parameters may be written") {
  jit::Compiler compiler;
  jit::Model model = product(compiler);
  jit::Trainer one(model), other(model);
  fill(one, 3);
  one.set_learning_rate(0.5);
  CHECK(one.step());
  CHECK(weights(one) != weights(other));
  for (float& each : one.parameter<float>("layer/w")) each = 0;
  fill(one, 3);
  CHECK(one.infer());
  for (float each : one.output<float>("y")) CHECK(each == 0);
}

TEST_CASE("a loss that is not finite changes nothing") {
  jit::Compiler compiler;
  jit::Trainer trainer(product(compiler, "adam"));
  trainer.set_learning_rate(0.01);
  fill(trainer, 1);
  REQUIRE(trainer.step());
  const std::vector<float> before = weights(trainer);
  for (float broken : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    trainer.input<float>("x")[1] = broken;
    CHECK_FALSE(trainer.step());
    CHECK_FALSE(std::isfinite(trainer.loss()));
    CHECK(weights(trainer) == before);
    CHECK(trainer.step_count() == 1);
  }
  fill(trainer, 1);
  CHECK(trainer.step());
}

TEST_CASE("a trainer goes on from a file as if nothing had been between") {
  jit::Compiler compiler;
  jit::Model model = product(compiler, "adam");
  jit::Trainer whole(model), first(model), second(model);
  const std::string path = scratch("state.npz");
  auto train = [](jit::Trainer& trainer, int from, int to) {
    trainer.set_learning_rate(0.01);
    for (int i = from; i < to; ++i) {
      REQUIRE(trainer.set_dim("n", i % 8 + 1));
      fill(trainer, i);
      REQUIRE(trainer.step());
    }
  };
  train(whole, 0, 20);
  train(first, 0, 9);
  REQUIRE(first.save(path).kind() == FIRN_JIT_OK);
  REQUIRE(second.load(path).kind() == FIRN_JIT_OK);
  CHECK(second.step_count() == 9);
  train(second, 9, 20);
  CHECK(weights(whole) == weights(second));
  auto mean = whole.state<float>("layer/w.mean"), resumed = second.state<float>("layer/w.mean");
  CHECK(std::equal(mean.begin(), mean.end(), resumed.begin(), resumed.end()));
  CHECK(first.save(scratch("state.txt")).kind() == FIRN_JIT_USAGE);
  CHECK(first.save(scratch("state.onnx")).kind() != FIRN_JIT_OK);
  CHECK(first.load(scratch("nowhere.npz")).kind() == FIRN_JIT_USAGE);
  jit::Trainer plain(product(compiler, "momentum"));
  const std::vector<float> before = weights(plain);
  CHECK(plain.load(path).message().find("another optimizer") != std::string::npos);
  CHECK(weights(plain) == before);
  std::remove(path.c_str());
  std::remove((path + ".state").c_str());
}

TEST_CASE("trainers that are not, and dims that may not be") {
  jit::Compiler compiler;
  jit::Trainer none;
  CHECK_FALSE(none);
  CHECK_FALSE(none.step());
  CHECK_FALSE(none.input<float>("x"));
  CHECK(none.save("w.npz").kind() == FIRN_JIT_USAGE);
  jit::Trainer untrained(compiled(compiler, model_path("digits")));
  CHECK_FALSE(untrained);
  CHECK(untrained.error().message().find("--train") != std::string::npos);
  jit::Trainer trainer(product(compiler));
  CHECK_FALSE(trainer.set_dim("n", 9));
  CHECK_FALSE(trainer.set_dim("n", 0));
  CHECK_FALSE(trainer.set_dim("m", 1));
  CHECK(trainer.input<float>("x").dims() == std::vector<int64_t>{8, 3});
  CHECK_FALSE(trainer.input<double>("x"));
  CHECK_FALSE(trainer.parameter<float>("w"));
  const int64_t dims[2][2] = {{4, 3}, {4, 2}}, other[2] = {5, 2};
  const int64_t *fitting[] = {dims[0], dims[1]}, *open[] = {dims[0], nullptr}, *wrong[] = {dims[0], other};
  CHECK(firn_jit_trainer_fit(trainer.handle(), fitting, nullptr) == FIRN_JIT_OK);
  CHECK(trainer.input<float>("labels").dims() == std::vector<int64_t>{4, 2});
  CHECK(firn_jit_trainer_fit(trainer.handle(), open, nullptr) == FIRN_JIT_OK);
  CHECK(firn_jit_trainer_fit(trainer.handle(), wrong, nullptr) == FIRN_JIT_USAGE);
  CHECK(compiler.compile("p.hlo", kProduct.data(), kProduct.size(), jit::ModelOptions().train("zz", "sgd"))
            .error()
            .message()
            .find("no loss 'zz'") != std::string::npos);
}

TEST_CASE("a model with a training step is kept as others are") {
  const std::string folder = scratch("cache");
  std::filesystem::remove_all(folder);
  std::vector<float> results[2];
  for (auto& result : results) {
    jit::Compiler compiler(jit::Options().cache(folder));
    jit::Model model =
        compiled(compiler, model_path("digits"),
                 jit::ModelOptions().train("softmax_cross_entropy", "adam").trainable("dense.*"));
    jit::Trainer trainer(model);
    if (!trainer) FAIL(trainer.error().message());
    CHECK(trainer.parameters().size() == 2);
    trainer.set_learning_rate(0.01);
    for (int i = 0; i < 5; ++i) {
      trainer.input<int64_t>("labels")[0] = i;
      for (float& each : trainer.input<float>("image")) each = static_cast<float>(i) / 5;
      REQUIRE(trainer.step());
    }
    auto weight = trainer.parameter<float>("dense.weight");
    result.assign(weight.begin(), weight.end());
  }
  CHECK(results[0].size() > 1000);
  CHECK(results[0] == results[1]);
  std::filesystem::remove_all(folder);
}
