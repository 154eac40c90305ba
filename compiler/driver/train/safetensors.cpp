// Safetensors as programs with a model's parameters load them (include/firn/saved_tensors.h).
#include "compiler/artifact/training_step.h"
#include "compiler/driver/train/tensor_file.h"

namespace firn::driver {

Expected<std::string> safetensors_bytes(const std::string& path, const NamedTensors& tensors) {
  std::vector<artifact::TensorDescription> descriptions;
  std::vector<const Literal*> literals;
  for (const auto& [name, tensor] : tensors) {
    if (tensor->dtype() != DType::F32 && tensor->dtype() != DType::F64)
      return usage_error("'" + path + "': tensors of " + tensor->type().to_string() +
                         " are not saved as .safetensors");
    artifact::TensorDescription description;
    description.name = name;
    description.dtype = tensor->dtype();
    description.dims.assign(tensor->dims().begin(), tensor->dims().end());
    description.arena_offset = static_cast<int64_t>(literals.size()); // tells which one a row is
    descriptions.push_back(std::move(description));
    literals.push_back(tensor.get());
  }
  const artifact::SavedTensors saved = artifact::saved_tensors(std::move(descriptions));
  std::string header = R"({"__metadata__":{"firn":"1"})", data;
  for (const artifact::SavedTensors::Row& row : saved.rows) {
    header += "," + row.entry;
    const auto bytes = literals[static_cast<size_t>(row.offset)]->bytes();
    data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  constexpr size_t kNumberBytes = 8; // bytes of the header's length
  header += "}";
  header.resize(static_cast<size_t>(saved.bytes) - kNumberBytes - data.size(), ' ');
  std::string bytes;
  for (size_t i = 0; i < kNumberBytes; ++i) bytes += static_cast<char>(header.size() >> 8 * i & 255);
  return bytes + header + data;
}

} // namespace firn::driver
