// Memory and arguments for runs of a loaded model, by one thread at a time.
#pragma once

#include "compiler/driver/actual_dims.h"
#include "compiler/driver/loaded_executable.h"

namespace firn::driver {

class Instance {
public:
  // A tensor and where it lies; null: the caller has to bind memory.
  struct Slot {
    const artifact::TensorDescription* tensor;
    std::byte* memory;
  };

  // `arena` and `parameters` have the bytes and the alignment that the description says; without parameters
  // they may be null. Model and memory outlive the instance. Dims that vary have their upper bounds, and
  // states, parameters among them, their first values.
  Instance(const LoadedExecutable& model, std::byte* arena, std::byte* parameters);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const LoadedExecutable& model() const { return model_; }
  const std::vector<Slot>& inputs() const { return inputs_; }
  const std::vector<Slot>& outputs() const { return outputs_; }
  const std::vector<Slot>& states() const { return states_; }
  // Null: the tensor's place in the arena, if it has one.
  void bind_input(size_t index, std::byte* memory);
  void bind_output(size_t index, std::byte* memory);

  void set_dims(ActualDims dims);
  const ActualDims& dims() const { return dims_; }
  // The dims of a tensor as they are set; those that depend on data are what the last run counted, 0 before
  // the first.
  std::vector<int64_t> dims_of(const artifact::TensorDescription& tensor) const;

  // States back to their first values.
  void reset();
  // Computes the outputs; a FIRN_STATUS_. Neither allocates nor locks.
  firn_status run() const { return model_.entry()(&call_); }
  // The arguments of a run, of which `executor` and `profile` are the caller's to set.
  firn_rt2_call& call() { return call_; }
  const firn_rt2_call& call() const { return call_; }

private:
  std::byte* place_of(const artifact::TensorDescription& tensor) const;
  const LoadedExecutable& model_;
  std::byte *arena_, *parameters_;
  std::vector<Slot> inputs_, outputs_, states_;
  std::vector<const void*> input_memory_; // the call's tables
  std::vector<void*> output_memory_;
  ActualDims dims_;
  firn_rt2_call call_ = {};
};

} // namespace firn::driver
