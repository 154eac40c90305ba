// Training steps of a perceptron 8-16-4 with tanh on batches of 5 rows, through the evaluator. Weights and
// batches are the numbers of make_references.py.
#pragma once

#include "compiler/driver/compile.h"
#include "compiler/graph/evaluate.h"
#include "compiler/training/training.h"

#include <catch2/catch.hpp>

namespace firn::test {

// The text of the network, of floats of some dtype, whose output has `dims`. Its rows are a number, or n, of
// which there are 1 to 8.
std::string perceptron_text(const std::string& dtype, const std::string& dims, const std::string& rows = "5");

std::unique_ptr<Module> parsed(const std::string& text);

// The module with a batch norm in front of its tanh ("norm.weight", "norm.bias", "norm.mean",
// "norm.variance", momentum 0.9), or with a dropout behind it.
std::unique_ptr<Module> with_norm(std::unique_ptr<Module> module);
std::unique_ptr<Module> with_dropout(std::unique_ptr<Module> module, double ratio);

// The options that the words of --train and --trainable say.
training::TrainingOptions options_of(const std::string& words, const std::vector<std::string>& trainable);

// Literals of drawn numbers: ((i * factor + step * 17) mod modulus - modulus / 2) / divisor.
LiteralRef drawn(const Type& type, int64_t step, int64_t factor, int64_t modulus, int64_t divisor);
// The batch of a step, and the targets that the loss of `options` wants for an output of `dims`.
LiteralRef batch_of(DType dtype, int64_t step, int64_t rows = 5);
LiteralRef target_of(const training::TrainingOptions& options, const Type& target,
                     const std::vector<int64_t>& dims, int64_t step);

// A function of a training module, compiled by itself; an empty CPU is the default one.
std::unique_ptr<driver::Compilation> compiled(const Module& module, const std::string& entry = "step",
                                              const std::string& cpu = "");

// The batch and learning rate that a run of @step is given beside states.
struct StepInputs {
  LiteralRef x, target;
  double rate = 0;
};
// The arguments of @step. States are given in the first run alone: those that `states` lacks are zeros.
std::vector<LiteralRef> arguments_of(const Function& step, const std::map<std::string, LiteralRef>& states,
                                     const StepInputs& inputs, bool is_first);

// A training module whose gradients are derived, and its states from step to step.
class Trainer {
public:
  Trainer(std::unique_ptr<Module> module, const training::TrainingOptions& options);

  // Runs @step or @evaluate for its loss. States take what they become.
  double run(const std::string& function, const LiteralRef& x, const LiteralRef& target, double rate);
  // Runs @step for what it returns beside the loss and states, by name.
  std::map<std::string, LiteralRef> step_results(const LiteralRef& x, const LiteralRef& target, double rate);
  double loss() const { return loss_; } // in the last run
  // The outputs of @main.
  std::vector<LiteralRef> infer(const LiteralRef& x) const;

  const Module& module() const { return *module_; }
  const Function& function(const std::string& name) const;
  std::map<std::string, LiteralRef> states; // by name

private:
  std::vector<RuntimeValue> arguments(const Function& function,
                                      const std::map<std::string, LiteralRef>& given) const;
  std::unique_ptr<Module> module_;
  double loss_ = 0;
  std::map<std::string, LiteralRef> others_; // results of the last run that are neither the loss nor states
};

} // namespace firn::test
