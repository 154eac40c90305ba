// Code and weights of models that are compiled in this process.
#include "compiler/driver/loaded_executable.h"

#include "compiler/artifact/manifest.h"
#include "compiler/frontend/onnx/wire/tensor_data.h"

#include <algorithm>

namespace firn::driver {

std::byte* HeapMemory::allocate(int64_t bytes, int64_t alignment) {
  auto slack = static_cast<size_t>(alignment);
  // Pages of large blocks are not touched before something is written there.
  blocks_.emplace_back(new std::byte[static_cast<size_t>(bytes) + slack]);
  auto address = reinterpret_cast<uintptr_t>(blocks_.back().get());
  return blocks_.back().get() + (slack - address % slack) % slack;
}

int32_t onnx_number(DType dtype) {
  constexpr int32_t kMaxNumber = 64;
  for (int32_t number = 1; number < kMaxNumber; ++number)
    if (onnx::dtype_from_wire(number) == dtype) return number;
  return 0;
}

std::string LoadedExecutable::manifest() const {
  return artifact::write_manifest(description_);
}

Expected<std::unique_ptr<LoadedExecutable>> LoadedExecutable::load(Compilation& c, RunnerMemory& memory) {
  auto model = std::unique_ptr<LoadedExecutable>(new LoadedExecutable);
  auto code = load_code(c);
  if (!code) return code.error();
  model->code_ = std::move(*code);
  model->entry_ = reinterpret_cast<EntryFunction*>(model->code_->symbol(c.codegen.run_symbol));
  FIRN_CHECK(model->entry_, "the object lacks its function");
  model->description_ = c.description;
  model->variant_ = c.run_variant;
  if (Result loaded = model->load_weights(c, memory); !loaded) return loaded.error();
  return model;
}

// Raw weights lie in the object. Packed ones go straight to where the code reads them.
Result LoadedExecutable::load_weights(const Compilation& c, RunnerMemory& memory) {
  auto own = reinterpret_cast<const unsigned char* (*)()>(code_->symbol(c.codegen.weights_symbol));
  FIRN_CHECK(own, "the object lacks the function of its weights");
  own_weights_ = own();
  const int64_t bytes = c.prepare ? c.prepare->arena_bytes : c.program.weight_bytes;
  memory_ = memory.allocate(bytes, FIRN_WEIGHT_ALIGNMENT);
  weights_ = reinterpret_cast<const unsigned char*>(memory_);
  if (c.prepare) {
    prepare_ = reinterpret_cast<EntryFunction*>(code_->symbol(c.codegen.prepare_symbol));
    FIRN_CHECK(prepare_, "the object lacks its prepare function");
    prepare(own_weights_);
  } else if (own_weights_) {
    std::copy_n(own_weights_, bytes, reinterpret_cast<unsigned char*>(memory_));
  } else {
    kernel::write_weights(c.program, std::span(memory_, static_cast<size_t>(bytes)));
    own_weights_ = weights_;
  }
  return {};
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
  FIRN_CHECK(d.raw_weight_bytes && static_cast<int64_t>(raw.size()) == *d.raw_weight_bytes,
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
