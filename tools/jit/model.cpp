// Facts of compiled models.
#include "tools/jit/model.h"

#include <algorithm>

namespace firn::library {

Expected<std::shared_ptr<const Model>> Model::load(driver::Compilation& compilation, const CacheFolder* cache,
                                                   const std::string& key) {
  auto model = std::shared_ptr<Model>(new Model);
  model->files_ = driver::file_identities(compilation.facts.external_files);
  std::function<void(const driver::ExecutableArchive&)> keep;
  if (cache)
    keep = [&](const driver::ExecutableArchive& archive) {
      std::string storage;
      cache->keep(key, driver::pieces_of(archive, storage));
    };
  auto executable = driver::LoadedExecutable::load(compilation, model->memory_, keep);
  if (!executable) return executable.error();
  model->executable_ = std::move(*executable);
  model->note_bounds();
  return std::shared_ptr<const Model>(std::move(model));
}

std::shared_ptr<const Model> Model::find(const CacheFolder& cache, const std::string& key,
                                         const std::map<std::string, void*>& symbols) {
  auto model = std::shared_ptr<Model>(new Model);
  model->kept_ = cache.find(key);
  if (!model->kept_) return nullptr;
  auto archive = driver::read_archive(model->kept_->bytes());
  if (!archive) return nullptr;
  model->files_ = archive->files;
  if (!model->is_current()) return nullptr;
  auto executable = driver::LoadedExecutable::restore(*archive, symbols, model->memory_);
  if (!executable) return nullptr;
  model->executable_ = std::move(*executable);
  model->note_bounds();
  return model;
}

bool Model::is_current() const {
  return std::all_of(files_.begin(), files_.end(),
                     [](const auto& file) { return driver::file_identity(file.first) == file.second; });
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
