// Constant tensors: storage and element access.
#include "compiler/graph/literal.h"

#include "compiler/graph/derivation.h"
#include "compiler/support/sha256.h"

#include <algorithm>
#include <cmath>

namespace firn {
namespace {

int64_t product(const std::vector<int64_t>& dims) {
  auto count = checked_num_elements(dims);
  FIRN_CHECK(count, "literal of broken dims");
  return *count;
}

template <class T> T read(std::span<const std::byte> bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}
template <class T> void write(std::span<std::byte> bytes, int64_t index, T value) {
  std::memcpy(bytes.data() + static_cast<size_t>(index) * sizeof(T), &value, sizeof(T));
}

uint8_t read_bits(std::span<const std::byte> bytes, int64_t index, int width) {
  int per_byte = 8 / width;
  auto byte = static_cast<uint8_t>(bytes[static_cast<size_t>(index / per_byte)]);
  return static_cast<uint8_t>(byte >> (index % per_byte * width) & ((1 << width) - 1));
}

void write_bits(std::span<std::byte> bytes, int64_t index, int width, uint64_t value) {
  int per_byte = 8 / width;
  auto& byte = bytes[static_cast<size_t>(index / per_byte)];
  int shift = static_cast<int>(index % per_byte) * width;
  unsigned mask = (1u << width) - 1;
  unsigned old = static_cast<unsigned>(byte) & ~(mask << shift);
  byte = static_cast<std::byte>(old | (static_cast<unsigned>(value) & mask) << shift);
}

int64_t sign_extend(uint8_t bits, int width) {
  int64_t value = bits;
  return value >= int64_t(1) << (width - 1) ? value - (int64_t(1) << width) : value;
}

// The integer part as the low 64 bits that a truncating conversion keeps.
int64_t truncate(double value) {
  if (std::isnan(value)) return INT64_MIN;
  if (value >= 9223372036854775808.0)
    return value < 18446744073709551616.0 ? static_cast<int64_t>(static_cast<uint64_t>(value)) : INT64_MIN;
  if (value < -9223372036854775808.0) return INT64_MIN;
  return static_cast<int64_t>(value);
}

} // namespace

Literal::Literal(DType dtype, std::vector<int64_t> dims)
    : dtype_(dtype), dims_(std::move(dims)), num_elements_(product(dims_)) {
  if (dtype == DType::String)
    strings_.resize(static_cast<size_t>(num_elements_));
  else
    owned_.resize(firn::byte_size(dtype, static_cast<size_t>(num_elements_)));
}

LiteralRef Literal::mapped(DType dtype, std::vector<int64_t> dims, std::shared_ptr<const MappedFile> file,
                           size_t offset) {
  auto literal = std::shared_ptr<Literal>(new Literal);
  literal->dtype_ = dtype;
  literal->dims_ = std::move(dims);
  literal->num_elements_ = product(literal->dims_);
  size_t size = firn::byte_size(dtype, static_cast<size_t>(literal->num_elements_));
  FIRN_CHECK(offset <= file->bytes().size() && size <= file->bytes().size() - offset,
             "literal beyond its file");
  literal->shared_ = file->bytes().subspan(offset, size);
  literal->keep_alive_ = std::move(file);
  return literal;
}

LiteralRef Literal::opaque(DType dtype, std::vector<int64_t> dims, std::string hash) {
  auto literal = std::shared_ptr<Literal>(new Literal);
  literal->dtype_ = dtype;
  literal->dims_ = std::move(dims);
  literal->num_elements_ = product(literal->dims_);
  literal->opaque_ = true;
  literal->hash_ = std::move(hash);
  return literal;
}

LiteralRef Literal::strings(std::vector<int64_t> dims, std::vector<std::string> values) {
  auto literal = std::make_shared<Literal>(DType::String, std::move(dims));
  FIRN_CHECK(values.size() == literal->strings_.size(), "string literal with wrong element count");
  literal->strings_ = std::move(values);
  return literal;
}

LiteralRef Literal::splat(DType dtype, std::vector<int64_t> dims, double value) {
  auto literal = std::make_shared<Literal>(dtype, std::move(dims));
  // One byte's worth of elements (or one element), then copies of it.
  int64_t first = bit_width(dtype) < 8 ? 8 / bit_width(dtype) : 1;
  for (int64_t i = 0; i < std::min(first, literal->num_elements_); ++i) literal->set_double(i, value);
  auto raw = literal->mutable_bytes();
  auto size = std::min(firn::byte_size(dtype, static_cast<size_t>(first)), raw.size());
  for (size_t at = size; at < raw.size(); at += size) std::memcpy(raw.data() + at, raw.data(), size);
  // The bits after the last element of a part-filled byte stay zero, so that equal literals have equal bytes.
  for (int64_t i = literal->num_elements_; bit_width(dtype) < 8 && i % first != 0; ++i)
    write_bits(raw, i, bit_width(dtype), 0);
  return literal;
}

LiteralRef Literal::of_i64(const std::vector<int64_t>& values) {
  return of(DType::I64, {static_cast<int64_t>(values.size())}, values);
}

bool Literal::values_may_be_used() const {
  if (fixed_ || !refittable_) return true;
  if (!derivation_) return false;
  const std::vector<LiteralRef>& operands = derivation_->operands;
  return std::all_of(operands.begin(), operands.end(),
                     [](const LiteralRef& operand) { return operand->values_may_be_used(); });
}

void Literal::fix_values() const {
  if (fixed_ || !refittable_) return;
  fixed_ = true;
  if (derivation_)
    for (const LiteralRef& operand : derivation_->operands) operand->fix_values();
}

std::span<const std::byte> Literal::bytes() const {
  fix_values();
  return plain_bytes();
}

std::span<const std::byte> Literal::plain_bytes() const {
  FIRN_CHECK(!opaque_, "reading an opaque literal");
  return keep_alive_ ? shared_ : std::span<const std::byte>(owned_);
}

std::span<std::byte> Literal::mutable_bytes() {
  FIRN_CHECK(!keep_alive_ && !opaque_, "writing a shared literal");
  return owned_;
}

double Literal::get_double(int64_t i) const {
  auto raw = bytes();
  switch (dtype_) {
  case DType::F64:
  case DType::C128: return read<double>(raw, dtype_ == DType::C128 ? 2 * i : i);
  case DType::F32:
  case DType::C64: return read<float>(raw, dtype_ == DType::C64 ? 2 * i : i);
  case DType::F16: return half_to_float(read<uint16_t>(raw, i));
  case DType::BF16: return bfloat16_to_float(read<uint16_t>(raw, i));
  case DType::F8E4M3FN:
  case DType::F8E4M3FNUZ:
  case DType::F8E5M2:
  case DType::F8E5M2FNUZ:
  case DType::F8E8M0: return float8_to_float(dtype_, read<uint8_t>(raw, i));
  case DType::F4E2M1: return float8_to_float(dtype_, read_bits(raw, i, 4));
  case DType::U64: return static_cast<double>(read<uint64_t>(raw, i));
  default: return static_cast<double>(get_int(i));
  }
}

int64_t Literal::get_int(int64_t i) const {
  auto raw = bytes();
  switch (dtype_) {
  case DType::I64:
  case DType::U64: return read<int64_t>(raw, i);
  case DType::I32: return read<int32_t>(raw, i);
  case DType::I16: return read<int16_t>(raw, i);
  case DType::I8: return read<int8_t>(raw, i);
  case DType::I4: return sign_extend(read_bits(raw, i, 4), 4);
  case DType::I2: return sign_extend(read_bits(raw, i, 2), 2);
  case DType::U32: return read<uint32_t>(raw, i);
  case DType::U16: return read<uint16_t>(raw, i);
  case DType::U8: return read<uint8_t>(raw, i);
  case DType::U4: return read_bits(raw, i, 4);
  case DType::U2: return read_bits(raw, i, 2);
  case DType::Bool: return read<uint8_t>(raw, i) != 0;
  case DType::String: FIRN_UNREACHABLE("integer of a string literal");
  default: return truncate(get_double(i));
  }
}

void Literal::set_double(int64_t i, double value) {
  auto raw = mutable_bytes();
  switch (dtype_) {
  case DType::F64: return write(raw, i, value);
  case DType::F32: return write(raw, i, static_cast<float>(value));
  case DType::C64: write(raw, 2 * i, static_cast<float>(value)); return write(raw, 2 * i + 1, 0.0f);
  case DType::C128: write(raw, 2 * i, value); return write(raw, 2 * i + 1, 0.0);
  case DType::F16: return write(raw, i, double_to_half(value));
  case DType::BF16: {
    // Rounding through f32 must not round twice: the f32 is made sticky (round to odd) first.
    auto narrow = static_cast<float>(value);
    if (std::isfinite(value) && std::isfinite(narrow) && static_cast<double>(narrow) != value) {
      uint32_t bits;
      std::memcpy(&bits, &narrow, sizeof bits);
      if (std::fabs(static_cast<double>(narrow)) > std::fabs(value)) --bits;
      bits |= 1;
      std::memcpy(&narrow, &bits, sizeof bits);
    }
    return write(raw, i, float_to_bfloat16(narrow));
  }
  case DType::F8E4M3FN:
  case DType::F8E4M3FNUZ:
  case DType::F8E5M2:
  case DType::F8E5M2FNUZ:
  case DType::F8E8M0: return write(raw, i, double_to_float8(dtype_, value, /*saturate=*/false));
  case DType::F4E2M1: return write_bits(raw, i, 4, double_to_float8(dtype_, value, /*saturate=*/true));
  case DType::Bool: return write(raw, i, static_cast<uint8_t>(value != 0));
  default: return set_int(i, truncate(value));
  }
}

void Literal::set_int(int64_t i, int64_t value) {
  auto raw = mutable_bytes();
  switch (dtype_) {
  case DType::I64:
  case DType::U64: return write(raw, i, value);
  case DType::I32:
  case DType::U32: return write(raw, i, static_cast<uint32_t>(value));
  case DType::I16:
  case DType::U16: return write(raw, i, static_cast<uint16_t>(value));
  case DType::I8:
  case DType::U8: return write(raw, i, static_cast<uint8_t>(value));
  case DType::I4:
  case DType::U4: return write_bits(raw, i, 4, static_cast<uint64_t>(value));
  case DType::I2:
  case DType::U2: return write_bits(raw, i, 2, static_cast<uint64_t>(value));
  case DType::Bool: return write(raw, i, static_cast<uint8_t>(value != 0));
  case DType::String: FIRN_UNREACHABLE("integer into a string literal");
  default: return set_double(i, static_cast<double>(value));
  }
}

std::vector<int64_t> Literal::to_ints() const {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < num_elements_; ++i) values.push_back(get_int(i));
  return values;
}

bool Literal::is_splat() const {
  if (opaque_ || !values_may_be_used()) return false;
  if (dtype_ == DType::String) {
    for (const std::string& value : strings_)
      if (value != strings_[0]) return false;
    return true;
  }
  if (bit_width(dtype_) < 8) {
    for (int64_t i = 1; i < num_elements_; ++i)
      if (read_bits(bytes(), i, bit_width(dtype_)) != read_bits(bytes(), 0, bit_width(dtype_))) return false;
    return true;
  }
  auto raw = bytes();
  size_t size = static_cast<size_t>(bit_width(dtype_)) / 8;
  return raw.size() <= size || std::memcmp(raw.data(), raw.data() + size, raw.size() - size) == 0;
}

const std::string& Literal::hash() const {
  if (hash_.empty()) {
    std::string head = type().to_string();
    std::string content = sha256_hex(std::as_bytes(std::span(head)));
    if (dtype_ == DType::String) {
      for (const std::string& value : strings_) content += std::to_string(value.size()) + ":" + value;
    } else {
      content += sha256_hex(plain_bytes());
    }
    hash_ = sha256_hex(std::as_bytes(std::span(content))).substr(0, 16);
  }
  return hash_;
}

std::shared_ptr<Literal> Literal::sharing(const LiteralRef& literal) {
  auto result = std::shared_ptr<Literal>(new Literal);
  result->dtype_ = literal->dtype_;
  result->dims_ = literal->dims_;
  result->num_elements_ = literal->num_elements_;
  result->opaque_ = literal->opaque_;
  result->hash_ = literal->hash_;
  result->strings_ = literal->strings_;
  if (literal->opaque_ || literal->dtype_ == DType::String) return result;
  result->shared_ = literal->plain_bytes();
  result->keep_alive_ = literal;
  return result;
}

LiteralRef Literal::refittable(const LiteralRef& literal) {
  auto result = sharing(literal);
  result->refittable_ = !literal->opaque_ && literal->dtype_ != DType::String;
  return result;
}

LiteralRef Literal::derived(const LiteralRef& values, std::shared_ptr<const Derivation> derivation) {
  auto result = sharing(values);
  result->refittable_ = true;
  result->derivation_ = std::move(derivation);
  return result;
}

LiteralRef Literal::plain(const LiteralRef& literal) {
  return literal->refittable_ ? sharing(literal) : literal;
}

LiteralRef Literal::reshaped(const LiteralRef& literal, std::vector<int64_t> dims) {
  FIRN_CHECK(product(dims) == literal->num_elements_, "reshaped literal with another element count");
  literal->fix_values();
  auto result = sharing(literal);
  result->dims_ = std::move(dims);
  result->hash_ = literal->opaque_ ? literal->hash_ + "r" : "";
  return result;
}

} // namespace firn
