// Code and weights of models that are compiled in this process.
#include "compiler/driver/loaded_executable.h"

#include "compiler/artifact/interface.h"
#include "compiler/artifact/manifest.h"
#include "compiler/frontend/onnx/wire/tensor_data.h"

#include <algorithm>

namespace firn::driver {

int32_t onnx_number(DType dtype) {
  constexpr int32_t kMaxNumber = 64;
  for (int32_t number = 1; number < kMaxNumber; ++number)
    if (onnx::dtype_from_wire(number) == dtype) return number;
  return 0;
}

namespace {

ExecutableArchive archive_of(const Compilation& c, const LoadedExecutable& executable,
                             std::string_view object) {
  ExecutableArchive archive;
  archive.description = executable.description();
  archive.manifest = executable.manifest();
  archive.run_symbol = c.codegen.run_symbol;
  archive.weights_symbol = c.codegen.weights_symbol;
  if (c.prepare) archive.prepare_symbol = c.codegen.prepare_symbol;
  archive.variant = executable.variant();
  archive.files = file_identities(c.facts.external_files);
  archive.object = object;
  if (!c.prepare)
    archive.weights = {reinterpret_cast<const std::byte*>(executable.weights()),
                       static_cast<size_t>(c.program.weight_bytes)};
  return archive;
}

} // namespace

Expected<std::unique_ptr<LoadedExecutable>>
LoadedExecutable::load(Compilation& c, RunnerMemory& memory,
                       const std::function<void(const ExecutableArchive&)>& keep) {
  auto executable = std::unique_ptr<LoadedExecutable>(new LoadedExecutable);
  std::string object; // empty: the system's tools load the code
  if (!is_loaded_by_system(c)) {
    auto generated = generate_code(c);
    if (!generated) return generated.error();
    object = std::move(*generated);
  }
  auto code = object.empty() ? load_by_system(c)
                             : load_object(c.description, c.run_variant, c.symbols, c.visibility, object);
  if (!code) return code.error();
  executable->code_ = std::move(*code);
  executable->description_ = c.description;
  executable->manifest_ = artifact::write_manifest(c.description);
  executable->variant_ = c.run_variant;
  if (Result found = executable->find_functions(c.codegen.run_symbol, c.codegen.weights_symbol,
                                                c.prepare ? c.codegen.prepare_symbol : "");
      !found)
    return found.error();
  if (c.prepare)
    executable->prepare_in(memory);
  else
    executable->load_weights(c.program, memory);
  if (keep && !object.empty()) keep(archive_of(c, *executable, object));
  return executable;
}

Expected<std::unique_ptr<LoadedExecutable>>
LoadedExecutable::restore(const ExecutableArchive& archive, const std::map<std::string, void*>& symbols,
                          const load::Visibility& visibility, RunnerMemory& memory) {
  auto executable = std::unique_ptr<LoadedExecutable>(new LoadedExecutable);
  auto code = load_object(archive.description, archive.variant, symbols, visibility, archive.object);
  if (!code) return code.error();
  executable->code_ = std::move(*code);
  executable->description_ = archive.description;
  executable->manifest_ = archive.manifest;
  executable->variant_ = archive.variant;
  if (Result found =
          executable->find_functions(archive.run_symbol, archive.weights_symbol, archive.prepare_symbol);
      !found)
    return found.error();
  if (executable->prepare_) {
    executable->prepare_in(memory);
  } else {
    executable->weights_ = reinterpret_cast<const unsigned char*>(archive.weights.data());
    executable->own_weights_ = executable->weights_;
  }
  return executable;
}

Result LoadedExecutable::find_functions(const std::string& run, const std::string& weights,
                                        const std::string& prepare) {
  entries_ = {reinterpret_cast<EntryFunction*>(code_->symbol(run))};
  for (const artifact::ModelDescription& entry : description_.entries)
    entries_.push_back(reinterpret_cast<EntryFunction*>(code_->symbol(artifact::symbol_names(entry).run)));
  const bool has_entries = std::find(entries_.begin(), entries_.end(), nullptr) == entries_.end();
  auto own = reinterpret_cast<const unsigned char* (*)()>(code_->symbol(weights));
  prepare_ = prepare.empty() ? nullptr : reinterpret_cast<EntryFunction*>(code_->symbol(prepare));
  if (!has_entries || !own || (!prepare_ && !prepare.empty()))
    return internal_error("the object of " + description_.class_name + " lacks a function");
  own_weights_ = own();
  return {};
}

std::optional<size_t> LoadedExecutable::find_entry(const std::string& name) const {
  for (size_t i = 0; i < description_.entries.size(); ++i)
    if (description_.entries[i].entry == name) return i + 1;
  return std::nullopt;
}

// Weights that the object holds stay there; others go straight to where the code reads them.
void LoadedExecutable::load_weights(const kernel::Program& program, RunnerMemory& memory) {
  if (!own_weights_) {
    memory_ = memory.allocate(program.weight_bytes, FIRN_WEIGHT_ALIGNMENT);
    kernel::write_weights(program, std::span(memory_, static_cast<size_t>(program.weight_bytes)));
    own_weights_ = reinterpret_cast<const unsigned char*>(memory_);
  }
  weights_ = own_weights_;
}

// The object holds raw weights, of which the code makes those that it reads.
void LoadedExecutable::prepare_in(RunnerMemory& memory) {
  memory_ = memory.allocate(description_.prepared_weight_bytes(), FIRN_WEIGHT_ALIGNMENT);
  weights_ = reinterpret_cast<const unsigned char*>(memory_);
  prepare(own_weights_);
}

void LoadedExecutable::prepare(const unsigned char* raw) {
  firn_rt2_call call{};
  call.size = sizeof call;
  call.arena = reinterpret_cast<unsigned char*>(memory_);
  call.weights = raw;
  prepare_(&call);
}

std::span<const std::byte> LoadedExecutable::own_weights() const {
  return {reinterpret_cast<const std::byte*>(own_weights_),
          static_cast<size_t>(description_.embedded_weight_bytes())};
}

Result LoadedExecutable::refit(std::span<const std::byte> raw) {
  const artifact::ModelDescription& d = description_;
  FIRN_CHECK(d.raw_weight_bytes && static_cast<int64_t>(raw.size()) == *d.raw_weight_bytes && memory_,
             "refitting a model that holds packed weights");
  auto given = reinterpret_cast<const unsigned char*>(raw.data());
  for (const artifact::RawWeights& tensor : d.raw_weights) {
    if (tensor.may_change) continue;
    const firn_rt2_range range = {static_cast<size_t>(tensor.offset), static_cast<size_t>(tensor.bytes)};
    if (firn_status status = firn_rt2_check_weights(given, own_weights_, &range, 1); status != FIRN_STATUS_OK)
      return usage_error(firn_rt2_status_message(status));
  }
  if (prepare_)
    prepare(given);
  else
    std::copy(raw.begin(), raw.end(), memory_);
  return {};
}

} // namespace firn::driver
