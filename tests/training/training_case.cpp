// See training_case.h.
#include "tests/training/training_case.h"

#include "compiler/driver/training_words.h"
#include "compiler/graph/hlo_text.h"
#include "compiler/graph/verify.h"
#include "compiler/passes/pass.h"
#include "compiler/training/training_forms.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

namespace firn::test {
namespace {

double number_at(int64_t i, int64_t step, int64_t factor, int64_t modulus, int64_t divisor) {
  return static_cast<double>((i * factor + step * 17) % modulus - modulus / 2) / static_cast<double>(divisor);
}

std::string weights(int64_t count, int64_t seed) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    char number[32];
    std::snprintf(number, sizeof number, "%.17g", number_at(i, seed, 37, 101, 128));
    text += (i ? ", " : "") + std::string(number);
  }
  return text;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// The share of a class in the probabilities of make_references.py.
double share_of(int64_t classes, int64_t place) {
  static constexpr double kFour[] = {1, 2, 5, 8}, kTwo[] = {5, 11};
  return (classes == 4 ? kFour[place % 4] : kTwo[place % 2]) / 16;
}

} // namespace

std::string perceptron_text(const std::string& dtype, const std::string& dims, const std::string& rows) {
  std::string text = R"(module @perceptron {
  symbol n in [1, 8]
  func @main(%x: T[ROWS,8]) -> (T[DIMS]) inputs ["x"] outputs ["y"] {
    %w1 = constant [W0] : T[16,8] loc("fc1.weight")
    %b1 = constant [W1] : T[16] loc("fc1.bias")
    %w2 = constant [W2] : T[4,16] loc("fc2.weight")
    %b2 = constant [W3] : T[4] loc("fc2.bias")
    %1 = dot %x, %w1 {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]} : T[ROWS,16]
    %2 = broadcast_in_dim %b1 {dims = [1]} : T[ROWS,16]
    %3 = add %1, %2 : T[ROWS,16]
    %4 = tanh %3 : T[ROWS,16]
    %5 = dot %4, %w2 {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]} : T[ROWS,4]
    %6 = broadcast_in_dim %b2 {dims = [1]} : T[ROWS,4]
    %7 = add %5, %6 : T[ROWS,4]
    %8 = reshape %7 : T[DIMS]
    return %8
  }
})";
  const int64_t counts[] = {128, 16, 64, 4};
  for (int64_t i = 0; i < 4; ++i) text = replaced(text, "W" + std::to_string(i), weights(counts[i], i));
  return replaced(replaced(replaced(text, "DIMS", dims), "ROWS", rows), "T[", dtype + "[");
}

std::unique_ptr<Module> parsed(const std::string& text) {
  auto module = parse_module("case", text);
  if (!module) FAIL(module.error().message);
  Result valid = verify(**module);
  if (!valid) FAIL(valid.error().message);
  return std::move(*module);
}

static Instruction& tanh_of(Module& module) {
  for (const auto& instruction : module.main().body().instructions())
    if (instruction->is(Opcode::Tanh)) return *instruction;
  FAIL("no tanh");
  throw;
}

std::unique_ptr<Module> with_norm(std::unique_ptr<Module> module) {
  Instruction& tanh = tanh_of(*module);
  GraphBuilder builder(module->main().body(), &tanh);
  Value x = tanh.operand(0);
  std::vector<Value> operands{x};
  const std::pair<const char*, double> kParameters[] = {
      {"norm.weight", 1}, {"norm.bias", 0}, {"norm.mean", 0}, {"norm.variance", 2}};
  for (int64_t i = 0; i < 4; ++i) {
    const auto& [name, added] = kParameters[i];
    auto literal = std::make_shared<Literal>(x.dtype(), std::vector<int64_t>{16});
    for (int64_t k = 0; k < 16; ++k) literal->set_double(k, added + number_at(k, 4 + i, 37, 101, 128));
    builder.set_location(name);
    operands.push_back(builder.constant(literal));
  }
  tanh.set_operand(0, training::make_running_norm(builder, operands, 1e-5, 0.9));
  return module;
}

std::unique_ptr<Module> with_dropout(std::unique_ptr<Module> module, double ratio) {
  Instruction& tanh = tanh_of(*module);
  Region& body = module->main().body();
  Instruction* user = tanh.users()[0];
  GraphBuilder builder(body, user);
  Instruction* dropout = training::make_dropout(builder, tanh.result(), ratio, std::nullopt);
  for (int i = 0; i < user->num_operands(); ++i)
    if (user->operand(i) == tanh.result()) user->set_operand(i, dropout->result());
  return module;
}

training::TrainingOptions options_of(const std::string& words, const std::vector<std::string>& trainable) {
  training::TrainingOptions options;
  Result read = driver::parse_training(words, options);
  if (!read) FAIL(read.error().message);
  options.trainable.patterns = trainable;
  return options;
}

LiteralRef drawn(const Type& type, int64_t step, int64_t factor, int64_t modulus, int64_t divisor) {
  auto literal = std::make_shared<Literal>(type.dtype, type.static_dims());
  for (int64_t i = 0; i < literal->num_elements(); ++i)
    literal->set_double(i, number_at(i, step, factor, modulus, divisor));
  return literal;
}

LiteralRef batch_of(DType dtype, int64_t step, int64_t rows) {
  return drawn(Type::tensor_of(dtype, {rows, 8}), step, 53, 97, 64);
}

LiteralRef target_of(const training::TrainingOptions& options, const Type& type,
                     const std::vector<int64_t>& dims, int64_t step) {
  const bool is_class_loss = options.loss == "softmax_cross_entropy";
  if (!is_class_loss && options.loss != "bce_with_logits") return drawn(type, step, 29, 89, 32);
  auto literal = std::make_shared<Literal>(type.dtype, type.static_dims());
  const int64_t classes = dims[1], inner = literal->num_elements() / dims[0] / classes;
  for (int64_t i = 0; i < literal->num_elements(); ++i) {
    if (!is_class_loss)
      literal->set_double(i, static_cast<double>((i * 3 + step) % 5) / 4);
    else if (type.dtype == DType::I64)
      literal->set_int(i, (i * 7 + step * 3) % classes);
    else
      literal->set_double(i,
                          share_of(classes, i / inner % classes + i / (classes * inner) + i % inner + step));
  }
  return literal;
}

std::unique_ptr<driver::Compilation> compiled(const Module& module, const std::string& entry,
                                              const std::string& cpu) {
  std::string text = print_module(module);
  driver::CompileOptions options;
  options.model = "step.hlo";
  options.model_bytes = std::as_bytes(std::span(text));
  options.entry = entry;
  options.cpu = cpu;
  char weights[] = "/tmp/firn_step_weights_XXXXXX";
  const int file = mkstemp(weights);
  REQUIRE(file >= 0);
  close(file);
  std::ofstream(weights, std::ios::binary) << write_literals(module);
  options.weights_in = weights;
  DiagnosticList diagnostics;
  auto compilation = driver::compile_in_memory(options, diagnostics);
  unlink(weights);
  if (!compilation) FAIL(diagnostics.messages()[0].message);
  return compilation;
}

std::vector<LiteralRef> arguments_of(const Function& step, const std::map<std::string, LiteralRef>& states,
                                     const StepInputs& inputs, bool is_first) {
  std::vector<LiteralRef> arguments;
  for (size_t i = 0; i < step.parameter_names.size(); ++i) {
    const std::string& name = step.parameter_names[i];
    const Type& type = step.body().parameters()[i]->type();
    auto state = states.find(name);
    if (name == "x")
      arguments.push_back(inputs.x);
    else if (name == "labels")
      arguments.push_back(inputs.target);
    else if (name == "learning_rate")
      arguments.push_back(Literal::scalar(DType::F32, inputs.rate));
    else if (!is_first)
      arguments.push_back(nullptr);
    else
      arguments.push_back(state != states.end() ? state->second
                                                : std::make_shared<Literal>(type.dtype, type.static_dims()));
  }
  return arguments;
}

Trainer::Trainer(std::unique_ptr<Module> module, const training::TrainingOptions& options)
    : module_(std::move(module)) {
  auto step = training::make_training_step(*module_, options);
  if (!step) FAIL(step.error().message);
  Result valid = verify(*module_);
  if (!valid) FAIL(valid.error().message);
  states = std::move(step->initial_states);
  PipelineRun run;
  Result derived = run_passes(*module_, pipeline_through_differentiate(), run);
  if (!derived) FAIL(derived.error().message);
}

const Function& Trainer::function(const std::string& name) const {
  const Function* found = module_->find(name);
  if (!found) FAIL("no function @" + name);
  return *found;
}

std::vector<RuntimeValue> Trainer::arguments(const Function& function,
                                             const std::map<std::string, LiteralRef>& given) const {
  std::vector<RuntimeValue> values;
  for (size_t i = 0; i < function.parameter_names.size(); ++i) {
    const std::string& name = function.parameter_names[i];
    const Type& type = function.body().parameters()[i]->type();
    auto state = states.find(name);
    if (auto found = given.find(name); found != given.end())
      values.push_back(found->second);
    else if (state != states.end())
      values.push_back(state->second);
    else
      values.push_back(std::make_shared<Literal>(type.dtype, type.static_dims()));
  }
  return values;
}

double Trainer::run(const std::string& name, const LiteralRef& x, const LiteralRef& target, double rate) {
  const Function& run_function = function(name);
  auto rate_literal = Literal::scalar(x->dtype(), rate);
  auto results = evaluate_function(
      run_function, arguments(run_function, {{"x", x}, {"labels", target}, {"learning_rate", rate_literal}}));
  if (!results) FAIL(results.error().message);
  others_.clear();
  for (size_t i = 1; i < results->size(); ++i) {
    if (run_function.updates_state(i))
      states[run_function.parameter_names[static_cast<size_t>(run_function.aliases[i])]] =
          (*results)[i].tensor;
    else
      others_[run_function.result_names[i]] = (*results)[i].tensor;
  }
  return loss_ = (*results)[0].tensor->get_double(0);
}

std::map<std::string, LiteralRef> Trainer::step_results(const LiteralRef& x, const LiteralRef& target,
                                                        double rate) {
  run("step", x, target, rate);
  return others_;
}

std::vector<LiteralRef> Trainer::infer(const LiteralRef& x) const {
  auto results = evaluate_function(module_->main(), arguments(module_->main(), {{"x", x}}));
  if (!results) FAIL(results.error().message);
  std::vector<LiteralRef> outputs;
  for (const RuntimeValue& value : *results) outputs.push_back(value.tensor);
  return outputs;
}

} // namespace firn::test
