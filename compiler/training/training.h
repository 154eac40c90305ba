// A training step ahead of time: an inference model becomes a module that has one as a function.
#pragma once

#include "compiler/training/apply_function.h"
#include "compiler/training/trained_tensors.h"

namespace firn::training {

struct TrainingOptions {
  std::string loss;           // the name of a loss (functions.h), or
  std::string loss_output;    // an output of the model that is the loss itself
  std::string prediction;     // the output that the loss compares with its target; empty: the first one
  bool probabilities = false; // targets of classes are probabilities, not the numbers of classes
  std::vector<double> class_weights; // one for each class; empty: all count the same
  std::string optimizer;             // the name of an optimizer
  Numbers numbers;                   // options of loss and optimizer, and weight_decay
  bool straight_through = false;     // gradients pass rounding as if it were not there
  double clip_norm = 0;              // the largest norm that all gradients together may have; 0: any
  Selection trainable;
  std::shared_ptr<const Module> functions; // a user's losses and optimizers; null: none
};

struct TrainingStep {
  std::map<std::string, LiteralRef> initial_states; // values of the trained tensors, by name
};

// Rewrites a module with the function @main alone. The trained tensors become states and the module's
// parameters. Further states are what the optimizer keeps, from zeros ("NAME.mean"), and the number of steps
// that were made ("step_count", i64):
//
//   @main      the model's inputs -> its outputs
//   @evaluate  inputs, labels -> loss
//   @step      inputs, labels, learning_rate -> loss; updates the states
//
// Labels are there unless the model computes the loss. Names that the model has for others end in _2 and so
// on. A step whose loss is not finite changes no state. The derivative of @evaluate is declared, not derived:
// the pass `differentiate` does that.
Expected<TrainingStep> make_training_step(Module& module, const TrainingOptions& options);

} // namespace firn::training
