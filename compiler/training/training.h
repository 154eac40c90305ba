// A training step ahead of time: an inference model becomes a module that has one as a function.
#pragma once

#include "compiler/training/apply_function.h"
#include "compiler/training/trained_tensors.h"

namespace firn::training {

// Adapters of low rank beside the weights W of products, which stay as they are: they make y = x W of
// y = x W + alpha / rank * x A B. A is drawn, B starts from zeros, and both are trained ("NAME.lora_a",
// "NAME.lora_b").
struct Adapters {
  std::string pattern; // chooses weights by their names
  int64_t rank = 0;
  double alpha = 0;
};

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
  // Patterns of names of trained tensors whose gradients are results of @step.
  std::vector<std::string> kept_gradients;
  std::vector<Adapters> adapters; // without patterns in `trainable` these alone are trained
  // Rows of the batch that a step processes at once, adding up their gradients; 0: all.
  int64_t micro_batch = 0;
  bool freeze_norms = false; // batch norms keep their running statistics, and normalise by them in steps too
  bool drop = true;          // steps drop what the model's dropouts say
  int64_t seed = 0;          // numbers that are drawn follow from it: dropouts and adapters
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
//   @step      inputs, labels, learning_rate -> loss, gradients that are kept ("gradient NAME", as the loss
//              gives them: neither clipped nor with weight decay); updates the states
//
// With micro-batches the arena of @step is one for a slice, and norms go by the statistics of slices. Batch
// norms of which @step trains scale or bias have running statistics as states, unless norms are frozen: @step
// normalises by the batch and moves them, the other functions normalise by them.
//
// Labels are there unless the model computes the loss. Names that the model has for others end in _2 and so
// on. A step whose loss is not finite changes no state. The derivative of @evaluate is declared, not derived:
// the pass `differentiate` does that.
Expected<TrainingStep> make_training_step(Module& module, const TrainingOptions& options);

} // namespace firn::training
