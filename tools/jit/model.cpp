// Loads compiled models, from a compilation or from the cache, and tells their facts.
#include "tools/jit/model.h"

#include <algorithm>

namespace firn::library {

Expected<std::shared_ptr<const Model>> Model::load(driver::Compilation& compilation, const CacheFolder* cache,
                                                   const std::string& name) {
  auto model = std::shared_ptr<Model>(new Model);
  model->files_ = driver::file_identities(compilation.facts.external_files);
  std::function<void(const driver::ExecutableArchive&)> keep;
  if (cache) keep = driver::keeper(*cache, name);
  auto executable = driver::LoadedExecutable::load(compilation, model->memory_, keep);
  if (!executable) return executable.error();
  model->executable_ = std::move(*executable);
  model->note_bounds();
  return std::shared_ptr<const Model>(std::move(model));
}

std::shared_ptr<const Model> Model::find(const CacheFolder& cache, const std::string& name,
                                         const driver::CompileOptions& options) {
  auto model = std::shared_ptr<Model>(new Model);
  auto kept = driver::find_kept(cache, name, options, model->memory_);
  if (!kept) return nullptr;
  model->kept_ = std::move(kept->bytes);
  model->executable_ = std::move(kept->executable);
  model->files_ = std::move(kept->files);
  model->note_bounds();
  return model;
}

void Model::note_bounds() {
  for (int32_t kind : {FIRN_JIT_INPUT, FIRN_JIT_OUTPUT, FIRN_JIT_STATE})
    for (const artifact::TensorDescription& tensor : *tensors(kind))
      bounds_[kind].push_back(tensor.dims_at_bound());
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
