// Training steps in generated files: the parameters of a model, and the class Trainer over the functions that
// change them.
#pragma once

#include "compiler/artifact/model_description.h"

#include <string>

namespace firn::artifact {

// The states that lie in the arena, and those in the block of parameters.
std::vector<TensorDescription> arena_states(const ModelDescription& model);
std::vector<TensorDescription> parameter_tensors(const ModelDescription& model);

// Whether the functions beside @main are one class, in an arena of their own.
bool has_trainer(const ModelDescription& model);
// That class: inputs, outputs, states and dims of all functions, those of one name once, and the functions.
// The identifiers of `model` and its entries are set.
ModelDescription trainer_of(const ModelDescription& model);
// Bytes of what the optimizer keeps for the parameters: the float states in the trainer's arena.
int64_t moment_bytes(const ModelDescription& trainer);

// Tensors as a file of safetensors (include/firn/saved_tensors.h), in the order of that format.
struct SavedTensors {
  struct Row {
    std::string entry; // "NAME":{...}
    int64_t offset = 0, bytes = 0;
  };
  std::vector<Row> rows;
  int64_t bytes = 0; // bytes of the whole file
};
SavedTensors saved_tensors(std::vector<TensorDescription> tensors);

} // namespace firn::artifact
