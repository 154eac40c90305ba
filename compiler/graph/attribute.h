// Attributes of instructions: a small sorted dictionary of typed values, so that printing, parsing, hashing
// and comparing are written once for all ops.
#pragma once

#include "compiler/graph/type.h"

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace firn {

// One spatial dim of a convolution's or reduction's window. Padding may be negative (cropping).
struct WindowDim {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t pad_low = 0, pad_high = 0;
  int64_t dilation = 1;       // distance between neighbouring taps
  int64_t input_dilation = 1; // zeros between input elements (transposed convolution)
  bool operator==(const WindowDim&) const = default;

  // Extent of the window with its holes, and number of positions over `input` elements (0 if it does not
  // fit).
  int64_t dilated_size() const { return (size - 1) * dilation + 1; }
  int64_t output_size(int64_t input) const {
    int64_t padded = (input > 0 ? (input - 1) * input_dilation + 1 : 0) + pad_low + pad_high;
    return padded < dilated_size() ? 0 : (padded - dilated_size()) / stride + 1;
  }
  // Whether every result reads the one element at its own position.
  bool is_pointwise() const {
    return size == 1 && stride == 1 && pad_low == 0 && pad_high == 0 && input_dilation == 1;
  }
};

// Prints as `3x3 pad 1_1x1_1 stride 2x2 dilate 2x2 input_dilate 2x2`; parts at their default are left out.
struct Window {
  std::vector<WindowDim> dims;
  std::string to_string() const;
  bool operator==(const Window&) const = default;
};

// A bare word in the text form: direction = lt. Never the name of a dtype: that reads as one.
struct Word {
  std::string text;
  bool operator==(const Word&) const = default;
};

using AttributeVariant = std::variant<int64_t, double, bool, Word, std::string, std::vector<int64_t>,
                                      std::vector<double>, DType, Window, Type>;
// One value. Copies, moves and destruction are compiled once, not in every file that holds one.
struct Attribute : AttributeVariant {
  using AttributeVariant::AttributeVariant;
  Attribute(const Attribute& other);
  Attribute(Attribute&& other) noexcept;
  Attribute& operator=(const Attribute& other);
  Attribute& operator=(Attribute&& other) noexcept;
  ~Attribute();
};

// Sorted by name; printed as {a = 1, b = [1, 2]}. Doubles print with 17 significant digits and a point or
// exponent.
class Attributes {
public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> entries);
  Attributes(const Attributes& other);
  Attributes(Attributes&& other) noexcept;
  Attributes& operator=(const Attributes& other);
  Attributes& operator=(Attributes&& other) noexcept;
  ~Attributes();
  void set(std::string_view name, Attribute value);
  void erase(std::string_view name);
  const Attribute* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  bool empty() const { return entries_.empty(); }

  // Typed reads. Those with a fallback return it when the attribute is absent; those without are failed
  // checks then, as is a value of another kind: the verifier has seen to both.
  int64_t integer(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t fallback) const;
  double number(std::string_view name, double fallback) const;
  bool flag(std::string_view name, bool fallback = false) const;
  const std::string& word(std::string_view name) const;
  std::string word(std::string_view name, std::string_view fallback) const;
  const std::string& text(std::string_view name) const;
  const std::vector<int64_t>& ints(std::string_view name) const;
  const std::vector<double>& numbers(std::string_view name) const;
  const Window& window() const; // the attribute named "window"
  const Type& type(std::string_view name) const;

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  std::string to_string() const; // "{...}", or "" when empty
  bool operator==(const Attributes&) const = default;

private:
  std::vector<std::pair<std::string, Attribute>> entries_;
};

} // namespace firn
