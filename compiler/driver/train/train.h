// `firn train`: trains a model on examples, in this process.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// The state behind a step, for progress.
struct StepReport {
  int64_t epoch = 0, epochs = 0; // the number of this epoch, from 1
  int64_t step = 0, steps = 0;   // that many are done of the epoch's
  double loss = 0;               // smoothed over some steps
  double seconds_left = 0;       // until the last epoch ends
};

// The results of an epoch.
struct EpochReport {
  int64_t epoch = 0, epochs = 0;
  double loss = 0;                       // the mean over the examples, each as its step found it
  std::optional<double> validation_loss; // the mean over the examples held back
  std::optional<double> accuracy;        // how many of these the model classifies rightly, 0 to 1
  double seconds = 0;
};

struct TrainOptions {
  CompileOptions compile;       // `training` may lack loss and optimizer: then the labels decide
  std::string data;             // a folder or .npz file of examples (train/data_arrays.h)
  std::string validation;       // another, or the fraction of the examples to hold back, "0.1"; empty: none
  std::string save;             // .npz, .safetensors or .onnx, and FILE.state beside it
  std::string resume;           // the `save` of the training to go on with; empty: it begins anew
  int64_t epochs = 1;           // in all, those before a resumption among them
  std::optional<int64_t> batch; // examples of a step; nothing: what the model takes, or 32
  std::optional<double> learning_rate; // nothing: the optimizer's usual one
  bool shuffles = true;                // another order of the examples in each epoch
  int64_t seed = 0;                    // decides these orders, and what is held back
  // Ends the training behind the step under way once it is true; may be null.
  const std::atomic<bool>* stop = nullptr;
  // Each may be empty.
  std::function<void(const std::string& line)> note; // tells what was chosen
  std::function<void(const std::string& warning)> warn;
  std::function<void(const StepReport& report)> step;
  std::function<void(const EpochReport& report)> epoch;
};

enum class TrainingEnd { Complete, Stopped };

// Trains and saves, after every epoch and at the end; if it is stopped while it trains, too. Nothing, with
// the reasons in `diagnostics`, when something failed. A loss that is not finite ends a training as the
// model's fault, and what the step before has left is saved.
std::optional<TrainingEnd> train_model(const TrainOptions& options, DiagnosticList& diagnostics);

} // namespace firn::driver
