// NumPy's .npy format: magic, version, a Python dict literal as header, raw elements. Types that NumPy lacks
// are stored as the package ml_dtypes saves them: as bytes without a type, which the model's input gives
// them; elements of fewer than 8 bits take a byte each.
#include "compiler/driver/npy_text.h"
#include "compiler/driver/run.h"
#include "compiler/support/output_set.h"

#include <array>
#include <cstring>

namespace firn::driver {
namespace {

struct Descriptor {
  std::string_view text;
  DType dtype;
};
constexpr std::array kDescriptors = {
    Descriptor{"f8", DType::F64}, Descriptor{"f4", DType::F32},   Descriptor{"f2", DType::F16},
    Descriptor{"i8", DType::I64}, Descriptor{"i4", DType::I32},   Descriptor{"i2", DType::I16},
    Descriptor{"i1", DType::I8},  Descriptor{"u8", DType::U64},   Descriptor{"u4", DType::U32},
    Descriptor{"u2", DType::U16}, Descriptor{"u1", DType::U8},    Descriptor{"b1", DType::Bool},
    Descriptor{"c8", DType::C64}, Descriptor{"c16", DType::C128}, Descriptor{"V2", DType::BF16}};

bool is_bytes_in_files(DType dtype) {
  return is_small_float(dtype) || is_sub_byte(dtype);
}

LiteralRef from_bytes(DType dtype, const Literal& bytes) {
  auto literal = std::make_shared<Literal>(dtype, bytes.dims());
  for (int64_t i = 0; i < bytes.num_elements(); ++i) {
    int64_t code = bytes.get_int(i);
    if (!is_sub_byte(dtype))
      literal->mutable_data<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(code);
    else if (is_float(dtype))
      literal->set_double(i, float8_to_float(dtype, static_cast<uint8_t>(code & 15)));
    else
      literal->set_int(i, code);
  }
  return literal;
}

std::string to_bytes(const Literal& literal) {
  auto elements = literal.bytes();
  if (!is_sub_byte(literal.dtype())) return {reinterpret_cast<const char*>(elements.data()), elements.size()};
  std::string bytes;
  for (int64_t i = 0; i < literal.num_elements(); ++i)
    bytes +=
        static_cast<char>(is_float(literal.dtype())
                              ? double_to_float8(literal.dtype(), literal.get_double(i), /*saturate=*/true)
                              : literal.get_int(i));
  return bytes;
}

// The text after 'key': in the header, up to the next comma outside parentheses.
std::string_view header_value(std::string_view header, std::string_view key) {
  size_t at = header.find("'" + std::string(key) + "'");
  if (at == header.npos) return {};
  at = header.find(':', at);
  if (at == header.npos) return {};
  size_t end = ++at;
  for (int depth = 0; end < header.size() && (depth > 0 || (header[end] != ',' && header[end] != '}')); ++end)
    depth += header[end] == '(' ? 1 : header[end] == ')' ? -1 : 0;
  while (at < end && header[at] == ' ') ++at;
  return header.substr(at, end - at);
}

bool parse_shape(std::string_view text, std::vector<int64_t>& dims) {
  if (text.empty() || text.front() != '(') return false;
  int64_t value = -1;
  for (char c : text.substr(1)) {
    if (c >= '0' && c <= '9') {
      value = std::max<int64_t>(value, 0) * 10 + (c - '0');
      if (value > int64_t(1) << 48) return false;
    } else if (c == ',' || c == ')') {
      if (value >= 0) dims.push_back(value);
      value = -1;
    }
  }
  return true;
}

// Brings column-major elements of `size` bytes into row-major order.
void transpose_elements(const std::vector<int64_t>& dims, size_t size, const std::byte* from, std::byte* to,
                        int64_t count) {
  std::vector<int64_t> index(dims.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0, stride = 1;
    for (size_t d = 0; d < dims.size(); ++d) offset += index[d] * stride, stride *= dims[d];
    std::memcpy(to + static_cast<size_t>(i) * size, from + static_cast<size_t>(offset) * size, size);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
}

} // namespace

Expected<LiteralRef> read_npy(const std::string& path, DType wanted) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  return read_npy(*file, 0, (*file)->bytes().size(), path, wanted);
}

Expected<LiteralRef> read_npy(const std::shared_ptr<const MappedFile>& file, size_t offset, size_t size,
                              const std::string& path, DType wanted) {
  auto bytes = file->bytes().subspan(offset, size);
  auto broken = [&](const char* what) {
    return usage_error("'" + path + "' is not a .npy file that can be read: " + what);
  };
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() < 12 || !text.starts_with("\x93NUMPY")) return broken("wrong magic");
  bool wide = text[6] >= 2;
  size_t header_size = 0;
  for (int i = 0; i < (wide ? 4 : 2); ++i)
    header_size |= static_cast<size_t>(static_cast<uint8_t>(text[8 + static_cast<size_t>(i)])) << (8 * i);
  size_t start = wide ? 12 : 10;
  if (header_size > text.size() - start) return broken("cut short");
  std::string_view header = text.substr(start, header_size), descriptor = header_value(header, "descr");
  std::optional<DType> dtype;
  if (descriptor.size() >= 4 && descriptor[1] != '>')
    for (const Descriptor& row : kDescriptors)
      if (descriptor.substr(2, descriptor.size() - 3) == row.text) dtype = row.dtype;
  if (auto size = npy_text_bytes(descriptor)) {
    std::vector<int64_t> dims;
    std::string_view data = text.substr(start + header_size);
    if (!parse_shape(header_value(header, "shape"), dims)) return broken("broken shape");
    auto count = checked_num_elements(dims);
    if (!count || static_cast<size_t>(*count) > data.size() / std::max<size_t>(*size, 1) ||
        static_cast<size_t>(*count) * *size != data.size() || *size == 0)
      return broken("size differs from shape");
    if (header_value(header, "fortran_order") == "True" && dims.size() > 1)
      return broken("strings in column-major order");
    LiteralRef literal = read_npy_text(descriptor, dims, data);
    return literal ? Expected<LiteralRef>(literal) : broken("characters that Unicode lacks");
  }
  bool is_bytes = is_bytes_in_files(wanted) && descriptor.size() == 5 && descriptor.substr(2, 2) == "V1";
  if (is_bytes) dtype = DType::U8;
  if (!dtype) return broken("unknown element type");
  std::vector<int64_t> dims;
  if (!parse_shape(header_value(header, "shape"), dims)) return broken("broken shape");
  auto count = checked_num_elements(dims);
  if (!count || byte_size(*dtype, static_cast<size_t>(*count)) != text.size() - start - header_size)
    return broken("size differs from shape");
  auto meant = [&](LiteralRef read) { return is_bytes ? from_bytes(wanted, *read) : read; };
  bool by_columns = header_value(header, "fortran_order") == "True";
  constexpr size_t kAlignment = 16; // alignment of the widest element
  if (!by_columns && (offset + start + header_size) % kAlignment == 0)
    return meant(Literal::mapped(*dtype, dims, file, offset + start + header_size));
  auto literal = std::make_shared<Literal>(*dtype, dims);
  if (!by_columns) {
    std::memcpy(literal->mutable_bytes().data(), bytes.data() + start + header_size, literal->bytes().size());
    return meant(literal);
  }
  transpose_elements(dims, static_cast<size_t>(bit_width(*dtype)) / 8, bytes.data() + start + header_size,
                     literal->mutable_bytes().data(), *count);
  return meant(literal);
}

namespace {

std::string npy_file(const std::string& descriptor, const Literal& literal, const std::string& data) {
  std::string header = "{'descr': '" + descriptor + "', 'fortran_order': False, 'shape': (";
  for (int64_t dim : literal.dims()) header += std::to_string(dim) + ",";
  header += "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += {static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  return bytes + header + data;
}

} // namespace

Expected<std::string> npy_bytes(const std::string& path, const Literal& literal) {
  if (literal.dtype() == DType::String) {
    auto text = write_npy_text(literal);
    if (!text) return usage_error("'" + path + "': .npy files cannot hold it: " + text.error().message);
    return npy_file(text->descriptor, literal, text->data);
  }
  bool is_bytes = is_bytes_in_files(literal.dtype());
  std::string_view type = is_bytes ? "V1" : "";
  for (const Descriptor& row : kDescriptors)
    if (row.dtype == literal.dtype()) type = row.text;
  if (type.empty())
    return usage_error("'" + path + "': .npy files cannot hold " + std::string(dtype_name(literal.dtype())));
  bool single = bit_width(literal.dtype()) <= 8;
  return npy_file((single ? "|" : "<") + std::string(type), literal, to_bytes(literal));
}

} // namespace firn::driver
