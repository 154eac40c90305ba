// A compiled model in this process: its code, and its weights as the code reads them. It does not change, and
// any number of instances run it at the same time.
#pragma once

#include "compiler/driver/compile.h"
#include "compiler/driver/executable_archive.h"
#include "compiler/driver/loaded_code.h"
#include "compiler/driver/runner_memory.h"
#include "include/firn/abi.h"

#include <memory>
#include <span>

namespace firn::driver {

class LoadedExecutable {
public:
  // Generates code for a compilation that compile_in_memory made for this host, loads it, and packs the
  // weights into `memory`, which outlives the executable. The compilation may go afterwards. `keep`, if it is
  // not empty, gets what restore() wants, unless the system's tools have loaded the code.
  static Expected<std::unique_ptr<LoadedExecutable>>
  load(Compilation& compilation, RunnerMemory& memory,
       const std::function<void(const ExecutableArchive&)>& keep = {});
  // Loads what was kept. The archive's bytes outlive the executable, whose weights they are. `symbols` are
  // the program's operators by their names.
  static Expected<std::unique_ptr<LoadedExecutable>> restore(const ExecutableArchive& archive,
                                                             const std::map<std::string, void*>& symbols,
                                                             const load::Visibility& visibility,
                                                             RunnerMemory& memory);

  using EntryFunction = firn_status(const firn_rt2_call* call);
  // The functions of the code are numbered: 0 is @main, those behind it are those of description().entries.
  EntryFunction* entry(size_t number = 0) const { return entries_[number]; }
  const artifact::ModelDescription& description() const { return description_; }
  const artifact::ModelDescription& description_of(size_t number) const {
    return number == 0 ? description_ : description_.entries[number - 1];
  }
  // The number of the function that the module calls so; nothing: it has none.
  std::optional<size_t> find_entry(const std::string& name) const;
  // Weights as firn_rt2_call has them.
  const unsigned char* weights() const { return weights_; }
  // The manifest that `firn compile` would write.
  const std::string& manifest() const { return manifest_; }
  // The CPU whose code runs (firn_rt2_call::variant).
  size_t variant() const { return variant_; }

  // The weights that an object with these options would hold.
  std::span<const std::byte> own_weights() const;
  // Prepares other weights than the model's own, which was compiled with Weights::Init; raw ones as the
  // description lays them out. An error where the code depends on others, as Weights::prepare() has it.
  Result refit(std::span<const std::byte> raw);

private:
  LoadedExecutable() = default;
  // Finds the functions of the code by their symbols; no `prepare`: there is nothing to make.
  Result find_functions(const std::string& run, const std::string& weights, const std::string& prepare);
  void load_weights(const kernel::Program& program, RunnerMemory& memory);
  void prepare_in(RunnerMemory& memory);
  void prepare(const unsigned char* raw);
  artifact::ModelDescription description_;
  std::string manifest_;
  std::unique_ptr<LoadedCode> code_;
  std::vector<EntryFunction*> entries_;
  EntryFunction* prepare_ = nullptr; // none: there is nothing to make
  const unsigned char* own_weights_ = nullptr;
  const unsigned char* weights_ = nullptr;
  std::byte* memory_ = nullptr; // the memory of `weights_`; null: the object or an archive holds them
  size_t variant_ = 0;
};

// The number that ONNX has for an element type.
int32_t onnx_number(DType dtype);

} // namespace firn::driver
