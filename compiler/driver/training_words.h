// The words of `firn compile --train`.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// Reads loss=NAME,optimizer=NAME and further options, KEY=VALUE apart by commas:
//   loss           a loss, or output:NAME, an output of the model that is one
//   optimizer      an optimizer
//   functions      a file with losses and optimizers in text form, which come before those of Firn
//   prediction     the output that the loss looks at
//   labels         classes or probabilities
//   class_weights  numbers apart by colons
//   clip_norm      the largest norm of all gradients together
//   freeze_norms   (a word alone) batch norms keep their running statistics
//   dropout        on or off
//   seed           a whole number: what is drawn follows from it
// Every other key is a number by the name of an option of the loss or the optimizer, or weight_decay.
// Neither loss nor optimizer has to be there.
Result parse_training(const std::string& text, training::TrainingOptions& options);
// A usage error names what of loss and optimizer is missing.
Result check_is_complete(const training::TrainingOptions& options);

// The learning rate that an optimizer of Firn is commonly begun with; nothing: it is a user's.
std::optional<double> usual_learning_rate(const std::string& optimizer);

// Adds what `rank=N[,alpha=X]:PATTERN` says; alpha is N unless it is given.
Result parse_adapters(const std::string& text, training::TrainingOptions& options);

} // namespace firn::driver
