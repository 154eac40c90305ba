// Reading of TensorProto and SparseTensorProto.
#include "compiler/frontend/onnx/wire/tensor_data.h"

#include "compiler/frontend/onnx/onnx.pb.h"

#include <algorithm>
#include <charconv>

namespace firn::onnx {
namespace {

struct DTypeNumber {
  int number;
  DType dtype;
};
constexpr DTypeNumber kDTypes[] = {
    {1, DType::F32},       {2, DType::U8},          {3, DType::I8},      {4, DType::U16},
    {5, DType::I16},       {6, DType::I32},         {7, DType::I64},     {8, DType::String},
    {9, DType::Bool},      {10, DType::F16},        {11, DType::F64},    {12, DType::U32},
    {13, DType::U64},      {14, DType::C64},        {15, DType::C128},   {16, DType::BF16},
    {17, DType::F8E4M3FN}, {18, DType::F8E4M3FNUZ}, {19, DType::F8E5M2}, {20, DType::F8E5M2FNUZ},
    {21, DType::U4},       {22, DType::I4},         {23, DType::F4E2M1}, {24, DType::F8E8M0},
    {25, DType::U2},       {26, DType::I2},
};

// Literals that are not aligned to their element are copied up to this size, so that readers may use typed
// pointers; beyond it only streaming readers are expected.
constexpr size_t kCopyBytes = size_t{1} << 20;

std::string dims_text(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

Expected<std::vector<int64_t>> read_dims(const google::protobuf::RepeatedField<int64_t>& wire_dims) {
  if (wire_dims.size() > kMaxRank)
    return model_error("rank " + std::to_string(wire_dims.size()) + ", the largest allowed is " +
                       std::to_string(kMaxRank));
  std::vector<int64_t> dims(wire_dims.begin(), wire_dims.end());
  auto count = checked_num_elements(dims);
  if (!count) return model_error("dims " + dims_text(dims) + " are negative or too large");
  return dims;
}

Diagnostic wrong_count(const std::string& field, size_t found, size_t wanted, const std::string& type) {
  return model_error(type + " has " + std::to_string(found) + " " + field + ", wants " +
                     std::to_string(wanted));
}

LiteralRef literal_at(DType dtype, const std::vector<int64_t>& dims, std::shared_ptr<const MappedFile> file,
                      size_t offset, size_t size) {
  size_t alignment = static_cast<size_t>(std::max(1, bit_width(dtype) / 8));
  if (is_complex(dtype)) alignment /= 2;
  const std::byte* data = file->bytes().data() + offset;
  bool aligned = reinterpret_cast<uintptr_t>(data) % alignment == 0;
  if (aligned || size > kCopyBytes) return Literal::mapped(dtype, dims, std::move(file), offset);
  auto literal = std::make_shared<Literal>(dtype, dims);
  std::copy_n(data, size, literal->mutable_bytes().data());
  return literal;
}

std::optional<uint64_t> parse_number(const std::string& text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Expected<LiteralRef> read_external(const wire::TensorProto& tensor, DType dtype,
                                   const std::vector<int64_t>& dims, size_t size, TensorSource& source) {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length") continue;
    auto number = parse_number(entry.value());
    if (!number)
      return model_error("external data has " + entry.key() + " '" + entry.value() + "', wants a number");
    (entry.key() == "offset" ? offset : length.emplace()) = *number;
  }
  if (location.empty()) return model_error("external data has no location");
  if (source.folder.empty())
    return usage_error(
        "external data '" + location +
        "' of a model that has no folder: give the path of the model's file, or the folder of a "
        "model in memory");
  auto& file = source.external[location];
  if (!file) {
    auto opened = MappedFile::open_beneath(source.folder, location);
    if (!opened) return opened.error();
    file = *opened;
  }
  if (length && *length != size)
    return model_error("external data has " + std::to_string(*length) + " bytes, " +
                       std::string(dtype_name(dtype)) + dims_text(dims) + " wants " + std::to_string(size));
  size_t available = file->bytes().size();
  if (offset > available || size > available - offset)
    return model_error("external data '" + location + "' has " + std::to_string(available) +
                       " bytes, wanted " + std::to_string(size) + " at offset " + std::to_string(offset));
  return literal_at(dtype, dims, file, offset, size);
}

template <class Field> void copy_numbers(const Field& field, size_t width, std::byte* to) {
  for (int i = 0; i < field.size(); ++i) {
    auto value = field.Get(i);
    std::memcpy(to + static_cast<size_t>(i) * width, &value, width); // little-endian: the low bytes
  }
}

// Typed fields: which one holds a dtype's elements, and how many entries it wants. Elements narrower than a
// byte come packed, one byte per entry.
Expected<LiteralRef> read_typed(const wire::TensorProto& tensor, DType dtype,
                                const std::vector<int64_t>& dims) {
  auto count = static_cast<size_t>(*checked_num_elements(dims));
  std::string type = std::string(dtype_name(dtype)) + dims_text(dims);
  int bits = bit_width(dtype);
  size_t wanted = bits < 8 ? byte_size(dtype, count) : is_complex(dtype) ? 2 * count : count;
  auto read = [&](const auto& field, const char* name, size_t width) -> Expected<LiteralRef> {
    if (static_cast<size_t>(field.size()) != wanted)
      return wrong_count(std::string("values in ") + name, static_cast<size_t>(field.size()), wanted, type);
    auto literal = std::make_shared<Literal>(dtype, dims);
    copy_numbers(field, width, literal->mutable_bytes().data());
    return LiteralRef(literal);
  };
  switch (dtype) {
  case DType::F32:
  case DType::C64: return read(tensor.float_data(), "float_data", 4);
  case DType::F64:
  case DType::C128: return read(tensor.double_data(), "double_data", 8);
  case DType::I64: return read(tensor.int64_data(), "int64_data", 8);
  case DType::U64: return read(tensor.uint64_data(), "uint64_data", 8);
  case DType::U32: return read(tensor.uint64_data(), "uint64_data", 4);
  default: return read(tensor.int32_data(), "int32_data", static_cast<size_t>(std::max(1, bits / 8)));
  }
}

Expected<LiteralRef> read_strings(const wire::TensorProto& tensor, const std::vector<int64_t>& dims) {
  auto count = static_cast<size_t>(*checked_num_elements(dims));
  if (static_cast<size_t>(tensor.string_data_size()) != count)
    return wrong_count("values in string_data", static_cast<size_t>(tensor.string_data_size()), count,
                       "string" + dims_text(dims));
  return Literal::strings(dims, {tensor.string_data().begin(), tensor.string_data().end()});
}

// A bool is one byte; other values than 0 and 1 would break code that counts on it.
LiteralRef normalize_bools(const LiteralRef& literal) {
  bool clean = true;
  for (std::byte byte : literal->bytes()) clean &= static_cast<uint8_t>(byte) <= 1;
  if (clean) return literal;
  auto copy = std::make_shared<Literal>(DType::Bool, literal->dims());
  auto to = copy->mutable_bytes();
  auto from = literal->bytes();
  for (size_t i = 0; i < to.size(); ++i) to[i] = from[i] == std::byte{0} ? std::byte{0} : std::byte{1};
  return copy;
}

} // namespace

std::optional<DType> dtype_from_wire(int number) {
  for (const auto& row : kDTypes)
    if (row.number == number) return row.dtype;
  return std::nullopt;
}

int dtype_to_wire(DType dtype) {
  for (const auto& row : kDTypes)
    if (row.dtype == dtype) return row.number;
  FIRN_UNREACHABLE("dtype without a number in the wire format");
}

std::string wire_dtype_name(int number) {
  auto dtype = dtype_from_wire(number);
  return dtype ? std::string(dtype_name(*dtype)) : "element type " + std::to_string(number);
}

Expected<LiteralRef> read_tensor(const wire::TensorProto& tensor, TensorSource& source) {
  auto dtype = dtype_from_wire(tensor.data_type());
  if (!dtype) return model_error("unknown " + wire_dtype_name(tensor.data_type()));
  if (tensor.has_segment()) return model_error("data in segments is not supported by ONNX and Firn");
  auto dims = read_dims(tensor.dims());
  if (!dims) return dims.error();
  size_t count = static_cast<size_t>(*checked_num_elements(*dims));
  if (*dtype == DType::String) {
    if (tensor.has_raw_offset() || tensor.data_location() == 1)
      return model_error("strings cannot be raw data");
    return read_strings(tensor, *dims);
  }
  size_t size = byte_size(*dtype, count);
  Expected<LiteralRef> literal = LiteralRef();
  if (tensor.data_location() == 1) {
    literal = read_external(tensor, *dtype, *dims, size, source);
  } else if (tensor.has_raw_offset()) {
    if (tensor.raw_length() != size)
      return model_error(std::string(dtype_name(*dtype)) + dims_text(*dims) + " has " +
                         std::to_string(tensor.raw_length()) + " bytes of raw data, wants " +
                         std::to_string(size));
    literal = literal_at(*dtype, *dims, source.file, tensor.raw_offset(), size);
  } else {
    literal = read_typed(tensor, *dtype, *dims);
  }
  if (literal && *dtype == DType::Bool) return normalize_bools(*literal);
  return literal;
}

Expected<LiteralRef> read_sparse_tensor(const wire::SparseTensorProto& tensor, TensorSource& source) {
  auto dims = read_dims(tensor.dims());
  if (!dims) return dims.error();
  int64_t count = *checked_num_elements(*dims);
  if (count > kMaxDenseElements)
    return model_error("sparse tensor of " + std::to_string(count) + " elements, at most " +
                       std::to_string(kMaxDenseElements) + " are made dense");
  auto values = read_tensor(tensor.values(), source);
  if (!values) return values.error();
  auto indices = read_tensor(tensor.indices(), source);
  if (!indices) return indices.error();
  const Literal &value = **values, &index = **indices;
  if (value.dims().size() != 1 || value.dtype() == DType::String || bit_width(value.dtype()) < 8)
    return model_error("values of a sparse tensor are " + value.type().to_string() +
                       ", wants a vector of numbers");
  auto rank = static_cast<int64_t>(dims->size());
  bool linear = index.dims().size() == 1;
  bool fits = index.dtype() == DType::I64 &&
              (linear || (index.dims().size() == 2 && index.dims()[1] == rank)) &&
              index.dims()[0] == value.dims()[0];
  if (!fits)
    return model_error("indices of a sparse tensor are " + index.type().to_string() + " for values " +
                       value.type().to_string() + " and rank " + std::to_string(rank));
  auto dense = std::make_shared<Literal>(value.dtype(), *dims);
  auto strides = row_major_strides(*dims);
  size_t width = static_cast<size_t>(bit_width(value.dtype())) / 8;
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    int64_t at = linear ? index.get_int(i) : 0;
    for (int64_t d = 0; !linear && d < rank; ++d) {
      int64_t coordinate = index.get_int(i * rank + d);
      if (coordinate < 0 || coordinate >= (*dims)[static_cast<size_t>(d)])
        return model_error("index " + std::to_string(coordinate) +
                           " of a sparse tensor is out of range for dims " + dims_text(*dims));
      at += coordinate * strides[static_cast<size_t>(d)];
    }
    if (at < 0 || at >= count)
      return model_error("index " + std::to_string(at) + " of a sparse tensor is out of range for dims " +
                         dims_text(*dims));
    std::memcpy(dense->mutable_bytes().data() + static_cast<size_t>(at) * width,
                value.bytes().data() + static_cast<size_t>(i) * width, width);
  }
  return LiteralRef(dense);
}

} // namespace firn::onnx
