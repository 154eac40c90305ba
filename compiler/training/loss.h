// Losses of a batch.
#pragma once

#include "compiler/training/apply_function.h"

namespace firn::training {

// The type of the targets that go with predictions of some type, f32[batch,10] for instance. An error says
// which predictions the loss wants; `output` names them.
Expected<Type> target_type(const Function& loss, const std::string& output, const Type& prediction);

// Whether there are as many weights of classes as the loss and the predictions want.
Result check_class_weights(const Function& loss, const Type& prediction, const std::vector<double>& weights);

// The loss of the batch, a scalar: the mean over all elements, or the weighted mean over all rows.
Value write_loss(GraphBuilder& builder, const Function& loss, Value prediction, Value target,
                 const std::vector<double>& class_weights, const Numbers& numbers);

} // namespace firn::training
