// The program of firn_add_golden_test(): feeds a model class the inputs of test data sets and compares its
// outputs with the stored ones.  usage: golden_test FOLDER TOLERANCE The error of an output is its largest
// |difference| over its largest |expected| (absolute if all expected are zero); NaN equals NaN, infinities
// and integers are exact.
#include FIRN_GOLDEN_HEADER
#include "stored_tensor.h"

#include <firn/owned.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace {

using Model = FIRN_GOLDEN_CLASS;
using firn::ElementType;

bool is_inexact(ElementType type) {
  return type <= ElementType::F8E8M0 || type == ElementType::C64 || type == ElementType::C128;
}

template <class T> double load(const unsigned char* bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

template <class T> double load_small(const unsigned char* bytes, std::size_t index) {
  T value;
  std::memcpy(&value.bits, bytes + index * sizeof(T), sizeof(T));
  return static_cast<double>(static_cast<float>(value));
}

// Element `index` of a tensor of floats (complex numbers count as two).
double float_at(ElementType type, const unsigned char* bytes, std::size_t index) {
  switch (type) {
  case ElementType::F64:
  case ElementType::C128: return load<double>(bytes, index);
  case ElementType::F16: return load_small<firn::half>(bytes, index);
  case ElementType::BF16: return load_small<firn::bfloat16>(bytes, index);
  case ElementType::F8E4M3FN: return load_small<firn::float8_e4m3fn>(bytes, index);
  case ElementType::F8E4M3FNUZ: return load_small<firn::float8_e4m3fnuz>(bytes, index);
  case ElementType::F8E5M2: return load_small<firn::float8_e5m2>(bytes, index);
  case ElementType::F8E5M2FNUZ: return load_small<firn::float8_e5m2fnuz>(bytes, index);
  case ElementType::F8E8M0: return load_small<firn::float8_e8m0>(bytes, index);
  default: return load<float>(bytes, index);
  }
}

std::size_t float_width(ElementType type) {
  switch (type) {
  case ElementType::F64:
  case ElementType::C128: return 8;
  case ElementType::F16:
  case ElementType::BF16: return 2;
  case ElementType::F32:
  case ElementType::C64: return 4;
  default: return 1;
  }
}

// The error measure; infinite where an exact comparison fails.
double error_of(ElementType type, const unsigned char* actual, const std::vector<unsigned char>& expected) {
  if (!is_inexact(type)) return std::memcmp(actual, expected.data(), expected.size()) == 0 ? 0 : INFINITY;
  double difference = 0, scale = 0;
  for (std::size_t i = 0; i < expected.size() / float_width(type); ++i) {
    const double a = float_at(type, actual, i), e = float_at(type, expected.data(), i);
    if ((std::isnan(a) && std::isnan(e)) || a == e) {
      if (std::isfinite(e)) scale = std::max(scale, std::fabs(e));
      continue;
    }
    if (!std::isfinite(a) || !std::isfinite(e)) return INFINITY;
    difference = std::max(difference, std::fabs(a - e));
    scale = std::max(scale, std::fabs(e));
  }
  return scale > 0 ? difference / scale : difference;
}

// The stored tensor for position `index`: the one that carries the tensor's name, else file number `index`.
bool find_tensor(const std::string& stem, const firn::TensorInfo& info, std::size_t index, std::size_t count,
                 golden::StoredTensor& tensor) {
  for (std::size_t i = 0; i < count; ++i) {
    if (golden::read_tensor(stem + std::to_string(i) + ".pb", tensor) && tensor.name == info.original_name)
      return true;
  }
  return golden::read_tensor(stem + std::to_string(index) + ".pb", tensor);
}

bool has_size(const firn::TensorInfo& info, std::size_t bytes) {
  return info.counted || info.varies ? bytes <= info.bytes : bytes == info.bytes;
}

// How many extents of a model's inputs are those that are stored.
template <class Any> std::size_t matches(const Any& model, const std::vector<golden::StoredTensor>& inputs) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t axis = 0; axis < inputs[i].dims.size(); ++axis)
      count += model.input_extent(i, axis) == static_cast<std::size_t>(inputs[i].dims[axis]);
  return count;
}

// Sets dims that vary, each to the value at which most extents are as stored: twice, as one may be the sum of
// two.
template <class Any>
auto set_dims(Any& model, const std::vector<golden::StoredTensor>& inputs, int)
    -> decltype(model.dims(), true) {
  const firn::ModelInfo& info = model.info();
  for (std::size_t i = 0; i < 2 * info.dim_count; ++i) {
    const std::size_t number = i % info.dim_count;
    std::size_t most = 0;
    std::ptrdiff_t best = info.dims[number].upper;
    for (std::ptrdiff_t value = info.dims[number].lower; value <= info.dims[number].upper; ++value) {
      if (!model.set_dim(number, value) || matches(model, inputs) <= most) continue;
      most = matches(model, inputs);
      best = value;
    }
    static_cast<void>(model.set_dim(number, best));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t axis = 0; axis < inputs[i].dims.size(); ++axis)
      if (model.input_extent(i, axis) != static_cast<std::size_t>(inputs[i].dims[axis])) return false;
  return true;
}
template <class Any> bool set_dims(Any&, const std::vector<golden::StoredTensor>&, long) {
  return true;
}

// Whether an output has the extents that are stored; where dims vary its size alone does not say so.
template <class Any>
auto has_extents(const Any& model, std::size_t output, const golden::StoredTensor& stored, int)
    -> decltype(model.dims(), true) {
  for (std::size_t axis = 0; axis < stored.dims.size(); ++axis)
    if (model.output_extent(output, axis) != static_cast<std::size_t>(stored.dims[axis])) return false;
  return true;
}
template <class Any> bool has_extents(const Any&, std::size_t, const golden::StoredTensor&, long) {
  return true;
}

// Runs one data set; prints and returns whether all outputs agree.
bool check_data_set(Model& model, const std::string& folder, double tolerance) {
  const firn::ModelInfo& info = model.info();
  std::vector<golden::StoredTensor> inputs(info.input_count);
  for (std::size_t i = 0; i < info.input_count; ++i) {
    if (!find_tensor(folder + "/input_", info.inputs[i], i, info.input_count, inputs[i]) ||
        !has_size(info.inputs[i], inputs[i].bytes.size())) {
      std::printf("%s: input '%s': %zu bytes stored, the model wants %zu\n", folder.c_str(),
                  info.inputs[i].original_name, inputs[i].bytes.size(), info.inputs[i].bytes);
      return false;
    }
    if (!model.bind_input(i, inputs[i].bytes.data())) return false;
  }
  if (!set_dims(model, inputs, 0)) {
    std::printf("%s: the model does not take inputs of these shapes\n", folder.c_str());
    return false;
  }
  std::vector<std::vector<unsigned char>> external(info.output_count);
  for (std::size_t i = 0; i < info.output_count; ++i) {
    if (!info.outputs[i].external) continue;
    external[i].resize(info.outputs[i].bytes + 1);
    if (!model.bind_output(i, external[i].data())) return false;
  }
  if (const firn::Status status = model.run(); !status) {
    std::printf("%s: %s\n", folder.c_str(), status.message());
    return false;
  }
  bool agrees = true;
  for (std::size_t i = 0; i < info.output_count; ++i) {
    golden::StoredTensor expected;
    if (!find_tensor(folder + "/output_", info.outputs[i], i, info.output_count, expected) ||
        !has_size(info.outputs[i], expected.bytes.size()) || !has_extents(model, i, expected, 0)) {
      std::printf("%s: output '%s': %zu bytes stored, the model gives %zu\n", folder.c_str(),
                  info.outputs[i].original_name, expected.bytes.size(), info.outputs[i].bytes);
      return false;
    }
    const auto* actual = static_cast<const unsigned char*>(model.output_data(i));
    const double error = error_of(info.outputs[i].dtype, actual, expected.bytes);
    std::printf("%s: %s: error %.3g\n", folder.c_str(), info.outputs[i].original_name, error);
    agrees = agrees && error <= tolerance;
  }
  return agrees;
}

std::vector<std::string> data_sets(const std::string& folder) {
  if (std::filesystem::exists(folder + "/output_0.pb")) return {folder};
  std::vector<std::string> result;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().filename().string().rfind("test_data_set_", 0) == 0)
      result.push_back(entry.path().string());
  }
  std::sort(result.begin(), result.end());
  return result;
}

// The model, on weights prepared in `memory` if its object embeds raw ones.
template <class Any> firn::Owned<Any> make_model([[maybe_unused]] std::vector<unsigned char>& memory) {
  if constexpr (std::is_constructible_v<Any, firn::ByteSpan>) {
    return firn::Owned<Any>();
  } else {
    memory.resize(Any::prepared_weight_bytes + FIRN_WEIGHT_ALIGNMENT);
    firn_status status = FIRN_STATUS_OK;
    unsigned char* weights = firn_rt2_place_arena(memory.data(), memory.size(), Any::prepared_weight_bytes,
                                                  FIRN_WEIGHT_ALIGNMENT, &status);
    return firn::Owned<Any>(Any::Weights::prepare(firn::ByteSpan(weights, Any::prepared_weight_bytes)));
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::printf("usage: %s FOLDER TOLERANCE\n", argv[0]);
    return 2;
  }
  std::vector<unsigned char> memory;
  firn::Owned<Model> model = make_model<Model>(memory);
  if (const firn::Status status = model.status(); !status && status.code() != FIRN_STATUS_NOT_BOUND) {
    std::printf("%s\n", status.message());
    return 1;
  }
  const std::vector<std::string> folders = data_sets(argv[1]);
  if (folders.empty()) std::printf("%s holds no test data\n", argv[1]);
  bool agrees = !folders.empty();
  for (const std::string& folder : folders)
    agrees = check_data_set(*model, folder, std::atof(argv[2])) && agrees;
  return agrees ? 0 : 1;
}
