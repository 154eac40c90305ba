// The rules of type inference as one class over an op's operands and attributes; rows of ops.def name them.
// Internal to infer_type*.cpp, which each hold the rules of one family of ops.
#pragma once

#include "compiler/graph/infer_type.h"

#include <algorithm>

namespace firn {

class TypeRules {
public:
  using Types = std::vector<Type>;

  TypeRules(Opcode opcode, const std::vector<Value>& operands, const Attributes& attributes,
            const std::vector<const Region*>& regions)
      : opcode_(opcode), operands_(operands), attributes_(attributes), regions_(regions) {}

  Expected<Types> run();

private:
  Expected<Types> infer();

  Expected<Types> elementwise();
  Expected<Types> multiply_add();
  Expected<Types> predicate();
  Expected<Types> compare();
  Expected<Types> convert();
  Expected<Types> narrow();
  Expected<Types> select();
  Expected<Types> dot();
  Expected<Types> convolution();
  Expected<Types> quantize();
  Expected<Types> dequantize();
  Expected<Types> dim_size();
  Expected<Types> loop_values();
  Expected<Types> region_results();
  Expected<Types> branch_results();

  Expected<Types> copy();
  Expected<Types> transpose();
  Expected<Types> reverse();
  Expected<Types> concatenate();
  Expected<Types> slice();
  Expected<Types> symbolic_slice();
  Expected<Types> pad();
  Expected<Types> dynamic_slice();
  Expected<Types> dynamic_update_slice();
  Expected<Types> gather();
  Expected<Types> gather_elements();
  Expected<Types> gather_nd();
  Expected<Types> scatter_elements();
  Expected<Types> scatter_nd();

  Expected<Types> arg_reduce();
  Expected<Types> cumulative();
  Expected<Types> reduce();
  Expected<Types> reduce_window();
  Expected<Types> select_and_scatter();
  Expected<Types> sort();
  Expected<Types> top_k();

  Expected<Types> text_case();
  Expected<Types> text_concatenate();
  Expected<Types> text_find();
  Expected<Types> text_match();
  Expected<Types> text_split();

  Diagnostic error(const std::string& what) const {
    return model_error(std::string(opcode_name(opcode_)) + ": " + what);
  }
  const Type& type(int i) const { return operands_[static_cast<size_t>(i)].type(); }
  int rank(int i) const { return type(i).rank(); }
  template <class T> const T* attribute(std::string_view name) const {
    const Attribute* found = attributes_.find(name);
    return found ? std::get_if<T>(found) : nullptr;
  }
  Diagnostic missing(const char* name) const {
    return error(std::string("attribute '") + name + "' is missing or of another kind");
  }
  bool axis_in_range(const char* name, int limit) const {
    const auto* axis = attribute<int64_t>(name);
    return axis && *axis >= 0 && *axis < limit;
  }
  Diagnostic bad_axis(const char* name) const {
    return error(std::string(name) + " is missing or out of range for " + type(0).to_string());
  }
  const std::vector<int64_t>* ints(const char* name, size_t size) const {
    const auto* values = attribute<std::vector<int64_t>>(name);
    return values && values->size() == size ? values : nullptr;
  }

  // Whether an elementwise op has a meaning for operands of a dtype.
  bool takes_dtype(DType dtype) const;
  // The type of the operands of an elementwise op from `first` on; those before it may differ in dtype alone.
  Expected<Type> common_type(size_t first) const;
  // Numbers from a model stay far from overflow: products of two still fit.
  static bool is_small(int64_t value) { return value <= kMax && value >= -kMax; }
  static bool is_small(const Type& type);
  static bool all_small(const std::vector<int64_t>& values) {
    return std::all_of(values.begin(), values.end(), [](int64_t value) { return is_small(value); });
  }
  // Distinct values in [0, limit).
  static bool distinct_axes(const std::vector<int64_t>& axes, int limit);
  // The extent of a window's positions over `input`; nothing if the window is broken.
  static std::optional<Dim> window_output(const WindowDim& window, const Dim& input);
  // Operands in pairs: N tensors of one shape, then N scalars of the same dtypes.
  bool tensors_and_initials() const;
  std::optional<Diagnostic> not_indices(int operand) const;
  std::optional<Diagnostic> not_starts(size_t first) const;
  std::optional<Diagnostic> not_scattered() const;
  std::optional<Diagnostic> not_text(int operand) const;
  // Why operands are no x with a scale and perhaps a zero point of this dtype.
  std::optional<Diagnostic> not_quantization(DType zero_point) const;
  bool is_parameter_of_x(const Type& parameter) const;
  // The dtype of a contraction's result.
  DType accumulator(DType operand) const;

  static constexpr int64_t kMax = int64_t(1) << 40; // limit of numbers that extents are computed from

  Opcode opcode_;
  const std::vector<Value>& operands_;
  const Attributes& attributes_;
  const std::vector<const Region*>& regions_;
};

} // namespace firn
