// The function @step of a training module.
#pragma once

#include "compiler/training/loss_function.h"

namespace firn::training {

// A module on its way to a training module: the functions of the loss are complete.
struct StepParts {
  const LossSource& source;
  const Function& evaluate; // inputs, perhaps labels, then the states: their names are those of @step
  const Function& loss;     // the function that is differentiated: @evaluate, or @step_loss
  const Function& optimizer;
  std::function<std::string(const std::string& wanted)> unused_name; // for states and inputs

  size_t inputs() const { return source.inputs + (source.target ? 1 : 0); } // before the states
  size_t statistics() const {
    return source.main.body().parameters().size() - source.inputs - source.trained;
  }
  bool has_step_loss() const { return &loss != &evaluate; }
};

// Declares the gradients of the loss and adds @step, which makes use of them.
void add_step_function(Module& module, const StepParts& parts, const TrainingOptions& options);

} // namespace firn::training
