// Constant tensors. A literal's bytes lie in memory or in a mapped file (weights are never copied to be
// named); a literal read from a dump without its side file is opaque: typed and named, without bytes.
#pragma once

#include "compiler/graph/type.h"
#include "compiler/support/mapped_file.h"

#include <complex>
#include <cstring>
#include <span>

namespace firn {

class Literal;
using LiteralRef = std::shared_ptr<const Literal>;
struct Derivation;

class Literal {
public:
  // Zero-filled and writable through mutable_bytes() until shared as a LiteralRef.
  Literal(DType dtype, std::vector<int64_t> dims);
  // Refers to `size` bytes at `offset` of a mapped file, little-endian elements in row-major order.
  static LiteralRef mapped(DType dtype, std::vector<int64_t> dims, std::shared_ptr<const MappedFile> file,
                           size_t offset);
  static LiteralRef opaque(DType dtype, std::vector<int64_t> dims, std::string hash);
  static LiteralRef strings(std::vector<int64_t> dims, std::vector<std::string> values);
  // One element repeated: all elements are `value` converted to dtype.
  static LiteralRef splat(DType dtype, std::vector<int64_t> dims, double value);
  // A tensor of the model that a program may be given anew where it runs: the values at hand are those of one
  // set of weights among many. Who reads them through this class fixes them, as fix_values() does, so that
  // nothing can be computed or chosen by values that may change without a trace.
  static LiteralRef refittable(const LiteralRef& literal);
  // `values`, computed from refittable literals as `derivation` says: the program that prepares weights does
  // it again for those that it is given. Reading the values fixes the literals they come from.
  static LiteralRef derived(const LiteralRef& values, std::shared_ptr<const Derivation> derivation);
  // The literal with values whose reading fixes nothing. Only for code that may change with the values as the
  // weights themselves do: it embeds, prints or derives them.
  static LiteralRef plain(const LiteralRef& literal);
  template <class T>
  static LiteralRef of(DType dtype, std::vector<int64_t> dims, const std::vector<T>& values);
  static LiteralRef of_i64(const std::vector<int64_t>& values); // rank 1
  static LiteralRef scalar(DType dtype, double value) { return splat(dtype, {}, value); }

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  Type type() const { return Type::tensor_of(dtype_, dims_); }
  int64_t num_elements() const { return num_elements_; }
  bool is_opaque() const { return opaque_; }

  // Every choice, proof and rewrite that looks at elements asks this first: false if the program may be given
  // others, so that the code has to be right for all of them.
  bool values_may_be_used() const;
  // From here on the elements are known: programs refuse weights that differ in them.
  void fix_values() const;
  // How the values follow from other literals; null: they are given.
  const std::shared_ptr<const Derivation>& derivation() const { return derivation_; }

  std::span<const std::byte> bytes() const;
  std::span<const std::byte> plain_bytes() const; // bytes of plain(literal)
  std::span<std::byte> mutable_bytes();           // owned bytes only
  const std::vector<std::string>& string_values() const { return strings_; }
  // Elements as T, which must have the dtype's size (uint16_t for F16 and BF16); not for sub-byte types.
  template <class T> std::span<const T> data() const;
  template <class T> std::span<T> mutable_data();

  // One element, converted: any real dtype to double (i64 beyond 2^53 rounds), any integer or bool to int64.
  double get_double(int64_t index) const;
  int64_t get_int(int64_t index) const;
  void set_double(int64_t index, double value); // rounds to nearest even, integers truncate and wrap
  void set_int(int64_t index, int64_t value);
  std::vector<int64_t> to_ints() const; // all elements through get_int
  // All elements equal to the first (bitwise); its value through get_double. False if they may be others.
  bool is_splat() const;

  // First 16 hex digits of SHA-256 over dtype, dims and bytes: the name of the literal in dumps. Computed
  // once.
  const std::string& hash() const;
  // The literal's elements under other dims (equal product); shares the bytes.
  static LiteralRef reshaped(const LiteralRef& literal, std::vector<int64_t> dims);

private:
  Literal() = default;
  // The literal under other dims, or for other readers, with the bytes of `literal`.
  static std::shared_ptr<Literal> sharing(const LiteralRef& literal);
  DType dtype_ = DType::F32;
  std::vector<int64_t> dims_;
  int64_t num_elements_ = 0;
  bool opaque_ = false;
  std::vector<std::byte> owned_;
  std::shared_ptr<const void> keep_alive_; // file or literal whose bytes are shared
  std::span<const std::byte> shared_;
  std::vector<std::string> strings_;
  bool refittable_ = false;
  mutable bool fixed_ = false;
  std::shared_ptr<const Derivation> derivation_;
  mutable std::string hash_;
};

template <class T> std::span<const T> Literal::data() const {
  auto raw = bytes();
  return {reinterpret_cast<const T*>(raw.data()), raw.size() / sizeof(T)};
}
template <class T> std::span<T> Literal::mutable_data() {
  auto raw = mutable_bytes();
  return {reinterpret_cast<T*>(raw.data()), raw.size() / sizeof(T)};
}
template <class T>
LiteralRef Literal::of(DType dtype, std::vector<int64_t> dims, const std::vector<T>& values) {
  auto literal = std::make_shared<Literal>(dtype, std::move(dims));
  FIRN_CHECK(static_cast<int64_t>(values.size()) == literal->num_elements(),
             "literal with wrong element count");
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>)
      literal->set_double(static_cast<int64_t>(i), values[i]);
    else
      literal->set_int(static_cast<int64_t>(i), static_cast<int64_t>(values[i]));
  }
  return literal;
}

// Conversions between float and its 16- and 8-bit storage forms, round to nearest even. Exact for narrow to
// wide.
float half_to_float(uint16_t bits);
uint16_t float_to_half(float value); // from the float's exact value
uint16_t double_to_half(double value);
float bfloat16_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value);
// `dtype` is one of F8* or F4E2M1. Overflow goes to NaN or infinity as ONNX's Cast does with saturate=0, to
// the largest finite value with saturate=1. F4E2M1 has neither: it always saturates, and NaN becomes a zero
// of the other sign, as ONNX's reference has it.
float float8_to_float(DType dtype, uint8_t bits);
uint8_t float_to_float8(DType dtype, float value, bool saturate);
uint8_t double_to_float8(DType dtype, double value, bool saturate); // rounds once

} // namespace firn
