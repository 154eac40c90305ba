// The function @step of a training module.
#pragma once

#include "compiler/training/training.h"

namespace firn::training {

// A module on its way to a training module: @evaluate is complete.
struct StepParts {
  const Function&
      evaluate;      // inputs, perhaps labels, then the trained tensors -> loss, the tensors as they were
  size_t inputs = 0; // parameters of @evaluate before the trained tensors
  const Function& optimizer;
  std::function<std::string(const std::string& wanted)> unused_name; // for states and inputs
};

// Declares the gradients of @evaluate and adds @step, which makes use of them.
void add_step_function(Module& module, const StepParts& parts, const TrainingOptions& options);

} // namespace firn::training
