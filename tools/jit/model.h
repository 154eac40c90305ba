// A model that was compiled in this process, as clients of the library see it.
#pragma once

#include "compiler/driver/kept_executable.h"
#include "include/firn/jit.h"

#include <memory>
#include <string>
#include <vector>

namespace firn::library {

class Model {
public:
  // Loads the code of a compilation, which may go afterwards, and keeps it in the folder, if there is one,
  // under this name.
  static Expected<std::shared_ptr<const Model>> load(driver::Compilation& compilation,
                                                     const CacheFolder* cache, const std::string& name);
  // The model that was kept (driver::find_kept); null: there is none.
  static std::shared_ptr<const Model> find(const CacheFolder& cache, const std::string& name,
                                           const driver::CompileOptions& options);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const driver::LoadedExecutable& executable() const { return *executable_; }
  const artifact::ModelDescription& description() const { return executable_->description(); }
  const std::string& manifest() const { return executable_->manifest(); }
  // Whether files beside the model's own that it was made from are as they were.
  bool is_current() const { return driver::are_current(files_); }

  // Inputs, outputs or states, by FIRN_JIT_INPUT and its kin; null for other numbers.
  const std::vector<artifact::TensorDescription>* tensors(int32_t kind) const;
  // A tensor at its upper bounds; false if there is none.
  bool describe(int32_t kind, size_t index, firn_jit_tensor& tensor) const;

private:
  Model() = default;
  void note_bounds();
  driver::HeapMemory memory_;               // holds the weights
  std::shared_ptr<const CachedBytes> kept_; // or this does
  std::unique_ptr<driver::LoadedExecutable> executable_;
  driver::SourceFiles files_;
  std::vector<std::vector<int64_t>> bounds_[3]; // by kind and tensor
};

} // namespace firn::library
