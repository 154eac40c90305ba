// Elements moved without being looked at: literals as arrays of a storage type of the element's size, and
// strided copies between them. Internal to evaluate*.cpp.
#pragma once

#include "compiler/graph/evaluate_call.h"

namespace firn::evaluation {

struct Bytes16 {
  uint64_t low = 0, high = 0;
};

// Calls f with a value of the type that stores an element of `dtype`; sub-byte elements are unpacked to a
// byte each.
template <class F> auto with_storage(DType dtype, F f) {
  if (dtype == DType::String) return f(std::string());
  switch (bit_width(dtype)) {
  case 16: return f(uint16_t());
  case 32: return f(uint32_t());
  case 64: return f(uint64_t());
  case 128: return f(Bytes16());
  default: return f(uint8_t());
  }
}

// The elements of a literal, unpacked and aligned; in place when they already are.
template <class T> class ElementReader {
public:
  explicit ElementReader(const Literal& literal) {
    if constexpr (std::is_same_v<T, std::string>) {
      data_ = literal.string_values().data();
    } else {
      std::span<const std::byte> bytes = literal.bytes();
      int bits = bit_width(literal.dtype());
      auto count = static_cast<size_t>(literal.num_elements());
      if (bits >= 8 && reinterpret_cast<uintptr_t>(bytes.data()) % alignof(T) == 0) {
        data_ = reinterpret_cast<const T*>(bytes.data());
        return;
      }
      copy_.resize(count);
      if (bits >= 8) {
        std::memcpy(copy_.data(), bytes.data(), count * sizeof(T));
      } else if constexpr (sizeof(T) == 1) {
        for (size_t i = 0; i < count; ++i) {
          auto byte = static_cast<unsigned>(bytes[i * static_cast<size_t>(bits) / 8]);
          copy_[i] = static_cast<T>(byte >> (i * static_cast<size_t>(bits) % 8) & ((1u << bits) - 1));
        }
      }
      data_ = copy_.data();
    }
  }
  const T* data() const { return data_; }

private:
  std::vector<T> copy_;
  const T* data_ = nullptr;
};

// The elements of a literal to be: zero until written, packed by finish().
template <class T> class ElementWriter {
public:
  explicit ElementWriter(std::shared_ptr<Literal> literal) : literal_(std::move(literal)) {
    unpacked_ = std::is_same_v<T, std::string> || bit_width(literal_->dtype()) < 8;
    if (unpacked_) elements_.resize(static_cast<size_t>(literal_->num_elements()));
  }
  T* data() { return unpacked_ ? elements_.data() : reinterpret_cast<T*>(literal_->mutable_bytes().data()); }
  LiteralRef finish() {
    if constexpr (std::is_same_v<T, std::string>) {
      return Literal::strings(literal_->dims(), std::move(elements_));
    } else if constexpr (std::is_same_v<T, uint8_t>) {
      if (unpacked_) {
        auto bits = static_cast<size_t>(bit_width(literal_->dtype()));
        std::span<std::byte> bytes = literal_->mutable_bytes();
        for (size_t i = 0; i < elements_.size(); ++i)
          bytes[i * bits / 8] |= static_cast<std::byte>(elements_[i] << (i * bits % 8));
      }
    }
    return literal_;
  }

private:
  std::shared_ptr<Literal> literal_;
  std::vector<T> elements_;
  bool unpacked_;
};

// Strides, in elements, of one side of a copy; the pointer is at the element with index 0 in every dim.
struct StridedDim {
  int64_t extent, from, to;
};

// Adjacent dims that both sides traverse evenly become one; extents of 1 vanish.
std::vector<StridedDim> collapse(const Dims& dims, const Dims& from_strides, const Dims& to_strides);

template <class T>
void copy_strided(const Dims& dims, const T* from, const Dims& from_strides, T* to, const Dims& to_strides) {
  if (product(dims) == 0) return;
  std::vector<StridedDim> loops = collapse(dims, from_strides, to_strides);
  if (loops.empty()) {
    *to = *from;
    return;
  }
  StridedDim inner = loops.back();
  loops.pop_back();
  Dims index(loops.size(), 0);
  for (;;) {
    if (inner.from == 1 && inner.to == 1)
      std::copy(from, from + inner.extent, to);
    else
      for (int64_t i = 0; i < inner.extent; ++i) to[i * inner.to] = from[i * inner.from];
    size_t dim = loops.size();
    for (;;) {
      if (dim-- == 0) return;
      from += loops[dim].from;
      to += loops[dim].to;
      if (++index[dim] < loops[dim].extent) break;
      from -= loops[dim].extent * loops[dim].from;
      to -= loops[dim].extent * loops[dim].to;
      index[dim] = 0;
    }
  }
}

// A literal of `dims` whose element i (a multi-index) is operand element at offset + sum(i * strides).
Expected<LiteralRef> strided_view(const OpCall& call, const Literal& operand, Dims dims, int64_t offset,
                                  Dims strides);
// The operand with its dims in the order of `permutation`.
Expected<LiteralRef> transposed(const OpCall& call, const LiteralRef& operand, const Dims& permutation);

} // namespace firn::evaluation
