// Training steps that compute more than a loss and its gradients: norms by the batch, dropouts, adapters,
// slices of the batch, gradients that are kept.
#include "compiler/driver/training_words.h"
#include "tests/training/training_case.h"

#include <cmath>

namespace firn::test {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kMse = "loss=mse,optimizer=sgd";

std::unique_ptr<Module> network(const std::string& rows = "5") {
  return parsed(perceptron_text("f64", rows + ",4", rows));
}

LiteralRef targets(int64_t step, int64_t rows = 5) {
  return drawn(Type::tensor_of(DType::F64, {rows, 4}), step, 29, 89, 32);
}

double largest_difference(const Literal& a, const Literal& b) {
  REQUIRE(a.dims() == b.dims());
  double largest = 0;
  for (int64_t i = 0; i < a.num_elements(); ++i)
    largest = std::max(largest, std::fabs(a.get_double(i) - b.get_double(i)));
  return largest;
}

bool are_equal(const Literal& a, const Literal& b) {
  return a.dims() == b.dims() &&
         std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

training::TrainingOptions with_adapters(const std::string& words, const Names& adapters,
                                        const Names& trainable = {}) {
  auto options = options_of(words, trainable);
  for (const std::string& each : adapters)
    if (Result read = driver::parse_adapters(each, options); !read) FAIL(read.error().message);
  return options;
}

Names states_of(const Trainer& trainer) {
  Names names = trainer.function("main").parameter_names;
  names.erase(names.begin());
  return names;
}

int64_t tape_bytes(const Trainer& trainer) {
  auto bytes = trainer.function("step").tape_bytes;
  REQUIRE(bytes);
  return *bytes;
}

std::string refusal_of(std::unique_ptr<Module> module, const training::TrainingOptions& options) {
  auto made = training::make_training_step(*module, options);
  return made ? "it is made" : made.error().message;
}

TEST_CASE("kept gradients are those of the loss") {
  auto options = options_of("loss=mse,optimizer=sgd,clip_norm=0.001,weight_decay=0.5", {});
  options.kept_gradients = {"fc2.*"};
  Trainer kept(network(), options), plain(network(), options_of(kMse, {}));
  auto before = plain.states;
  plain.run("step", batch_of(DType::F64, 0), targets(0), 0.5);
  auto results = kept.step_results(batch_of(DType::F64, 0), targets(0), 0.5);
  REQUIRE(results.size() == 2);
  for (const char* name : {"fc2.weight", "fc2.bias"}) {
    const Literal &gradient = *results.at("gradient " + std::string(name)), &old = *before.at(name);
    auto expected = std::make_shared<Literal>(old.dtype(), old.dims());
    for (int64_t i = 0; i < old.num_elements(); ++i)
      expected->set_double(i, (old.get_double(i) - plain.states.at(name)->get_double(i)) / 0.5);
    CHECK(largest_difference(gradient, *expected) < 1e-14);
    CHECK(largest_difference(gradient, *std::make_shared<Literal>(old.dtype(), old.dims())) > 0.01);
  }
  options.kept_gradients = {"*"};
  CHECK(Trainer(network(), options).step_results(batch_of(DType::F64, 0), targets(0), 0.5).size() == 4);
  options.kept_gradients = {"fc3"};
  CHECK(refusal_of(network(), options) == "'fc3' names no trained tensor whose gradient there is; there are "
                                          "'fc1.weight', 'fc1.bias', 'fc2.weight', 'fc2.bias'");
}

TEST_CASE("running statistics are states of norms that are trained") {
  auto states = [](const std::string& words, const Names& trainable) {
    return states_of(Trainer(with_norm(network()), options_of(words, trainable)));
  };
  const Names all{"fc1.weight", "fc1.bias", "norm.weight", "norm.bias",
                  "fc2.weight", "fc2.bias", "norm.mean",   "norm.variance"};
  CHECK(states(kMse, {}) == all);
  CHECK(states(std::string(kMse) + ",freeze_norms", {}) == Names(all.begin(), all.end() - 2));
  CHECK(states(kMse, {"fc*"}) == Names{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"});
  CHECK(states(kMse, {"norm.bias"}) == Names{"norm.bias", "norm.mean", "norm.variance"});
  CHECK(states(kMse, {"BIASES"}) == Names{"fc1.bias", "norm.bias", "fc2.bias", "norm.mean", "norm.variance"});
  CHECK(states(kMse, {"NORMS"}) == Names{"norm.weight", "norm.bias", "norm.mean", "norm.variance"});
  CHECK(refusal_of(with_norm(network()), options_of(kMse, {"norm.mean"})).find("which is not trained") !=
        std::string::npos);
}

TEST_CASE("inference and evaluation see the running statistics of the last step") {
  Trainer trainer(with_norm(network()), options_of(kMse, {}));
  CHECK(trainer.module().entries().size() == 3);
  LiteralRef x = batch_of(DType::F64, 0);
  for (int64_t i = 0; i < 3; ++i) trainer.run("step", x, targets(0), 0);
  auto moved = trainer.infer(x)[0];
  Trainer untrained(with_norm(network()), options_of(kMse, {}));
  CHECK(largest_difference(*moved, *untrained.infer(x)[0]) > 0.01);
  untrained.states.at("norm.mean") = trainer.states.at("norm.mean");
  untrained.states.at("norm.variance") = trainer.states.at("norm.variance");
  CHECK(are_equal(*moved, *untrained.infer(x)[0]));
  CHECK(trainer.run("evaluate", x, moved, 0) == 0);
}

TEST_CASE("a step whose loss is no number leaves running statistics alone") {
  Trainer trainer(with_norm(network()), options_of(kMse, {}));
  auto x = std::make_shared<Literal>(*batch_of(DType::F64, 1));
  x->set_double(3, std::nan(""));
  auto before = trainer.states;
  trainer.run("step", x, targets(0), 0.1);
  for (const auto& [name, value] : before) CHECK(are_equal(*value, *trainer.states.at(name)));
}

TEST_CASE("what is dropped follows from seed and step alone") {
  auto trainer_of = [](const std::string& words) {
    return Trainer(with_dropout(network(), 0.5), options_of(kMse + words, {}));
  };
  LiteralRef x = batch_of(DType::F64, 0), target = targets(0);
  Trainer one = trainer_of(""), two = trainer_of(",seed=0"), other = trainer_of(",seed=1"),
          off = trainer_of(",dropout=off");
  std::vector<double> losses;
  for (int64_t i = 0; i < 4; ++i) {
    losses.push_back(one.run("step", x, target, 0));
    CHECK(two.run("step", x, target, 0) == losses.back());
    CHECK(other.run("step", x, target, 0) != losses.back());
    CHECK(off.run("step", x, target, 0) == one.run("evaluate", x, target, 0));
  }
  CHECK(std::set<double>(losses.begin(), losses.end()).size() == 4);
  two.states.at("step_count") = Literal::of<int64_t>(DType::I64, {}, {2});
  CHECK(two.run("step", x, target, 0) == losses[2]);
  CHECK(are_equal(*one.infer(x)[0], *Trainer(network(), options_of(kMse, {})).infer(x)[0]));
}

TEST_CASE("a dropout drops its share and scales the rest") {
  std::string text = R"(module @m { func @main(%x: f64[64,128]) -> (f64[64,128]) inputs ["x"] outputs ["y"] {
    %w = constant [W] : f64[128] loc("w")
    %1 = broadcast_in_dim %w {dims = [1]} : f64[64,128]
    %2 = add %x, %1 : f64[64,128]
    %3 = tanh %2 : f64[64,128]
    %4 = abs %3 : f64[64,128]
    return %4 } })";
  std::string zeros = "0";
  for (int i = 1; i < 128; ++i) zeros += ", 0";
  text.replace(text.find("[W]"), 3, "[" + zeros + "]");
  for (double ratio : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    Trainer trainer(with_dropout(parsed(text), ratio), options_of("loss=l1,optimizer=sgd", {}));
    auto x = std::make_shared<Literal>(DType::F64, std::vector<int64_t>{64, 128});
    for (int64_t i = 0; i < x->num_elements(); ++i) x->set_double(i, 1);
    auto zero = std::make_shared<Literal>(DType::F64, std::vector<int64_t>{64, 128});
    double kept = trainer.run("step", x, zero, 0) / std::tanh(1.0); // the mean of what is kept, scaled
    INFO(ratio);
    CHECK(kept ==
          Approx(ratio < 1 ? 1 : 0).margin(4 * std::sqrt(ratio / (1 - std::min(ratio, 0.9)) / 8192) + 1e-12));
  }
}

TEST_CASE("adapters alone are trained, from the network as it was") {
  Trainer trainer(network(), with_adapters(kMse, {"rank=2:fc*.weight"}));
  CHECK(states_of(trainer) ==
        Names{"fc1.weight.lora_a", "fc1.weight.lora_b", "fc2.weight.lora_a", "fc2.weight.lora_b"});
  CHECK(trainer.states.at("fc1.weight.lora_a")->dims() == std::vector<int64_t>{8, 2});
  CHECK(trainer.states.at("fc1.weight.lora_b")->dims() == std::vector<int64_t>{2, 16});
  LiteralRef x = batch_of(DType::F64, 0);
  LiteralRef plain = Trainer(network(), options_of(kMse, {})).infer(x)[0];
  CHECK(are_equal(*trainer.infer(x)[0], *plain));
  double first = trainer.run("step", x, targets(0), 0.3), last = 0;
  for (int i = 0; i < 60; ++i) last = trainer.run("step", x, targets(0), 0.3);
  CHECK(last < first * 0.9);
  CHECK(largest_difference(*trainer.infer(x)[0], *plain) > 0.01);
  CHECK(states_of(Trainer(network(), with_adapters(kMse, {"rank=2:fc1.weight"}, {"*"}))) ==
        Names{"fc1.weight.lora_a", "fc1.weight.lora_b", "fc1.bias", "fc2.weight", "fc2.bias"});
}

TEST_CASE("adapters are refused by name") {
  auto refusal = [](const std::string& adapter, const Names& trainable = {}) {
    return refusal_of(network(), with_adapters(kMse, {adapter}, trainable));
  };
  CHECK(refusal("rank=2:fc1.bias") ==
        "'fc1.bias' names no weights that an adapter could stand beside: there are "
        "'fc1.weight', 'fc2.weight'");
  CHECK(refusal("rank=5:fc2.weight") ==
        "an adapter of rank 5 is larger than 'fc2.weight', which multiplies 16 numbers into 4");
  CHECK(refusal("rank=2:fc1.weight", {"fc1.weight"}).find("it has an adapter, and stays as it is") !=
        std::string::npos);
}

// A layer of 6 to 4 over quantised weights, a pointwise convolution behind it, and a dense layer at the end.
constexpr const char* kQuantised = R"(module @m {
  func @main(%x: f64[5,6]) -> (f64[5,3]) inputs ["x"] outputs ["y"] {
    %q = constant [1, -2, 3, 4, 5, -6, 7, 8, 9, -10, 11, 12, 1, 2, -3, 4, 5, 6, 7, -8, 9, 10, 11, 12] : i8[6,4] loc("q")
    %s = constant [0.0625] : f64[] loc("s")
    %1 = convert %q {to = f64} : f64[6,4]
    %2 = broadcast_in_dim %s {dims = []} : f64[6,4]
    %3 = multiply %1, %2 : f64[6,4]
    %4 = dot %x, %3 {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : f64[5,4]
    %5 = tanh %4 : f64[5,4]
    %6 = reshape %5 : f64[5,2,2,1]
    %f = constant [1, 2, -1, 0.5, 0.25, 1] : f64[3,2,1,1] loc("f")
    %7 = convolution %6, %f {groups = 1, window = 1x1 stride 2x1} : f64[5,3,1,1]
    %8 = reshape %7 : f64[5,3]
    return %8
  }
})";

TEST_CASE("adapters stand beside quantised weights and pointwise convolutions") {
  Trainer trainer(parsed(kQuantised), with_adapters(kMse, {"rank=1:q", "rank=2,alpha=1:f"}));
  CHECK(states_of(trainer) == Names{"q.lora_a", "q.lora_b", "f.lora_a", "f.lora_b"});
  auto x = drawn(Type::tensor_of(DType::F64, {5, 6}), 0, 53, 97, 64);
  auto target = drawn(Type::tensor_of(DType::F64, {5, 3}), 0, 29, 89, 32);
  double first = trainer.run("step", x, target, 0.2), last = 0;
  auto before = trainer.states;
  for (int i = 0; i < 20; ++i) last = trainer.run("step", x, target, 0.2);
  CHECK(last < first * 0.9);
  for (const auto& [name, value] : before) CHECK_FALSE(are_equal(*value, *trainer.states.at(name)));
}

TEST_CASE("frozen layers keep nothing for the way back") {
  Trainer all(network(), options_of(kMse, {})), last(network(), options_of(kMse, {"fc2.bias"})),
      adapted(network(), with_adapters(kMse, {"rank=1:fc2.weight"}));
  // tanh's results serve both layers' weights; without these the loss alone keeps its differences.
  CHECK(tape_bytes(last) < tape_bytes(all));
  auto products = [](const Trainer& trainer) {
    int64_t count = 0;
    for (const auto& each : trainer.function("step").body().instructions()) count += each->is(Opcode::Dot);
    return count;
  };
  CHECK(products(last) == 2);    // both forward
  CHECK(products(all) == 2 + 3); // two for the second layer's gradients, one for the first's
  CHECK(products(adapted) == 4 + 3);
}

// Options with slices of some rows.
training::TrainingOptions sliced(const std::string& words, int64_t rows, const Names& trainable = {}) {
  auto options = options_of(words, trainable);
  options.micro_batch = rows;
  return options;
}

using Form = std::unique_ptr<Module> (*)(std::unique_ptr<Module>);

// Losses, states and kept gradients of some steps over whole batches of 2 to 6 rows, and over slices.
void check_slices(const std::string& words, Form form = nullptr) {
  INFO(words);
  for (int64_t rows : {1, 2}) {
    const std::string extent = rows == 1 ? "n" : "2*n";
    auto made = [&] {
      auto module = network(extent);
      return form ? form(std::move(module)) : std::move(module);
    };
    auto whole_options = options_of(words, {}), slice_options = sliced(words, rows);
    whole_options.kept_gradients = slice_options.kept_gradients = {"*"};
    Trainer whole(made(), whole_options), slices(made(), slice_options);
    Type target = whole.function("evaluate").body().parameters()[1]->type();
    for (int64_t step = 0; step < 5; ++step) {
      const int64_t count = rows * (step * 2 % 3 + 1);
      target.dims[0] = Dim(count);
      LiteralRef x = batch_of(DType::F64, step, count),
                 y = target_of(whole_options, target, {count, 4}, step);
      auto expected = whole.step_results(x, y, 0.05), results = slices.step_results(x, y, 0.05);
      REQUIRE(results.size() == 4);
      for (const auto& [name, value] : expected) CHECK(largest_difference(*value, *results.at(name)) < 1e-12);
      for (const auto& [name, value] : whole.states)
        CHECK(largest_difference(*value, *slices.states.at(name)) < 1e-12);
      double loss = whole.run("evaluate", x, y, 0), other = slices.run("evaluate", x, y, 0);
      CHECK((std::isnan(loss) ? std::isnan(other) : other == Approx(loss).epsilon(1e-12)));
    }
  }
}

TEST_CASE("slices of a batch add up to it") {
  for (const char* loss : {"mse", "l1", "huber", "bce_with_logits"})
    check_slices("loss=" + std::string(loss) + ",optimizer=momentum,clip_norm=0.5");
  check_slices("loss=softmax_cross_entropy,optimizer=adam");
  check_slices("loss=softmax_cross_entropy,optimizer=sgd,labels=probabilities");
  check_slices("loss=softmax_cross_entropy,optimizer=sgd,ignore_index=2");
  check_slices("loss=softmax_cross_entropy,optimizer=sgd,class_weights=0.5:1:2:4,ignore_index=1");
}

TEST_CASE("slices of a batch drop what the batch drops") {
  check_slices("loss=mse,optimizer=sgd,seed=3",
               [](std::unique_ptr<Module> module) { return with_dropout(std::move(module), 0.5); });
}

TEST_CASE("norms go by the statistics of slices") {
  Trainer slices(with_norm(network("2*n")), sliced(kMse, 2)),
      one(with_norm(network("2*n")), options_of(kMse, {}));
  // Two equal slices are as one, but that they move the running statistics twice.
  auto twice = [](const LiteralRef& literal) {
    auto dims = literal->dims();
    const int64_t count = literal->num_elements();
    dims[0] *= 2;
    auto both = std::make_shared<Literal>(literal->dtype(), dims);
    for (int64_t i = 0; i < 2 * count; ++i) both->set_double(i, literal->get_double(i % count));
    return both;
  };
  LiteralRef x = batch_of(DType::F64, 0, 2), y = targets(0, 2);
  double loss = one.run("step", x, y, 0.1);
  CHECK(slices.run("step", twice(x), twice(y), 0.1) == Approx(loss).epsilon(1e-12));
  CHECK(largest_difference(*one.states.at("fc1.weight"), *slices.states.at("fc1.weight")) < 1e-12);
  Trainer still(with_norm(network("2*n")), options_of(kMse, {}));
  still.run("step", x, y, 0), still.run("step", x, y, 0);
  CHECK(largest_difference(*still.states.at("norm.mean"), *slices.states.at("norm.mean")) < 1e-12);
}

TEST_CASE("slices that do not fit are refused by name") {
  CHECK(refusal_of(network(), sliced(kMse, 1)) ==
        "the targets are f64[5,4]: micro-batches of 1 want a batch that varies by multiples of 1, as --dim "
        "batch=1..MAX says for a dim 'batch'");
  CHECK(refusal_of(network("n"), sliced(kMse, 4)).find("--dim batch=4..MAX:4 says") != std::string::npos);
  auto options = sliced("loss=output:cost,optimizer=sgd", 1);
  std::string text = R"(module @m { func @main(%x: f64[3]) -> (f64[]) outputs ["cost"] {
    %w = constant [1, 2, 3] : f64[3] loc("w")
    %1 = multiply %x, %w : f64[3]
    %2 = constant [0] : f64[]
    %4 = reduce %1, %2 {dims = [0]} region(%a: f64[], %b: f64[]) { %s = add %a, %b : f64[] return %s } : f64[]
    return %4 } })";
  CHECK(refusal_of(parsed(text), options).starts_with("micro-batches want a loss that Firn knows"));
}

} // namespace
} // namespace firn::test
