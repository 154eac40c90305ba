// A training step in this process: the functions @step, @evaluate and @main of a model that was compiled with
// one, over the same trained tensors.
#pragma once

#include "compiler/driver/instance.h"
#include "include/firn/thread_pool.h"

#include <map>

namespace firn::driver {

// For one thread at a time.
class Trainer {
public:
  using Slot = Instance::Slot;

  // Trained tensors begin as the model has them. The model outlives the trainer. A usage error if it has no
  // training step.
  static Expected<std::unique_ptr<Trainer>> create(const LoadedExecutable& model);

  // The inputs of a step: the model's, then labels, if the loss wants them. They lie in memory of the
  // trainer's own and stay as they are until they are written.
  const std::vector<Slot>& inputs() const { return inputs_; }
  const Slot* labels() const { return labels_ ? &inputs_[*labels_] : nullptr; }
  // Trained tensors, and what the optimizer keeps beside them: moments and the number of steps.
  const std::vector<Slot>& parameters() const { return parameters_; }
  const std::vector<Slot>& optimizer_states() const { return optimizer_states_; }
  // The results of infer().
  const std::vector<Slot>& outputs() const { return inference_->outputs(); }
  const artifact::ModelDescription& description() const { return step_->description(); }

  // Sets dims that vary by their names, or by the dims of inputs, of which an empty list says nothing;
  // otherwise they have their upper bounds. An error says why they cannot be so, and changes nothing.
  Result set_dims(const std::map<std::string, int64_t>& values);
  Result fit_dims(const std::vector<std::vector<int64_t>>& input_dims);
  std::vector<int64_t> dims_of(const artifact::TensorDescription& tensor) const;
  // The dims of one of outputs(), as the last run of infer() counted those that depend on data.
  std::vector<int64_t> output_dims(size_t index) const {
    return inference_->dims_of(*outputs()[index].tensor);
  }

  // Each gives a FIRN_STATUS_ and neither allocates nor locks. A step whose loss is not finite changes
  // nothing, and says so.
  firn_status step();
  firn_status evaluate();
  firn_status infer();
  // The loss of the last step or evaluation.
  double loss() const { return loss_; }
  double learning_rate() const;
  void set_learning_rate(double rate);
  int64_t step_count() const;
  // Trained tensors as the model has them, moments zero, no step made.
  void reset();
  // An executor that outlives the trainer; null: the calling thread alone. At first it is a pool of as many
  // threads as the object makes use of.
  void lend(const firn_executor* executor);

private:
  Trainer() = default;
  Result find_tensors();
  void place_inputs();
  firn_status run_for_loss(Instance& instance);
  HeapMemory memory_;
  std::unique_ptr<Instance> step_, evaluate_, inference_;
  std::vector<Slot> inputs_, parameters_, optimizer_states_;
  std::optional<size_t> labels_;
  Slot rate_ = {}, count_ = {};
  double loss_ = 0;
  std::unique_ptr<ThreadPool> pool_;
  firn_executor executor_ = {};
};

} // namespace firn::driver
