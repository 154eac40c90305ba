// Type inference of movement ops: slices, pads, gathers, scatters.
#include "compiler/graph/infer_type_rules.h"
#include "compiler/support/int_expr_values.h"

namespace firn {

Expected<TypeRules::Types> TypeRules::copy() {
  return Types{type(0)};
}

Expected<TypeRules::Types> TypeRules::transpose() {
  const auto* permutation = ints("permutation", static_cast<size_t>(rank(0)));
  if (!permutation || !distinct_axes(*permutation, rank(0)))
    return error("permutation does not fit " + type(0).to_string());
  std::vector<Dim> dims;
  for (int64_t axis : *permutation) dims.push_back(type(0).dims[static_cast<size_t>(axis)]);
  return Types{Type::tensor(type(0).dtype, std::move(dims))};
}

Expected<TypeRules::Types> TypeRules::reverse() {
  const auto* dims = attribute<std::vector<int64_t>>("dims");
  if (!dims || !distinct_axes(*dims, rank(0))) return error("dims do not fit " + type(0).to_string());
  return Types{type(0)};
}

Expected<TypeRules::Types> TypeRules::concatenate() {
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
        return error("operands are " + type(0).to_string() + " and " + operand.to_string() +
                     ", wants equal dims but " + std::to_string(axis));
    Dim& dim = result.dims[axis];
    dim.extent = dim.extent + operand.dims[axis].extent;
    dim.counted |= operand.dims[axis].counted;
    if (!is_small(result)) return error("result is too large");
  }
  return Types{result};
}

Expected<TypeRules::Types> TypeRules::slice() {
  auto size = static_cast<size_t>(rank(0));
  const auto *starts = ints("starts", size), *limits = ints("limits", size), *strides = ints("strides", size);
  if (!starts || !limits || !strides) return error("starts, limits and strides want one value per dim");
  Type result = type(0);
  result.layout = {};
  for (size_t i = 0; i < size; ++i) {
    bool whole =
        (*starts)[i] == 0 && (*limits)[i] == -1 && (*strides)[i] == 1; // a symbolic dim kept as it is
    if (whole) continue;
    if (!result.dims[i].is_static()) return error("slices the symbolic dim " + std::to_string(i));
    if ((*starts)[i] < 0 || (*limits)[i] < (*starts)[i] || (*limits)[i] > result.dims[i].value() ||
        (*strides)[i] < 1)
      return error("range [" + std::to_string((*starts)[i]) + ", " + std::to_string((*limits)[i]) + ") by " +
                   std::to_string((*strides)[i]) + " does not fit dim " + std::to_string(i) + " of " +
                   type(0).to_string());
    int64_t length = (*limits)[i] - (*starts)[i];
    result.dims[i] = Dim(length == 0 ? 0 : (length - 1) / (*strides)[i] + 1);
  }
  return Types{result};
}

Expected<TypeRules::Types> TypeRules::symbolic_slice() {
  const auto *starts = attribute<Type>("starts"), *sizes = attribute<Type>("sizes");
  auto size = static_cast<size_t>(rank(0));
  if (!starts || !sizes || starts->dims.size() != size || sizes->dims.size() != size)
    return error("starts and sizes want one extent per dim of " + type(0).to_string());
  Type result = type(0);
  result.layout = {};
  for (size_t i = 0; i < size; ++i) {
    const IntExpr &start = starts->dims[i].extent, &extent = sizes->dims[i].extent;
    IntExpr rest = result.dims[i].extent - start - extent;
    if (range_of_sign(start).low < 0 || range_of_sign(extent).low < 0 || range_of_sign(rest).low < 0)
      return error("range from " + start.to_string() + " of size " + extent.to_string() +
                   " may not lie within dim " + std::to_string(i) + " of " + type(0).to_string());
    result.dims[i] = sizes->dims[i];
  }
  return Types{result};
}

Expected<TypeRules::Types> TypeRules::pad() {
  auto size = static_cast<size_t>(rank(0));
  const auto *low = ints("low", size), *high = ints("high", size), *interior = ints("interior", size);
  if (!low || !high || !interior) return error("low, high and interior want one value per dim");
  if (!all_small(*low) || !all_small(*high) || !all_small(*interior)) return error("padding is too large");
  if (!type(1).is_scalar() || type(1).dtype != type(0).dtype)
    return error("padding value is " + type(1).to_string() + ", wants a scalar of the operand's dtype");
  Type result = type(0);
  result.layout = {};
  for (size_t i = 0; i < size; ++i) {
    IntExpr extent = result.dims[i].extent;
    if ((*interior)[i] < 0) return error("interior padding is negative");
    if ((*interior)[i] > 0) {
      if (!result.dims[i].is_static()) return error("interior padding of a symbolic dim");
      if (__int128(extent.value()) * (*interior)[i] > kMax) return error("padding is too large");
      extent = extent.value() == 0 ? IntExpr(0) : (extent - 1) * ((*interior)[i] + 1) + 1;
    }
    extent = extent + (*low)[i] + (*high)[i];
    if (extent.is_constant() && extent.value() < 0)
      return error("crops more than dim " + std::to_string(i) + " has");
    result.dims[i].extent = extent;
  }
  return Types{result};
}

std::optional<Diagnostic> TypeRules::not_indices(int operand) const {
  if (is_integer(type(operand).dtype)) return std::nullopt;
  return error("indices are " + type(operand).to_string() + ", wants integers");
}

std::optional<Diagnostic> TypeRules::not_starts(size_t first) const {
  for (size_t i = first; i < operands_.size(); ++i)
    if (const Type& start = operands_[i].type(); !start.is_scalar() || start.dtype != DType::I64)
      return error("start is " + start.to_string() + ", wants an i64 scalar");
  return std::nullopt;
}

Expected<TypeRules::Types> TypeRules::dynamic_slice() {
  auto size = static_cast<size_t>(rank(0));
  const auto* sizes = ints("sizes", size);
  if (!sizes || operands_.size() != size + 1) return error("wants one start and one size per dim");
  Type result = type(0);
  result.layout = {};
  for (size_t i = 0; i < size; ++i) {
    if ((*sizes)[i] < 0 || (result.dims[i].is_static() && (*sizes)[i] > result.dims[i].value()))
      return error("size " + std::to_string((*sizes)[i]) + " does not fit dim " + std::to_string(i) + " of " +
                   type(0).to_string());
    result.dims[i] = Dim((*sizes)[i]);
  }
  if (auto wrong = not_starts(1)) return *wrong;
  return Types{result};
}

Expected<TypeRules::Types> TypeRules::dynamic_update_slice() {
  if (operands_.size() != static_cast<size_t>(rank(0)) + 2) return error("wants one start per dim");
  if (rank(1) != rank(0) || type(1).dtype != type(0).dtype)
    return error("update is " + type(1).to_string() + ", the operand " + type(0).to_string());
  for (size_t i = 0; i < type(1).dims.size(); ++i) {
    const Dim &update = type(1).dims[i], &whole = type(0).dims[i];
    if (update.is_static() && whole.is_static() && update.value() > whole.value())
      return error("update " + type(1).to_string() + " is larger than the operand " + type(0).to_string());
  }
  if (auto wrong = not_starts(2)) return *wrong;
  return Types{type(0)};
}

Expected<TypeRules::Types> TypeRules::gather() {
  if (auto wrong = not_indices(1)) return *wrong;
  if (!axis_in_range("axis", rank(0))) return bad_axis("axis");
  auto axis = static_cast<std::ptrdiff_t>(attributes_.integer("axis"));
  std::vector<Dim> dims(type(0).dims.begin(), type(0).dims.begin() + axis);
  dims.insert(dims.end(), type(1).dims.begin(), type(1).dims.end());
  dims.insert(dims.end(), type(0).dims.begin() + axis + 1, type(0).dims.end());
  return Types{Type::tensor(type(0).dtype, std::move(dims))};
}

namespace {

// Whether a tensor of indices lies within `operand` in every dim but `axis`.
bool indices_within(const Type& operand, const Type& indices, int64_t axis) {
  if (operand.rank() != indices.rank()) return false;
  for (int d = 0; d < operand.rank(); ++d) {
    const Dim &whole = operand.dims[static_cast<size_t>(d)], &part = indices.dims[static_cast<size_t>(d)];
    if (d != axis && whole.is_static() && part.is_static() && part.value() > whole.value()) return false;
  }
  return true;
}

} // namespace

Expected<TypeRules::Types> TypeRules::gather_elements() {
  if (auto wrong = not_indices(1)) return *wrong;
  if (!axis_in_range("axis", rank(0))) return bad_axis("axis");
  if (!indices_within(type(0), type(1), attributes_.integer("axis")))
    return error("indices " + type(1).to_string() + " do not fit " + type(0).to_string());
  return Types{Type::tensor(type(0).dtype, type(1).dims)};
}

Expected<TypeRules::Types> TypeRules::gather_nd() {
  if (auto wrong = not_indices(1)) return *wrong;
  const auto* given = attribute<int64_t>("batch_dims");
  int64_t batch = given ? *given : 0;
  if (rank(1) < 1 || !type(1).dims.back().is_static()) return error("indices want a static last dim");
  int64_t depth = type(1).dims.back().value();
  if (batch < 0 || batch >= rank(1) || depth < 1 || depth > rank(0) || batch + depth > rank(0))
    return error("indices " + type(1).to_string() + " do not fit " + type(0).to_string());
  for (size_t d = 0; d < static_cast<size_t>(batch); ++d)
    if (!(type(0).dims[d] == type(1).dims[d]))
      return error("batch dims of " + type(0).to_string() + " and " + type(1).to_string() + " differ");
  std::vector<Dim> dims(type(1).dims.begin(), type(1).dims.end() - 1);
  dims.insert(dims.end(), type(0).dims.begin() + batch + depth, type(0).dims.end());
  return Types{Type::tensor(type(0).dtype, std::move(dims))};
}

std::optional<Diagnostic> TypeRules::not_scattered() const {
  if (auto wrong = not_indices(1)) return wrong;
  if (type(0).dtype == type(2).dtype) return std::nullopt;
  return error("updates are " + type(2).to_string() + ", the operand " + type(0).to_string());
}

Expected<TypeRules::Types> TypeRules::scatter_elements() {
  const Type &operand = type(0), &indices = type(1), &updates = type(2);
  if (auto wrong = not_scattered()) return *wrong;
  if (!axis_in_range("axis", rank(0))) return bad_axis("axis");
  if (!indices_within(operand, indices, attributes_.integer("axis")) || indices.dims != updates.dims)
    return error("indices " + indices.to_string() + " and updates " + updates.to_string() + " do not fit " +
                 operand.to_string());
  return Types{operand};
}

Expected<TypeRules::Types> TypeRules::scatter_nd() {
  const Type &operand = type(0), &indices = type(1), &updates = type(2);
  if (auto wrong = not_scattered()) return *wrong;
  if (rank(1) < 1 || !indices.dims.back().is_static()) return error("indices want a static last dim");
  int64_t depth = indices.dims.back().value();
  if (depth < 1 || depth > rank(0))
    return error("indices " + indices.to_string() + " do not fit " + operand.to_string());
  std::vector<Dim> wanted(indices.dims.begin(), indices.dims.end() - 1);
  wanted.insert(wanted.end(), operand.dims.begin() + depth, operand.dims.end());
  if (updates.dims != wanted)
    return error("updates are " + updates.to_string() + ", wants " +
                 Type::tensor(operand.dtype, std::move(wanted)).to_string());
  return Types{operand};
}

} // namespace firn
