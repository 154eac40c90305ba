// Type inference: one function per kind of op, dispatched by opcode.
#include "compiler/graph/infer_type.h"

#include <algorithm>

namespace firn {
namespace {

using Types = std::vector<Type>;

class Inference {
public:
  Inference(Opcode opcode, const std::vector<Value>& operands, const Attributes& attributes,
            const std::vector<const Region*>& regions)
      : opcode_(opcode), operands_(operands), attributes_(attributes), regions_(regions) {}

  Expected<Types> run() {
    const OpInfo& info = op_info(opcode_);
    if (info.arity >= 0 && static_cast<int>(operands_.size()) != info.arity)
      return error("has " + std::to_string(operands_.size()) + " operands, wants " + std::to_string(info.arity));
    for (const Value& operand : operands_)
      if (!operand.type().is_tensor() && info.op_class != OpClass::Container && info.op_class != OpClass::Control)
        return error("operand is " + operand.type().to_string() + ", wants a tensor");
    switch (info.op_class) {
    case OpClass::Unary: case OpClass::Binary: case OpClass::Ternary: return elementwise();
    case OpClass::Movement: return movement();
    case OpClass::Reduction: return reduction();
    case OpClass::Contraction: return opcode_ == Opcode::Dot ? dot() : convolution();
    case OpClass::Shape:
      if (opcode_ != Opcode::DimSize) return Types{};
      if (!axis_in_range("dim", rank(0))) return bad_axis("dim");
      return Types{Type::tensor(DType::I64, {})};
    case OpClass::Control: return control();
    case OpClass::Leaf: case OpClass::Random: case OpClass::Container: return Types{};
    }
    FIRN_UNREACHABLE("op class");
  }

private:
  Diagnostic error(const std::string& what) const { return model_error(std::string(opcode_name(opcode_)) + ": " + what); }
  const Type& type(int i) const { return operands_[static_cast<size_t>(i)].type(); }
  int rank(int i) const { return type(i).rank(); }

  template <class T> const T* attribute(std::string_view name) const {
    const Attribute* found = attributes_.find(name);
    return found ? std::get_if<T>(found) : nullptr;
  }
  Diagnostic missing(const char* name) const { return error(std::string("attribute '") + name + "' is missing or of another kind"); }
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
  // Distinct values in [0, limit).
  static bool distinct_axes(const std::vector<int64_t>& axes, int limit) {
    std::vector<bool> seen(static_cast<size_t>(limit));
    for (int64_t axis : axes) {
      if (axis < 0 || axis >= limit || seen[static_cast<size_t>(axis)]) return false;
      seen[static_cast<size_t>(axis)] = true;
    }
    return true;
  }

  Expected<Types> elementwise() {
    int first = opcode_ == Opcode::Select ? 1 : 0;
    Type result = type(first);
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Type& operand = operands_[i].type();
      if (operand.dims != result.dims)
        return error("operands have shapes " + result.to_string() + " and " + operand.to_string() + ", wants equal ones");
      if (operand.layout != result.layout) return error("operands have different layouts");
      bool condition = opcode_ == Opcode::Select && i == 0;
      if (condition && operand.dtype != DType::Bool) return error("condition is " + operand.to_string() + ", wants bool");
      if (!condition && operand.dtype != result.dtype)
        return error("operands are " + result.to_string() + " and " + operand.to_string() + ", wants one dtype");
    }
    if (opcode_ == Opcode::Convert) {
      const auto* to = attribute<DType>("to");
      if (!to) return missing("to");
      result.dtype = *to;
    } else if (opcode_ == Opcode::Compare) {
      if (!attribute<Word>("direction")) return missing("direction");
      result.dtype = DType::Bool;
    } else if (opcode_ == Opcode::IsInf || opcode_ == Opcode::IsNaN) {
      result.dtype = DType::Bool;
    }
    return Types{result};
  }

  Expected<Types> movement() {
    switch (opcode_) {
    case Opcode::Reshape: case Opcode::BroadcastInDim: case Opcode::BitcastConvert: return Types{};
    case Opcode::Copy: case Opcode::Reverse: return Types{type(0)};
    case Opcode::Transpose: return transpose();
    case Opcode::Concatenate: return concatenate();
    case Opcode::Slice: return slice();
    case Opcode::Pad: return pad();
    case Opcode::DynamicSlice: return dynamic_slice();
    case Opcode::DynamicUpdateSlice:
      if (operands_.size() != static_cast<size_t>(rank(0)) + 2) return error("wants one start per dim");
      return Types{type(0)};
    case Opcode::Gather: return gather();
    case Opcode::GatherElements:
      if (!axis_in_range("axis", rank(0))) return bad_axis("axis");
      if (rank(0) != rank(1)) return error("indices have rank " + std::to_string(rank(1)) + ", wants " + std::to_string(rank(0)));
      return Types{Type::tensor(type(0).dtype, type(1).dims)};
    case Opcode::GatherND: return gather_nd();
    case Opcode::ScatterElements:
      if (!axis_in_range("axis", rank(0))) return bad_axis("axis");
      if (rank(0) != rank(1) || type(1).dims != type(2).dims) return error("indices and updates want the operand's rank and equal shapes");
      return Types{type(0)};
    case Opcode::ScatterND:
      if (rank(1) < 1 || !type(1).dims.back().is_static()) return error("indices want a static last dim");
      return Types{type(0)};
    default: FIRN_UNREACHABLE("movement op");
    }
  }

  Expected<Types> transpose() {
    const auto* permutation = ints("permutation", static_cast<size_t>(rank(0)));
    if (!permutation || !distinct_axes(*permutation, rank(0))) return error("permutation does not fit " + type(0).to_string());
    std::vector<Dim> dims;
    for (int64_t axis : *permutation) dims.push_back(type(0).dims[static_cast<size_t>(axis)]);
    return Types{Type::tensor(type(0).dtype, std::move(dims))};
  }

  Expected<Types> concatenate() {
    if (operands_.empty()) return error("wants at least one operand");
    if (!axis_in_range("dim", rank(0))) return bad_axis("dim");
    auto axis = static_cast<size_t>(attributes_.integer("dim"));
    Type result = type(0);
    for (size_t i = 1; i < operands_.size(); ++i) {
      const Type& operand = operands_[i].type();
      if (operand.dtype != result.dtype || operand.rank() != result.rank() || operand.layout != result.layout)
        return error("operands are " + type(0).to_string() + " and " + operand.to_string());
      for (size_t d = 0; d < operand.dims.size(); ++d)
        if (d != axis && !(operand.dims[d] == result.dims[d]))
          return error("operands are " + type(0).to_string() + " and " + operand.to_string() + ", wants equal dims but " +
                       std::to_string(axis));
      result.dims[axis].extent = result.dims[axis].extent + operand.dims[axis].extent;
    }
    return Types{result};
  }

  Expected<Types> slice() {
    auto size = static_cast<size_t>(rank(0));
    const auto *starts = ints("starts", size), *limits = ints("limits", size), *strides = ints("strides", size);
    if (!starts || !limits || !strides) return error("starts, limits and strides want one value per dim");
    Type result = type(0);
    result.layout = {};
    for (size_t i = 0; i < size; ++i) {
      bool whole = (*starts)[i] == 0 && (*limits)[i] == -1 && (*strides)[i] == 1;  // a symbolic dim kept as it is
      if (whole) continue;
      if (!result.dims[i].is_static()) return error("slices the symbolic dim " + std::to_string(i));
      if ((*starts)[i] < 0 || (*limits)[i] < (*starts)[i] || (*limits)[i] > result.dims[i].value() || (*strides)[i] < 1)
        return error("range [" + std::to_string((*starts)[i]) + ", " + std::to_string((*limits)[i]) + ") by " +
                     std::to_string((*strides)[i]) + " does not fit dim " + std::to_string(i) + " of " + type(0).to_string());
      result.dims[i] = Dim(((*limits)[i] - (*starts)[i] + (*strides)[i] - 1) / (*strides)[i]);
    }
    return Types{result};
  }

  Expected<Types> pad() {
    auto size = static_cast<size_t>(rank(0));
    const auto *low = ints("low", size), *high = ints("high", size), *interior = ints("interior", size);
    if (!low || !high || !interior) return error("low, high and interior want one value per dim");
    if (!type(1).is_scalar() || type(1).dtype != type(0).dtype) return error("padding value is " + type(1).to_string());
    Type result = type(0);
    result.layout = {};
    for (size_t i = 0; i < size; ++i) {
      IntExpr extent = result.dims[i].extent;
      if ((*interior)[i] < 0) return error("interior padding is negative");
      if ((*interior)[i] > 0) {
        if (!result.dims[i].is_static()) return error("interior padding of a symbolic dim");
        extent = extent.value() == 0 ? IntExpr(0) : (extent - 1) * ((*interior)[i] + 1) + 1;
      }
      extent = extent + (*low)[i] + (*high)[i];
      if (extent.is_constant() && extent.value() < 0) return error("crops more than dim " + std::to_string(i) + " has");
      result.dims[i].extent = extent;
    }
    return Types{result};
  }

  Expected<Types> dynamic_slice() {
    auto size = static_cast<size_t>(rank(0));
    const auto* sizes = ints("sizes", size);
    if (!sizes || operands_.size() != size + 1) return error("wants one start and one size per dim");
    Type result = type(0);
    result.layout = {};
    for (size_t i = 0; i < size; ++i) {
      if ((*sizes)[i] < 0 || (result.dims[i].is_static() && (*sizes)[i] > result.dims[i].value()))
        return error("size " + std::to_string((*sizes)[i]) + " does not fit dim " + std::to_string(i) + " of " + type(0).to_string());
      result.dims[i] = Dim((*sizes)[i]);
    }
    return Types{result};
  }

  Expected<Types> gather() {
    if (!axis_in_range("axis", rank(0))) return bad_axis("axis");
    auto axis = static_cast<std::ptrdiff_t>(attributes_.integer("axis"));
    std::vector<Dim> dims(type(0).dims.begin(), type(0).dims.begin() + axis);
    dims.insert(dims.end(), type(1).dims.begin(), type(1).dims.end());
    dims.insert(dims.end(), type(0).dims.begin() + axis + 1, type(0).dims.end());
    return Types{Type::tensor(type(0).dtype, std::move(dims))};
  }

  Expected<Types> gather_nd() {
    int64_t batch = attributes_.integer("batch_dims", 0);
    if (rank(1) < 1 || !type(1).dims.back().is_static()) return error("indices want a static last dim");
    int64_t depth = type(1).dims.back().value();
    if (batch < 0 || batch >= rank(1) || batch + depth > rank(0) || depth < 1)
      return error("indices " + type(1).to_string() + " do not fit " + type(0).to_string());
    std::vector<Dim> dims(type(1).dims.begin(), type(1).dims.end() - 1);
    dims.insert(dims.end(), type(0).dims.begin() + batch + depth, type(0).dims.end());
    return Types{Type::tensor(type(0).dtype, std::move(dims))};
  }

  Expected<Types> reduction() {
    switch (opcode_) {
    case Opcode::Reduce: return reduce();
    case Opcode::ReduceWindow: return reduce_window();
    case Opcode::ArgReduce: {
      if (!axis_in_range("dim", rank(0))) return bad_axis("dim");
      std::vector<Dim> dims = type(0).dims;
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(attributes_.integer("dim")));
      return Types{Type::tensor(DType::I64, std::move(dims))};
    }
    case Opcode::Cumulative:
      if (!axis_in_range("dim", rank(0))) return bad_axis("dim");
      return Types{type(0)};
    case Opcode::SelectAndScatter: return Types{type(0)};
    case Opcode::Sort: {
      if (operands_.empty() || !axis_in_range("dim", rank(0))) return error("wants operands and a dim in range");
      Types types;
      for (const Value& operand : operands_) {
        if (operand.type().dims != type(0).dims) return error("operands want equal shapes");
        types.push_back(operand.type());
      }
      return types;
    }
    case Opcode::TopK: {
      const auto* k = attribute<int64_t>("k");
      if (!axis_in_range("dim", rank(0)) || !k || *k < 0) return error("dim or k is missing or out of range");
      Type values = type(0);
      auto& dim = values.dims[static_cast<size_t>(attributes_.integer("dim"))];
      if (dim.is_static() && *k > dim.value())
        return error("k is " + std::to_string(*k) + ", the dim has " + std::to_string(dim.value()));
      dim = Dim(*k);
      return Types{values, Type::tensor(DType::I64, values.dims)};
    }
    default: FIRN_UNREACHABLE("reduction op");
    }
  }

  // Operands in pairs: N tensors of one shape, then N scalars of the same dtypes.
  bool tensors_and_initials() const {
    size_t n = operands_.size() / 2;
    if (n == 0 || operands_.size() % 2) return false;
    for (size_t i = 0; i < n; ++i) {
      const Type &tensor = operands_[i].type(), &initial = operands_[n + i].type();
      if (tensor.dims != operands_[0].type().dims || !initial.is_scalar() || initial.dtype != tensor.dtype) return false;
    }
    return true;
  }

  Expected<Types> reduce() {
    if (!tensors_and_initials()) return error("wants tensors of one shape and as many scalar initial values");
    const auto* dims = attribute<std::vector<int64_t>>("dims");
    if (!dims || !distinct_axes(*dims, rank(0))) return error("dims do not fit " + type(0).to_string());
    Types types;
    for (size_t i = 0; i < operands_.size() / 2; ++i) {
      std::vector<Dim> kept;
      for (int d = 0; d < rank(0); ++d)
        if (std::find(dims->begin(), dims->end(), d) == dims->end()) kept.push_back(type(0).dims[static_cast<size_t>(d)]);
      types.push_back(Type::tensor(operands_[i].dtype(), std::move(kept)));
    }
    return types;
  }

  // The extent of a window's positions over `input`; nothing if the window is broken.
  static std::optional<Dim> window_output(const WindowDim& window, const Dim& input) {
    if (window.size < 1 || window.stride < 1 || window.dilation < 1 || window.input_dilation < 1) return std::nullopt;
    if (input.is_static()) return Dim(window.output_size(input.value()));
    if (window.input_dilation != 1) return std::nullopt;
    IntExpr padded = input.extent + (window.pad_low + window.pad_high - window.dilated_size());
    return Dim(floor_div(padded, window.stride) + 1);
  }

  Expected<Types> reduce_window() {
    if (!tensors_and_initials()) return error("wants tensors of one shape and as many scalar initial values");
    const auto* window = attribute<Window>("window");
    if (!window || static_cast<int>(window->dims.size()) != rank(0)) return error("window does not fit " + type(0).to_string());
    Types types;
    for (size_t i = 0; i < operands_.size() / 2; ++i) {
      std::vector<Dim> dims;
      for (size_t d = 0; d < window->dims.size(); ++d) {
        auto extent = window_output(window->dims[d], type(0).dims[d]);
        if (!extent) return error("window " + window->to_string() + " is broken");
        dims.push_back(*extent);
      }
      types.push_back(Type::tensor(operands_[i].dtype(), std::move(dims)));
    }
    return types;
  }

  DType accumulator(DType operand) const {
    const auto* result = attribute<DType>("result");
    return result ? *result : operand;
  }

  Expected<Types> dot() {
    const auto *lhs_batch = attribute<std::vector<int64_t>>("lhs_batch"), *rhs_batch = attribute<std::vector<int64_t>>("rhs_batch");
    const auto *lhs_contract = attribute<std::vector<int64_t>>("lhs_contract"), *rhs_contract = attribute<std::vector<int64_t>>("rhs_contract");
    if (!lhs_batch || !rhs_batch || !lhs_contract || !rhs_contract) return error("dimension lists are missing");
    if (lhs_batch->size() != rhs_batch->size() || lhs_contract->size() != rhs_contract->size())
      return error("dimension lists of lhs and rhs differ in length");
    auto joined = [](std::vector<int64_t> a, const std::vector<int64_t>& b) { a.insert(a.end(), b.begin(), b.end()); return a; };
    std::vector<int64_t> lhs_used = joined(*lhs_batch, *lhs_contract), rhs_used = joined(*rhs_batch, *rhs_contract);
    if (!distinct_axes(lhs_used, rank(0)) || !distinct_axes(rhs_used, rank(1)))
      return error("dimension lists do not fit " + type(0).to_string() + " and " + type(1).to_string());
    for (size_t i = 0; i < lhs_used.size(); ++i)
      if (!(type(0).dims[static_cast<size_t>(lhs_used[i])] == type(1).dims[static_cast<size_t>(rhs_used[i])]))
        return error("lhs is " + type(0).to_string() + ", rhs is " + type(1).to_string() + ": paired dims differ");
    if (type(0).dtype != type(1).dtype && !attribute<DType>("result"))
      return error("lhs is " + type(0).to_string() + ", rhs is " + type(1).to_string() + ", wants one dtype");
    std::vector<Dim> dims;
    for (int64_t axis : *lhs_batch) dims.push_back(type(0).dims[static_cast<size_t>(axis)]);
    auto add_free = [&](const Type& operand, const std::vector<int64_t>& used) {
      for (int d = 0; d < operand.rank(); ++d)
        if (std::find(used.begin(), used.end(), d) == used.end()) dims.push_back(operand.dims[static_cast<size_t>(d)]);
    };
    add_free(type(0), lhs_used);
    add_free(type(1), rhs_used);
    return Types{Type::tensor(accumulator(type(0).dtype), std::move(dims))};
  }

  Expected<Types> convolution() {
    const auto* window = attribute<Window>("window");
    int64_t groups = attributes_.has("groups") && attribute<int64_t>("groups") ? *attribute<int64_t>("groups") : 1;
    if (rank(0) < 3 || rank(0) != rank(1)) return error("input is " + type(0).to_string() + ", filter is " + type(1).to_string() + ", wants equal ranks of 3 or more");
    if (!window || static_cast<int>(window->dims.size()) != rank(0) - 2) return error("window does not fit the rank");
    const Dim &channels = type(0).dims[1], &filters = type(1).dims[0], &depth = type(1).dims[1];
    if (!channels.is_static() || !filters.is_static() || !depth.is_static()) return error("channel dims want static extents");
    if (groups < 1 || channels.value() != depth.value() * groups || filters.value() % groups != 0)
      return error("input has " + std::to_string(channels.value()) + " channels, filter is " + type(1).to_string() + " with " + std::to_string(groups) + " groups");
    if (type(0).dtype != type(1).dtype && !attribute<DType>("result")) return error("input and filter want one dtype");
    std::vector<Dim> dims{type(0).dims[0], filters};
    for (size_t d = 0; d < window->dims.size(); ++d) {
      if (!(type(1).dims[d + 2] == Dim(window->dims[d].size))) return error("window " + window->to_string() + " differs from the filter " + type(1).to_string());
      auto extent = window_output(window->dims[d], type(0).dims[d + 2]);
      if (!extent) return error("window " + window->to_string() + " is broken");
      dims.push_back(*extent);
    }
    return Types{Type::tensor(accumulator(type(0).dtype), std::move(dims))};
  }

  Expected<Types> control() {
    Types types;
    if (opcode_ == Opcode::While) {
      for (const Value& operand : operands_) types.push_back(operand.type());
      return types;
    }
    if (regions_.empty()) return types;
    for (const Value& result : regions_[0]->results()) types.push_back(result.type());
    if (opcode_ == Opcode::If && (!type(0).is_scalar() || type(0).dtype != DType::Bool))
      return error("condition is " + type(0).to_string() + ", wants a bool scalar");
    return types;
  }

  Opcode opcode_;
  const std::vector<Value>& operands_;
  const Attributes& attributes_;
  const std::vector<const Region*>& regions_;
};

} // namespace

Expected<std::vector<Type>> infer_types(Opcode opcode, const std::vector<Value>& operands,
                                        const Attributes& attributes, const std::vector<const Region*>& regions) {
  return Inference(opcode, operands, attributes, regions).run();
}

} // namespace firn
