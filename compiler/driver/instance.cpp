// Slots and dims of an instance.
#include "compiler/driver/instance.h"

#include <cstring>

namespace firn::driver {

Instance::Instance(const LoadedExecutable& model, std::byte* arena, std::byte* parameters)
    : model_(model), arena_(arena), parameters_(parameters) {
  const artifact::ModelDescription& d = model.description();
  auto add = [&](const std::vector<artifact::TensorDescription>& tensors, std::vector<Slot>& slots) {
    for (const artifact::TensorDescription& tensor : tensors) slots.push_back({&tensor, place_of(tensor)});
  };
  add(d.inputs, inputs_);
  add(d.outputs, outputs_);
  add(d.states, states_);
  for (const Slot& input : inputs_) input_memory_.push_back(input.memory);
  for (const Slot& output : outputs_) output_memory_.push_back(output.memory);
  call_.size = sizeof call_;
  call_.arena = reinterpret_cast<unsigned char*>(arena_);
  call_.parameters = reinterpret_cast<unsigned char*>(parameters_);
  call_.weights = model.weights();
  call_.inputs = input_memory_.data();
  call_.outputs = output_memory_.data();
  call_.variant = model.variant();
  if (auto bounds = dims_at(d, {})) set_dims(std::move(*bounds));
  // Strings are empty until they are set.
  for (const auto* slots : {&inputs_, &outputs_})
    for (const Slot& slot : *slots)
      if (slot.tensor->dtype == DType::String && slot.memory)
        std::memset(slot.memory, 0, static_cast<size_t>(slot.tensor->byte_size()));
  for (const Slot& output : outputs_)
    for (const artifact::CountedDim& counted : output.tensor->counted_dims)
      std::memset(arena_ + counted.arena_offset, 0, sizeof(int64_t));
  reset();
}

std::byte* Instance::place_of(const artifact::TensorDescription& tensor) const {
  if (!tensor.arena_offset) return nullptr;
  return (tensor.is_parameter ? parameters_ : arena_) + *tensor.arena_offset;
}

void Instance::bind_input(size_t index, std::byte* memory) {
  Slot& slot = inputs_[index];
  slot.memory = memory ? memory : place_of(*slot.tensor);
  input_memory_[index] = slot.memory;
}

void Instance::bind_output(size_t index, std::byte* memory) {
  Slot& slot = outputs_[index];
  slot.memory = memory ? memory : place_of(*slot.tensor);
  output_memory_[index] = slot.memory;
}

void Instance::set_dims(ActualDims dims) {
  dims_ = std::move(dims);
  call_.extents = dims_.extents.data();
}

std::vector<int64_t> Instance::dims_of(const artifact::TensorDescription& tensor) const {
  std::vector<int64_t> dims = actual_dims(tensor, dims_);
  for (const artifact::CountedDim& counted : tensor.counted_dims)
    std::memcpy(&dims[counted.axis], arena_ + counted.arena_offset, sizeof(int64_t));
  return dims;
}

void Instance::reset() {
  for (const Slot& state : states_) {
    auto bytes = static_cast<size_t>(state.tensor->byte_size());
    if (state.tensor->initial_weights)
      std::memcpy(state.memory, model_.weights() + *state.tensor->initial_weights, bytes);
    else
      std::memset(state.memory, 0, bytes);
  }
}

} // namespace firn::driver
