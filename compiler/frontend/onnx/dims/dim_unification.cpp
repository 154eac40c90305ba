// See dim_unification.h.
#include "compiler/frontend/onnx/dims/dim_unification.h"

#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import/unbound_dims.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/support/int_expr_size.h"

#include <algorithm>

namespace firn::onnx {
namespace {

bool may_be_one(const Dim& dim) {
  return dim.extent.lower_bound() <= 1 && dim.extent.upper_bound() >= 1;
}

// The extent to which two extents broadcast, if each of them may be 1 or 0 in a run.
Dim larger_unless_none(const Dim& lhs, const Dim& rhs) {
  IntExpr both = max(lhs.extent, rhs.extent), fewer = min(lhs.extent, rhs.extent);
  Dim dim(fewer.lower_bound() >= 1 ? both : both * min(fewer, 1));
  dim.counted = lhs.counted || rhs.counted;
  return dim;
}

// Whether larger_unless_none made `whole` from `part` and others.
bool has_met(const IntExpr& whole, const IntExpr& part) {
  if (whole == part) return true;
  const std::vector<IntExpr::Term>& terms = whole.terms();
  if (terms.size() != 1 || terms[0].coefficient != 1 || whole.constant_part() != 0) return false;
  for (const AtomRef& atom : terms[0].atoms)
    if (atom->kind == IntAtom::Kind::Max && (has_met(*atom->lhs, part) || has_met(*atom->rhs, part)))
      return true;
  return false;
}

// The simpler of two expressions for one extent; one that no run counts is preferred.
const Dim& plainer(const Dim& lhs, const Dim& rhs) {
  if (lhs.counted != rhs.counted) return lhs.counted ? rhs : lhs;
  for (size_t limit = 0; limit < 16; ++limit) {
    if (!is_larger_than(lhs.extent, limit)) return lhs;
    if (!is_larger_than(rhs.extent, limit)) return rhs;
  }
  return lhs;
}

// The extent to which two extents broadcast, as a new count of the run: for expressions that would grow long.
std::optional<Dim> counted_unified_dim(NodeContext& node, const Dim& lhs, const Dim& rhs) {
  Value left = extent_value(node, lhs), right = extent_value(node, rhs);
  Value is_one = node.compare("eq", left, node.scalar_int(DType::I64, 1));
  return counted_extent(node, node.select(is_one, right, left),
                        std::max(lhs.extent.upper_bound(), rhs.extent.upper_bound()));
}

std::optional<Dim> unified_dim(NodeContext& node, const Dim& lhs, const Dim& rhs) {
  constexpr size_t kMaxAtoms = 12;
  if (lhs == rhs || rhs == Dim(1)) return lhs;
  if (lhs == Dim(1)) return rhs;
  if (!is_safe_dim(lhs.extent) || !is_safe_dim(rhs.extent)) return std::nullopt;
  bool lhs_one = may_be_one(lhs), rhs_one = may_be_one(rhs);
  if (lhs_one && rhs_one) {
    if (has_met(lhs.extent, rhs.extent)) return lhs;
    if (has_met(rhs.extent, lhs.extent)) return rhs;
    bool is_long = is_larger_than(lhs.extent, kMaxAtoms) || is_larger_than(rhs.extent, kMaxAtoms);
    return is_long ? counted_unified_dim(node, lhs, rhs) : larger_unless_none(lhs, rhs);
  }
  if (lhs_one) return rhs;
  if (rhs_one) return lhs;
  return may_be_equal(lhs, rhs) ? std::optional(plainer(lhs, rhs)) : std::nullopt;
}

void warn_of(NodeContext& node, const Dim& lhs, const Dim& rhs) {
  if (lhs.counted || rhs.counted) return;
  node.warn("extents " + lhs.extent.to_string() + " and " + rhs.extent.to_string() +
            " are not seen to be equal; a run where they do not fit ends" + binding_advice({lhs, rhs}));
}

// Whether these cannot fit in any run, whatever extents its dims have.
bool differ_for_sure(const std::vector<Dim>& own, const std::vector<Dim>& wanted, bool stretches) {
  if (stretches ? own.size() > wanted.size() : own.size() != wanted.size()) return true;
  for (size_t i = 0; i < own.size(); ++i) {
    const Dim &lhs = own[i], &rhs = wanted[wanted.size() - own.size() + i];
    if (lhs.is_static() && rhs.is_static() && lhs != rhs && !(stretches && lhs == Dim(1))) return true;
  }
  return false;
}

// x with `extent` along `axis`; a run in which x has another extent there ends. `stretches`: an extent of 1
// is broadcast.
Value with_extent(NodeContext& node, Value x, int axis, const Dim& extent, bool stretches = false) {
  if (!x || node.failed()) return {};
  const Dim own = x.type().dims[static_cast<size_t>(axis)];
  if (own == extent) return x;
  Value places = node.iota(DType::I64, {extent}, 0);
  Value size = node.dim_size(x, axis), wanted = node.dim_size(places, 0);
  if (stretches && may_be_one(own)) {
    Value one = node.scalar_int(DType::I64, 1), is_one = node.compare("eq", size, one);
    places = multiply(node, places, node.select(is_one, node.scalar_int(DType::I64, 0), one));
    wanted = node.select(is_one, one, wanted);
  }
  // The gather must depend on the check, so its places are moved by the difference: 0, unless the run has
  // ended.
  Value excess = subtract(node, same_value(node, size, wanted), wanted);
  return node.op(Opcode::Gather, {x, add(node, places, excess)}, {{"axis", int64_t{axis}}});
}

} // namespace

bool may_be_equal(const Dim& lhs, const Dim& rhs) {
  if (!is_safe_dim(lhs.extent) || !is_safe_dim(rhs.extent)) return false;
  IntExpr difference = lhs.extent - rhs.extent;
  return difference.lower_bound() <= 0 && difference.upper_bound() >= 0;
}

Value with_extents(NodeContext& node, Value x, const std::vector<Dim>& dims, bool stretches) {
  int shift = static_cast<int>(dims.size()) - (x ? x.rank() : 0);
  for (int i = std::max(0, -shift); x && i < x.rank(); ++i) {
    const Dim own = x.type().dims[static_cast<size_t>(i)], extent = dims[static_cast<size_t>(i + shift)];
    bool fits = may_be_equal(own, extent) || (stretches && may_be_one(own));
    if (own == extent || (stretches && own == Dim(1)) || !fits) continue;
    warn_of(node, own, extent);
    x = with_extent(node, x, i, extent, stretches);
  }
  return x;
}

Value input_with_extents(NodeContext& node, int input, const std::vector<Dim>& dims, bool stretches) {
  Value given = node.input(input);
  if (!given || node.failed()) return {};
  Value x = with_extents(node, given, dims, stretches);
  if (!x) return {};
  auto found = stretches ? broadcast_dims(x.type().dims, dims) : std::optional(x.type().dims);
  if (found && *found == dims) return x;
  std::string text = node.input_label(input) + " is " + given.type().to_string() + ", wants " +
                     (stretches ? "a shape that broadcasts to " : "") +
                     Type::tensor(given.dtype(), dims).to_string();
  if (differ_for_sure(given.type().dims, dims, stretches)) return node.fail(text), Value{};
  std::vector<Dim> both = given.type().dims;
  both.insert(both.end(), dims.begin(), dims.end());
  return node.fail_unsupported(text + binding_advice(both)), Value{};
}

Value concatenate_where_equal(NodeContext& node, Values parts, int axis) {
  for (Value& part : parts) {
    if (!part) return {};
    std::vector<Dim> dims = parts[0].type().dims;
    if (part.rank() != static_cast<int>(dims.size())) break;
    dims[static_cast<size_t>(axis)] = part.type().dims[static_cast<size_t>(axis)];
    part = with_extents(node, part, dims);
  }
  return node.concatenate(std::move(parts), axis);
}

void meet(NodeContext& node, Value& lhs, int lhs_axis, Value& rhs, int rhs_axis, bool stretches) {
  const Dim own = lhs.type().dims[static_cast<size_t>(lhs_axis)],
            other = rhs.type().dims[static_cast<size_t>(rhs_axis)];
  if (own == other || (stretches && (own == Dim(1) || other == Dim(1)))) return;
  std::optional<Dim> extent;
  if (stretches)
    extent = unified_dim(node, own, other);
  else if (may_be_equal(own, other))
    extent = plainer(own, other);
  if (!extent) return;
  warn_of(node, own, other);
  lhs = with_extent(node, lhs, lhs_axis, *extent, stretches);
  rhs = with_extent(node, rhs, rhs_axis, *extent, stretches);
}

std::optional<std::vector<Dim>> unified_dims(NodeContext& node, const std::vector<Dim>& lhs,
                                             const std::vector<Dim>& rhs) {
  std::vector<Dim> dims = lhs.size() < rhs.size() ? rhs : lhs;
  for (size_t i = 1; i <= std::min(lhs.size(), rhs.size()); ++i) {
    const Dim &own = lhs[lhs.size() - i], &other = rhs[rhs.size() - i];
    auto dim = unified_dim(node, own, other);
    if (!dim) return std::nullopt;
    if (own != other && own != Dim(1) && other != Dim(1)) warn_of(node, own, other);
    dims[dims.size() - i] = *dim;
  }
  return dims;
}

Value broadcast_where_equal(NodeContext& node, Value x, const std::vector<Dim>& dims) {
  int shift = static_cast<int>(dims.size()) - (x ? x.rank() : 0);
  for (int i = 0; x && i < x.rank(); ++i)
    if (x.type().dims[static_cast<size_t>(i)] != Dim(1))
      x = with_extent(node, x, i, dims[static_cast<size_t>(i + shift)], /*stretches=*/true);
  return node.broadcast_to(x, dims);
}

Value reshape_where_equal(NodeContext& node, Value x, std::vector<Dim> dims) {
  dims = ImportState::with_counts(std::move(dims));
  if (!x || !is_sane_type(Type::tensor(x.dtype(), dims))) return node.reshape(x, std::move(dims));
  std::vector<Dim> before = x.type().dims, after = dims, row;
  while (!before.empty() && !after.empty() && before.back() == after.back() &&
         before.back().extent.lower_bound() > 0) {
    row.insert(row.begin(), before.back());
    before.pop_back(), after.pop_back();
  }
  auto rows = node.product(before), wanted = node.product(after);
  if (!rows || !wanted || rows->extent == wanted->extent || !may_be_equal(*rows, *wanted))
    return node.reshape(x, std::move(dims));
  warn_of(node, *rows, *wanted);
  row.insert(row.begin(), *rows);
  return node.reshape(with_extent(node, node.reshape(x, std::move(row)), 0, *wanted), std::move(dims));
}

} // namespace firn::onnx
