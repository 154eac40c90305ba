// Safetensors: the size of a JSON text, that text, and the elements of all tensors.
#include "compiler/artifact/manifest.h"
#include "compiler/driver/train/tensor_file.h"

namespace firn::driver {
namespace {

constexpr size_t kAlignment = 8; // the first element lies at a multiple of it

const char* name_of(DType dtype) {
  switch (dtype) {
  case DType::F64: return "F64";
  case DType::F32: return "F32";
  case DType::F16: return "F16";
  case DType::BF16: return "BF16";
  case DType::I64: return "I64";
  case DType::I32: return "I32";
  case DType::I16: return "I16";
  case DType::I8: return "I8";
  case DType::U8: return "U8";
  case DType::Bool: return "BOOL";
  default: return nullptr;
  }
}

} // namespace

Expected<std::string> safetensors_bytes(const std::string& path, const NamedTensors& tensors) {
  std::string header = "{", data;
  for (const auto& [name, tensor] : tensors) {
    const char* dtype = name_of(tensor->dtype());
    if (!dtype)
      return usage_error("'" + path + "': .safetensors files cannot hold " + tensor->type().to_string());
    std::string dims;
    for (int64_t dim : tensor->dims()) dims += (dims.empty() ? "" : ",") + std::to_string(dim);
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(tensor->bytes().data()), tensor->bytes().size());
    header += (header.size() > 1 ? "," : "") + artifact::json_string(name) + ":{\"dtype\":\"" + dtype +
              "\",\"shape\":[" + dims + "],\"data_offsets\":[" + std::to_string(begin) + "," +
              std::to_string(data.size()) + "]}";
  }
  header += "}";
  header.resize((header.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> 8 * i & 255);
  return bytes + header + data;
}

} // namespace firn::driver
