// Losses of a batch.
#pragma once

#include "compiler/training/apply_function.h"

namespace firn::training {

// The type of the targets that go with predictions of some type, f32[batch,10] for instance. An error says
// which predictions the loss wants; `output` names them.
Expected<Type> target_type(const Function& loss, const std::string& output, const Type& prediction);

// Whether there are as many weights of classes as the loss and the predictions want.
Result check_class_weights(const Function& loss, const Type& prediction, const std::vector<double>& weights);

// Whether gradients reach the weights that a loss gives its rows.
bool weighs_by_predictions(const Function& loss);

// Scalars of the predictions' dtype: the sum of the loss over all elements, or over all rows with their
// weights, and the number of elements or the sum of the weights.
struct LossSums {
  Value sum, count;
};
LossSums write_loss_sums(GraphBuilder& builder, const Function& loss, Value prediction, Value target,
                         const std::vector<double>& class_weights, const Numbers& numbers);

} // namespace firn::training
