// Trainings as files: the trained tensors, and all that it takes to go on from there.
#pragma once

#include "compiler/driver/train/tensor_file.h"
#include "compiler/driver/train/trainer.h"
#include "compiler/support/output_set.h"

namespace firn::driver {

// The place among the examples at which a training stands; all of it is 0 for one without examples.
struct TrainingPosition {
  int64_t epoch = 0; // epochs that are complete
  int64_t step = 0;  // steps of the one that is not
  int64_t examples = 0, batch = 0;
  int64_t seed = 0, shuffles = 0;
  double loss_sum = 0, loss_weight = 0; // losses of the epoch's steps times their examples, and these
};

// The name of the file beside FILE from which a training goes on.
std::string state_path(const std::string& path);

// Whether the name of a file says a form in which trained tensors are written: .npz, .safetensors or .onnx.
Result check_tensor_path(const std::string& path);

// Adds FILE with the trained tensors in the form that its name says, .onnx for the model of `model_path` with
// these tensors in the place of its own, and the state beside it.
Result write_training(const std::string& path, const std::string& model_path, const Trainer& trainer,
                      const TrainingPosition& position, OutputSet& outputs);

// Takes trained tensors, what the optimizer keeps, and the position from the state beside `path`. A usage
// error names a tensor that is not the trainer's, or not of its type; the trainer is as it was then.
Expected<TrainingPosition> read_training(const std::string& path, Trainer& trainer);

} // namespace firn::driver
