// The functions of a training module that compute the loss of a batch: @evaluate, and @step_loss where a step
// computes it in another way.
#pragma once

#include "compiler/training/training.h"

namespace firn::training {

// The parts that they are made of.
struct LossSource {
  const Function& main;  // its states are its last parameters; training forms stand in it
  size_t inputs = 0;     // parameters of @main before the states
  size_t trained = 0;    // how many of the states are trained: these come first, running statistics follow
  size_t prediction = 0; // the output that is compared, or the loss itself
  const Function* loss = nullptr; // null: the prediction is the loss
  std::optional<Type> target;
  std::string labels, name; // names of the input of targets, and of the result
};

// Adds the function inputs, labels, states -> loss, the states as they were. Norms go by running statistics,
// and nothing is dropped. With micro-batches it computes the loss slice by slice.
Function& add_evaluate(Module& module, const LossSource& source, const TrainingOptions& options);

// Adds a function that no program runs:
//
//   inputs, labels, states, step_count, slice -> loss, the running statistics after the batch
//
// Its norms whose scale or bias is trained go by the statistics of the batch, and it drops elements by the
// number of steps that were made. With micro-batches it is one of a slice, whose number it gets, and returns
// the sum of the loss and what that has to be divided by in place of the loss.
Function& add_step_loss(Module& module, const LossSource& source, const TrainingOptions& options);

} // namespace firn::training
