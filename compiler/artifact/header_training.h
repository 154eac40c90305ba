// The parts of a generated header that models with a training step have: the class Parameters, and the
// functions of the class Trainer, in C++ and in C.
#pragma once

#include "compiler/artifact/model_description.h"
#include "compiler/artifact/text_template.h"

namespace firn::artifact {

// Fill the slots of the header's templates that speak of parameters and functions, with empty texts if the
// model has neither; the texts use slots that are there already.
void add_training_slots(Slots& slots, const ModelDescription& model);
void add_c_training_slots(Slots& slots, const ModelDescription& model);

// The functions of a training step in C, in the place of the one that runs a model. Uses the slots of the C
// part.
std::string c_functions(const ModelDescription& trainer, Slots slots);

// The struct and the functions for parameters in C; empty if the model has none.
std::string c_parameters(const ModelDescription& model);

// Parts of both languages: the table of saved tensors and their size; statements that give tensors in `block`
// their first values, with functions of that prefix; whether `weights` are needed for that; and the slots of
// a function, whose tables are members of `instance`.
void add_saved_slots(Slots& slots, const std::vector<TensorDescription>& tensors);
std::string reset_statements(const std::vector<TensorDescription>& tensors, const std::string& block,
                             const std::string& weights, const std::string& prefix);
bool has_first_values(const std::vector<TensorDescription>& tensors);
void add_function_slots(Slots& slots, const ModelDescription& trainer, const TrainingFunction& function,
                        const std::string& instance, const std::string& null);

} // namespace firn::artifact
