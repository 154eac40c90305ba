// The promises of training modules beside numbers: which tensors are trained, which states change when, and
// what is refused.
#include "compiler/training/functions.h"
#include "tests/training/training_case.h"

#include <cmath>

namespace firn::test {
namespace {

constexpr const char* kAdam = "loss=softmax_cross_entropy,optimizer=adam";

Trainer trainer_of(const std::string& words, const std::vector<std::string>& trainable = {}) {
  return Trainer(parsed(perceptron_text("f64", "5,4")), options_of(words, trainable));
}

LiteralRef labels(const std::vector<int64_t>& classes) {
  return Literal::of<int64_t>(DType::I64, {static_cast<int64_t>(classes.size())}, classes);
}

bool is_equal(const Literal& a, const Literal& b) {
  return std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

bool are_equal(const std::map<std::string, LiteralRef>& a, const std::map<std::string, LiteralRef>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& left, const auto& right) {
    return left.first == right.first && is_equal(*left.second, *right.second);
  });
}

TEST_CASE("a step updates every tensor, its moments and the count") {
  Trainer trainer = trainer_of(kAdam);
  const Function& step = trainer.function("step");
  CHECK(step.parameter_names ==
        std::vector<std::string>{"x", "labels", "learning_rate", "fc1.weight", "fc1.bias", "fc2.weight",
                                 "fc2.bias", "step_count", "fc1.weight.mean", "fc1.weight.square",
                                 "fc1.bias.mean", "fc1.bias.square", "fc2.weight.mean", "fc2.weight.square",
                                 "fc2.bias.mean", "fc2.bias.square"});
  CHECK(trainer.module().entries().size() == 3);
  auto before = trainer.states;
  double first = trainer.run("step", batch_of(DType::F64, 0), labels({0, 1, 2, 3, 0}), 0.01);
  for (const auto& [name, value] : before) CHECK_FALSE(is_equal(*value, *trainer.states.at(name)));
  for (int i = 0; i < 50; ++i) trainer.run("step", batch_of(DType::F64, 0), labels({0, 1, 2, 3, 0}), 0.01);
  CHECK(trainer.run("evaluate", batch_of(DType::F64, 0), labels({0, 1, 2, 3, 0}), 0) < first / 2);
  CHECK(trainer.states.at("step_count")->get_int(0) == 51);
}

TEST_CASE("evaluation and inference change nothing, and see what was trained") {
  Trainer trainer = trainer_of("loss=mse,optimizer=sgd");
  LiteralRef x = batch_of(DType::F64, 0);
  LiteralRef old = trainer.infer(x)[0];
  CHECK(trainer.run("evaluate", x, old, 0) == 0);
  CHECK(trainer.run("step", x, drawn(old->type(), 0, 29, 89, 32), 0.1) > 0);
  auto states = trainer.states;
  CHECK(trainer.run("evaluate", x, old, 0) > 0);
  CHECK(are_equal(states, trainer.states));
  LiteralRef trained = trainer.infer(x)[0];
  CHECK_FALSE(is_equal(*old, *trained));
  CHECK(trainer.run("evaluate", x, trained, 0) == 0);
}

TEST_CASE("a step whose loss is no number changes nothing") {
  Trainer trainer = trainer_of(kAdam);
  trainer.run("step", batch_of(DType::F64, 0), labels({0, 1, 2, 3, 0}), 0.01);
  for (double broken : {std::nan(""), HUGE_VAL}) {
    auto states = trainer.states;
    auto x = std::make_shared<Literal>(*batch_of(DType::F64, 1));
    x->set_double(3, broken);
    double loss = trainer.run("step", x, labels({0, 1, 2, 3, 0}), 0.01);
    if (std::isnan(broken)) CHECK(std::isnan(loss));
    CHECK(std::isfinite(loss) != are_equal(states, trainer.states));
  }
  auto states = trainer.states;
  CHECK(
      std::isnan(trainer.run("step", batch_of(DType::F64, 1), labels({-100, -100, -100, -100, -100}), 0.01)));
  CHECK(are_equal(states, trainer.states));
}

TEST_CASE("other tensors than the trained ones stay constants") {
  Trainer trainer = trainer_of(kAdam, {"fc2.*"});
  CHECK(trainer.function("main").parameter_names == std::vector<std::string>{"x", "fc2.weight", "fc2.bias"});
  std::set<std::string> constants;
  for (const auto& instruction : trainer.function("step").body().instructions())
    if (instruction->is(Opcode::Constant)) constants.insert(instruction->location());
  CHECK(constants.count("fc1.weight") == 1);
  CHECK(constants.count("fc2.weight") == 0);
}

std::vector<std::string> trained_by(const std::vector<std::string>& patterns) {
  Trainer trainer = trainer_of(kAdam, patterns);
  std::vector<std::string> names = trainer.function("main").parameter_names;
  names.erase(names.begin());
  return names;
}

TEST_CASE("tensors are chosen by pattern, kind and place") {
  using Names = std::vector<std::string>;
  CHECK(trained_by({"*.bias"}) == Names{"fc1.bias", "fc2.bias"});
  CHECK(trained_by({"BIASES"}) == Names{"fc1.bias", "fc2.bias"});
  CHECK(trained_by({"LAST=1"}) == Names{"fc2.weight", "fc2.bias"});
  CHECK(trained_by({"LAST=2"}).size() == 4);
  CHECK(trained_by({"LAST=1", "fc1.bias"}) == Names{"fc1.bias", "fc2.weight", "fc2.bias"});
  CHECK(trained_by({"f*1*t"}) == Names{"fc1.weight"});
}

TEST_CASE("a loss that the model computes needs no labels") {
  std::string text = R"(module @m {
  func @main(%x: f64[3]) -> (f64[3], f64[]) outputs ["y", "cost"] {
    %w = constant [1, 2, 3] : f64[3] loc("w")
    %1 = multiply %x, %w : f64[3]
    %2 = constant [0] : f64[]
    %3 = multiply %1, %1 : f64[3]
    %4 = reduce %3, %2 {dims = [0]} region(%a: f64[], %b: f64[]) { %s = add %a, %b : f64[] return %s } : f64[]
    return %1, %4
  }
})";
  Trainer trainer(parsed(text), options_of("loss=output:cost,optimizer=sgd", {}));
  CHECK(trainer.function("step").parameter_names ==
        std::vector<std::string>{"x", "learning_rate", "w", "step_count"});
  auto x = Literal::of(DType::F64, {3}, std::vector<double>{1, 1, 2});
  CHECK(trainer.run("step", x, nullptr, 0.125) == 1 + 4 + 36);
  CHECK(trainer.states.at("w")->get_double(2) == 3 - 0.125 * 2 * 3 * 4);
}

TEST_CASE("losses of logits look through a last activation") {
  std::string text = perceptron_text("f64", "5,4");
  text.replace(text.find("return %8"), 9, "%9 = logistic %8 : f64[5,4] return %9");
  auto options = options_of("loss=bce_with_logits,optimizer=sgd", {});
  Trainer plain = trainer_of("loss=bce_with_logits,optimizer=sgd"), activated(parsed(text), options);
  Type type = Type::tensor_of(DType::F64, {5, 4});
  LiteralRef x = batch_of(DType::F64, 0), target = target_of(options, type, {5, 4}, 0);
  CHECK(plain.run("step", x, target, 0.1) == activated.run("step", x, target, 0.1));
}

TEST_CASE("a user's function takes the place of one of Firn") {
  std::string lion = R"(module @own {
  func @sgd(%parameter: f32[], %gradient: f32[], %rate: f64[], %step: i64[], %steps: f32[]) -> (f32[], f32[]) {
    %scale = constant [2] : f64[]
    %1 = convert %scale {to = f32} : f32[]
    %2 = sign %gradient : f32[]
    %3 = multiply %2, %1 : f32[]
    %4 = subtract %parameter, %3 : f32[]
    %5 = constant [1] : f32[]
    %6 = add %steps, %5 : f32[]
    return %4, %6
  }
})";
  auto functions = training::parse_functions("lion.hlo", lion);
  REQUIRE(functions);
  auto options = options_of("loss=mse,optimizer=sgd,scale=0.25", {"fc2.bias"});
  options.functions = std::move(*functions);
  Trainer trainer(parsed(perceptron_text("f64", "5,4")), options);
  double before = trainer.states.at("fc2.bias")->get_double(0);
  trainer.run("step", batch_of(DType::F64, 0), drawn(Type::tensor_of(DType::F64, {5, 4}), 0, 29, 89, 32), 1);
  CHECK(std::fabs(trainer.states.at("fc2.bias")->get_double(0) - before) == 0.25);
  CHECK(trainer.states.at("fc2.bias.steps")->get_double(3) == 1);
}

std::string refusal_of(const std::string& text, const training::TrainingOptions& options) {
  auto module = parsed(text);
  auto made = training::make_training_step(*module, options);
  return made ? "it is made" : made.error().message;
}

std::string refusal(const std::string& words, const std::vector<std::string>& trainable = {}) {
  return refusal_of(perceptron_text("f32", "5,4"), options_of(words, trainable));
}

TEST_CASE("what does not fit is refused by name") {
  CHECK(refusal("loss=mse,optimizer=lion") ==
        "there is no optimizer 'lion', but there are sgd, momentum, nesterov, adam, adamw, adagrad, rmsprop, "
        "onnx_adagrad, onnx_adam, onnx_momentum, onnx_nesterov");
  CHECK(refusal("loss=hinge,optimizer=sgd").starts_with("there is no loss 'hinge', but there are mse, l1"));
  CHECK(refusal("loss=output:z,optimizer=sgd") == "the model has no output 'z'; it has 'y'");
  CHECK(refusal("loss=mse,prediction=z,optimizer=sgd") == "the model has no output 'z'; it has 'y'");
  CHECK(refusal("loss=output:y,optimizer=sgd") == "output 'y' is f32[5,4]: a loss is a scalar of f32 or f64");
  CHECK(refusal("loss=mse,optimizer=sgd,beta1=0.5") ==
        "neither the loss nor the optimizer 'sgd' has an option 'beta1'; there are 'weight_decay'");
  CHECK(refusal("loss=softmax_cross_entropy,optimizer=sgd,ignore_index=0.5") ==
        "option 'ignore_index' is 0.500000, wants a whole number");
  CHECK(refusal("loss=mse,optimizer=sgd,weight_decay=inf") == "option 'weight_decay' is no finite number");
  CHECK(refusal("loss=mse,optimizer=sgd,clip_norm=nan") == "clip_norm is negative or no number");
  CHECK(refusal("loss=softmax_cross_entropy,optimizer=sgd,class_weights=1:2") ==
        "the loss 'softmax_cross_entropy_weighted' has 2 weights of classes, wants one for each of 4");
  CHECK(refusal("loss=mse,optimizer=sgd", {"fc3.*"}) ==
        "'fc3.*' names no tensor that can be trained; there are 'fc1.weight', 'fc1.bias', 'fc2.weight', "
        "'fc2.bias'");
  CHECK(refusal("loss=mse,optimizer=sgd", {"LAST=no"}) ==
        "'LAST=no' wants a number of tensors, such as LAST=2");
}

std::string network_of(const std::string& type, const std::string& body) {
  return "module @m { func @main(%x: " + type + ") -> (" + type + ") outputs [\"y\"] {\n" + body +
         "\n return %y } }";
}

TEST_CASE("predictions and tensors that cannot be trained are refused by name") {
  auto mse = options_of("loss=mse,optimizer=sgd", {});
  CHECK(refusal_of(network_of("f32[4]", "%y = tanh %x : f32[4]"), mse) ==
        "nothing of the model can be trained: the loss depends on no tensor of f32 or f64 that has dims");
  CHECK(refusal_of(network_of("i32[4]", "%y = negate %x : i32[4]"), mse) ==
        "output 'y' is i32[4]: the loss 'mse' wants f32 or f64");
  auto classes = options_of("loss=softmax_cross_entropy,optimizer=sgd", {});
  CHECK(
      refusal_of(network_of("f32[4]", "%y = tanh %x : f32[4]"), classes) ==
      "output 'y' is f32[4]: the loss 'softmax_cross_entropy' wants scores of classes, [N,C] or [N,C,d...]");
  std::string quantised = network_of("f32[2]", R"(%q = constant [1, 2] : i8[2] loc("w_quantised")
    %1 = convert %q {to = f32} : f32[2]
    %s = constant [0.5, 0.25] : f32[2] loc("w_scale")
    %2 = multiply %1, %s : f32[2]
    %y = multiply %x, %2 : f32[2])");
  auto weights = options_of("loss=mse,optimizer=sgd", {"w_q*"});
  CHECK(refusal_of(quantised, weights) == "'w_quantised' is i8[2], which is not trained: quantised weights "
                                          "and integers stay as they are, but may "
                                          "have adapters; there are 'w_scale'");
  std::string narrow = network_of("f32[2]", R"(%h = constant [1, 2] : f16[2] loc("w_half")
    %1 = convert %h {to = f32} : f32[2]
    %s = constant [0.5, 0.25] : f32[2] loc("w_scale")
    %2 = multiply %1, %s : f32[2]
    %y = multiply %x, %2 : f32[2])");
  CHECK(refusal_of(narrow, options_of("loss=mse,optimizer=sgd", {"w_h*"})) ==
        "'w_half' is f16[2], which is not trained: floats narrower than f32 stay as they are; there are "
        "'w_scale'");
}

TEST_CASE("functions that have no form of losses and optimizers are refused") {
  auto functions = training::parse_functions("own.hlo", R"(module @own {
  func @sgd(%parameter: f32[], %gradient: f32[]) -> (f32[]) { return %gradient }
  func @mse(%prediction: f32[4], %target: f32[4]) -> (f32[4]) { return %target }
  func @own(%prediction: f32[], %target: f32[]) -> (f32[]) {
    %1 = constant <far #0123456789abcdef> : f32[]
    return %1
  }
})");
  REQUIRE(functions);
  std::shared_ptr<const Module> own = std::move(*functions);
  auto options = options_of("loss=mse,optimizer=adam", {});
  options.functions = own;
  CHECK(refusal_of(perceptron_text("f32", "5,4"), options).starts_with("@mse is no loss of rows: wants"));
  options.loss = "own";
  CHECK(refusal_of(perceptron_text("f32", "5,4"), options).find("no constants but numbers") !=
        std::string::npos);
  options.loss = "l1", options.optimizer = "sgd";
  CHECK(refusal_of(perceptron_text("f32", "5,4"), options).starts_with("@sgd is no optimizer: wants"));
}

} // namespace
} // namespace firn::test
