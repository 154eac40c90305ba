// See quantised_model.h.
#include "tests/passes/quantised_model.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace firn::test {
namespace {

// Numbers of TensorProto.DataType.
int wire_type(DType dtype) {
  switch (dtype) {
  case DType::U8: return 2;
  case DType::I8: return 3;
  case DType::U16: return 4;
  case DType::I16: return 5;
  case DType::I32: return 6;
  case DType::U4: return 21;
  case DType::I4: return 22;
  default: return 1;
  }
}

int64_t count_of(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

int64_t min_of(DType dtype) {
  return is_signed(dtype) ? -(int64_t{1} << (bit_width(dtype) - 1)) : 0;
}

int64_t middle_of(DType dtype) {
  return min_of(dtype) + (int64_t{1} << (bit_width(dtype) - 1));
}

std::vector<uint8_t> stored(DType dtype, const std::vector<int64_t>& values) {
  std::vector<uint8_t> bytes(byte_size(dtype, values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<uint64_t>(values[i]);
    if (is_sub_byte(dtype)) {
      bytes[i / 2] = static_cast<uint8_t>(bytes[i / 2] | (value & 15) << i % 2 * 4);
      continue;
    }
    const size_t width = byte_size(dtype, 1);
    for (size_t byte = 0; byte < width; ++byte)
      bytes[i * width + byte] = static_cast<uint8_t>(value >> 8 * byte);
  }
  return bytes;
}

} // namespace

std::string QuantisedModel::input(const Dims& dims) {
  std::string name = next();
  graph_.inputs.push_back(value(name, F32, {dims.begin(), dims.end()}));
  return name;
}

std::string QuantisedModel::index_input(const Dims& dims) {
  std::string name = next();
  graph_.inputs.push_back(value(name, I64, {dims.begin(), dims.end()}));
  return name;
}

Names QuantisedModel::ops(const std::string& type, const Names& inputs, int results,
                          const AttributeList& attributes, const std::string& domain) {
  Names names;
  while (static_cast<int>(names.size()) < results) names.push_back(next());
  graph_.nodes.push_back(node(type, inputs, names, attributes, domain));
  return names;
}

std::string QuantisedModel::op(const std::string& type, const Names& inputs, const AttributeList& attributes,
                               const std::string& domain) {
  return ops(type, inputs, 1, attributes, domain)[0];
}

std::string QuantisedModel::constant(const Message& tensor, int64_t bytes) {
  graph_.initializers.push_back(tensor);
  bytes_ += bytes;
  return "v" + std::to_string(values_);
}

std::string QuantisedModel::tensor(DType dtype, const Dims& dims, int64_t min, int64_t max) {
  std::vector<int64_t> values(static_cast<size_t>(count_of(dims)));
  std::uniform_int_distribution<int64_t> any(min, max);
  for (int64_t& each : values) each = any(random_);
  std::vector<uint8_t> bytes = stored(dtype, values);
  return constant(tensor_header(next(), wire_type(dtype), dims).raw(9, bytes),
                  static_cast<int64_t>(bytes.size()));
}

std::string QuantisedModel::floats(const Dims& dims) {
  std::vector<float> values(static_cast<size_t>(count_of(dims)));
  for (float& each : values) each = std::uniform_real_distribution<float>(-1, 1)(random_);
  return constant(test::floats(next(), dims, values), static_cast<int64_t>(4 * values.size()));
}

std::string QuantisedModel::scalar(float value) {
  return constant(test::floats(next(), {}, {value}), 4);
}

std::string QuantisedModel::zero_point(DType dtype, int64_t value) {
  return tensor(dtype, {}, value, value);
}

std::string QuantisedModel::indices(const std::vector<int64_t>& values) {
  return constant(ints(next(), values), 0);
}

std::string QuantisedModel::bias(int64_t count) {
  std::string values = tensor(DType::I32, {count}, -2000, 2000);
  return op("DequantizeLinear", {values, scalar(3e-4f)});
}

std::string QuantisedModel::scales(const Dims& dims) {
  std::vector<float> values(static_cast<size_t>(count_of(dims)));
  for (float& each : values) each = std::uniform_real_distribution<float>(.005f, .015f)(random_);
  return constant(test::floats(next(), dims, values), static_cast<int64_t>(4 * values.size()));
}

std::string QuantisedModel::quantise(const std::string& value) {
  const auto [dtype, zero] = activations_;
  if (dtype == DType::F32) return value;
  return op("QuantizeLinear", {value, scalar(is_wide() ? 1e-4f : .03f), zero_point(dtype, zero)});
}

std::string QuantisedModel::dequantise(const std::string& value) {
  const auto [dtype, zero] = activations_;
  if (dtype == DType::F32) return value;
  return op("DequantizeLinear", {value, scalar(is_wide() ? 1e-4f : .03f), zero_point(dtype, zero)});
}

std::string QuantisedModel::qdq(const std::string& value) {
  return dequantise(quantise(value));
}

// Beside activations of 16 bits numbers are small, so that i32 holds every sum.
std::string QuantisedModel::integers(const Dims& dims) {
  const DType dtype = weights_.dtype;
  const bool has_middle = is_signed(dtype) || weights_.zero_points != ZeroPoints::None;
  int64_t min = min_of(dtype), max = 2 * middle_of(dtype) - min - 1;
  const int64_t near = has_middle ? middle_of(dtype) : 0;
  if (is_wide()) min = std::max(min, near - 12), max = std::min(max, near + 12);
  const int64_t before = bytes_;
  std::string name = tensor(dtype, dims, min, max);
  weight_bytes_ += bytes_ - before;
  return name;
}

std::string QuantisedModel::zero_points(const Dims& dims) {
  const int64_t away = weights_.zero_points != ZeroPoints::Any ? 0 : weights_.bits() == 4 ? 2 : 20;
  const int64_t middle = middle_of(weights_.dtype);
  return tensor(weights_.dtype, dims, middle - away, middle + away);
}

std::string QuantisedModel::packed(const Dims& dims) {
  const int64_t before = bytes_;
  std::string name = tensor(DType::U8, dims, 0, 255);
  weight_bytes_ += bytes_ - before;
  return name;
}

std::string QuantisedModel::packed_zero_points(const Dims& dims) {
  if (weights_.zero_points == ZeroPoints::None) return "";
  const int64_t middle = weights_.bits() == 4 ? 0x88 : 0x80;
  const bool is_any = weights_.zero_points == ZeroPoints::Any;
  return tensor(DType::U8, dims, is_any ? 0 : middle, is_any ? 255 : middle);
}

Dims QuantisedModel::parameter_dims(const Dims& dims, int64_t channels, int64_t steps) const {
  if (weights_.scale_per == Per::Tensor) return {};
  if (weights_.scale_per == Per::Channel) return {dims[static_cast<size_t>(channels)]};
  Dims blocks = dims;
  blocks[static_cast<size_t>(steps)] /= kBlock;
  return blocks;
}

std::string QuantisedModel::weights(const Dims& dims, int64_t channels, int64_t steps) {
  const Dims parameters = parameter_dims(dims, channels, steps);
  Names inputs = {integers(dims)};
  inputs.push_back(scales(parameters));
  if (weights_.zero_points != ZeroPoints::None) inputs.push_back(zero_points(parameters));
  AttributeList attributes;
  if (weights_.scale_per == Per::Channel) attributes = {attribute("axis", channels)};
  if (weights_.scale_per == Per::Block)
    attributes = {attribute("axis", steps), attribute("block_size", kBlock)};
  return op("DequantizeLinear", inputs, attributes);
}

std::string QuantisedModel::float_weights(const Dims& dims, int64_t channels) {
  const Dims parameters = parameter_dims(dims, channels, 1);
  std::string values = floats(dims), scale = scales(parameters);
  const int64_t count = count_of(dims);
  const auto integer_bytes = static_cast<int64_t>(byte_size(weights_.dtype, static_cast<size_t>(count)));
  bytes_ += integer_bytes - 4 * count;
  weight_bytes_ += integer_bytes;
  AttributeList attributes;
  if (!parameters.empty()) attributes = {attribute("axis", channels)};
  std::string zero = zero_points(parameters); // says the type, so that it is never left out
  std::string quantised = op("QuantizeLinear", {values, scale, zero}, attributes);
  return op("DequantizeLinear", {quantised, scale, zero}, attributes);
}

std::string QuantisedModel::encode(const std::string& output) {
  Model model;
  graph_.outputs = {Message().text(1, output)};
  model.graph = graph_;
  model.opsets = {{"", 21}, {"com.microsoft", 1}};
  return model.encode();
}

} // namespace firn::test
