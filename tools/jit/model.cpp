// Facts of compiled models.
#include "tools/jit/model.h"

namespace firn::library {

Expected<std::shared_ptr<const Model>> Model::load(driver::Compilation& compilation) {
  auto model = std::shared_ptr<Model>(new Model);
  auto executable = driver::LoadedExecutable::load(compilation, model->memory_);
  if (!executable) return executable.error();
  model->executable_ = std::move(*executable);
  model->manifest_ = model->executable_->manifest();
  for (int32_t kind : {FIRN_JIT_INPUT, FIRN_JIT_OUTPUT, FIRN_JIT_STATE})
    for (const artifact::TensorDescription& tensor : *model->tensors(kind))
      model->bounds_[kind].push_back(tensor.dims_at_bound());
  return std::shared_ptr<const Model>(std::move(model));
}

const std::vector<artifact::TensorDescription>* Model::tensors(int32_t kind) const {
  switch (kind) {
  case FIRN_JIT_INPUT: return &description().inputs;
  case FIRN_JIT_OUTPUT: return &description().outputs;
  case FIRN_JIT_STATE: return &description().states;
  default: return nullptr;
  }
}

bool Model::describe(int32_t kind, size_t index, firn_jit_tensor& tensor) const {
  const auto* all = tensors(kind);
  if (!all || index >= all->size()) return false;
  const artifact::TensorDescription& found = (*all)[index];
  const std::vector<int64_t>& dims = bounds_[kind][index];
  tensor = {found.name.c_str(),
            driver::onnx_number(found.dtype),
            static_cast<int32_t>(dims.size()),
            dims.data(),
            nullptr,
            static_cast<size_t>(found.byte_size())};
  return true;
}

} // namespace firn::library
