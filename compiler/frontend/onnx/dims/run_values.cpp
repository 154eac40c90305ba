// Code that computes extents as it runs, and checks them against their bounds.
#include "compiler/frontend/onnx/dims/run_values.h"

#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/counted.h"
#include "compiler/frontend/onnx/dims/value_range.h"
#include "compiler/frontend/onnx/import/unbound_dims.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/onnx.pb.h"

#include <algorithm>

namespace firn::onnx {
namespace {

Value number(NodeContext& node, int64_t value) {
  return node.scalar_int(DType::I64, value);
}

// Element i of a vector, from the part of a concatenation that has it.
Value element_of(NodeContext& node, Value vector, int64_t i) {
  while (vector.def->is(Opcode::Concatenate) && vector.rank() == 1) {
    Value part;
    for (Value operand : vector.def->operands()) {
      if (!operand.type().is_static()) break;
      if (i < operand.type().num_elements()) {
        part = operand;
        break;
      }
      i -= operand.type().num_elements();
    }
    if (!part) return {};
    vector = part;
  }
  return node.reshape(node.slice_dim(vector, 0, i, i + 1), {});
}

std::optional<IntExpr> known_extent(NodeContext& node, Value value) {
  auto known = node.known_ints(value);
  return known && known->size() == 1 ? std::optional((*known)[0]) : std::nullopt;
}

std::string name_of_input(const NodeContext& node, int input) {
  return input < node.proto().input_size() ? node.proto().input(input) : std::string();
}

// The shape of a Reshape, dim by dim. `elements` are the model's i64 scalars for it, with 0 and -1.
class RunShape {
public:
  RunShape(NodeContext& node, bool allow_zero, Values elements)
      : node_(node), x_(node.input(0)), allow_zero_(allow_zero), sizes_(std::move(elements)) {}

  // The extents of the shape, whose elements the run checks (sizes()); nothing after a failure.
  std::optional<std::vector<Dim>> dims(const Dim& all) {
    resolve();
    if (node_.failed()) return std::nullopt;
    Value count = node_.count(x_, every_dim(), DType::I64), product = number(node_, 1);
    for (Value size : sizes_) product = multiply(node_, product, size);
    // A run ends here if the shape has another number of elements than x: all counted extents add `excess`.
    Value excess = subtract(node_, same_value(node_, product, count), count);
    std::vector<Dim> dims;
    int64_t room = 1;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      auto extent = dim(i, all, excess);
      if (!extent) return std::nullopt;
      dims.push_back(*extent);
      int64_t max = std::max<int64_t>(1, std::min(extent->extent.upper_bound(), kMax));
      room = std::min(room, kMax / max) * max;
    }
    bool wasteful = room > kFreeRoom && room / kMaxPadding > all.extent.upper_bound();
    if (wasteful && !is_bounded_) {
      node_.fail_unknown({node_.input(1)},
                         node_.input_label(1) + " is known only when it runs, and there would be room for " +
                             std::to_string(room) + " elements" + bounding_advice(name_of_input(node_, 1)));
      return std::nullopt;
    }
    return dims;
  }

  const Values& sizes() const { return sizes_; }

private:
  static constexpr int64_t kMax = int64_t{1} << 40; // elements; keeps products of extents from overflowing
  static constexpr int64_t kFreeRoom = 1 << 16;     // elements of padding that are too few to matter
  static constexpr int64_t kMaxPadding = 16;        // elements of room for each that x may have

  std::vector<int> every_dim() const {
    std::vector<int> dims;
    for (int i = 0; i < x_.rank(); ++i) dims.push_back(i);
    return dims;
  }

  bool is_constant(size_t i, int64_t value) const {
    auto known = known_extent(node_, sizes_[i]);
    return known && *known == IntExpr(value);
  }

  // Replaces 0 by the dim of x, then -1 by the extent that is left.
  void resolve() {
    for (size_t i = 0; i < sizes_.size(); ++i)
      open_.push_back(!known_extent(node_, sizes_[i]) || is_constant(i, -1));
    for (size_t i = 0; i < sizes_.size() && !allow_zero_; ++i) {
      if (static_cast<int>(i) >= x_.rank() || (!open_[i] && !is_constant(i, 0))) continue;
      Value zero = node_.compare("eq", sizes_[i], number(node_, 0));
      sizes_[i] = node_.select(zero, node_.dim_size(x_, static_cast<int>(i)), sizes_[i]);
    }
    Value others = number(node_, 1), minus_one = number(node_, -1), one = number(node_, 1),
          left = number(node_, 0);
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (!open_[i]) {
        others = multiply(node_, others, sizes_[i]);
        continue;
      }
      Value is_left = node_.compare("eq", sizes_[i], minus_one);
      left = add(node_, left, node_.convert(is_left, DType::I64));
      others = multiply(node_, others, node_.select(is_left, one, sizes_[i]));
    }
    Value rest = divide(node_, node_.count(x_, every_dim(), DType::I64), larger(node_, others, one));
    // A second -1, or one beside an extent of 0, has no value: it stays -1, which ends the run.
    Value has_rest = both(node_, node_.compare("eq", left, one), node_.compare("ge", others, one));
    rest = node_.select(has_rest, rest, minus_one);
    for (size_t i = 0; i < sizes_.size(); ++i)
      if (open_[i]) sizes_[i] = node_.select(node_.compare("eq", sizes_[i], minus_one), rest, sizes_[i]);
  }

  // An upper bound for extent `dim` if there are `count` elements at most: these are divided among the dims
  // that are known.
  int64_t max_rows(size_t dim, int64_t count) const {
    for (size_t i = 0; i < sizes_.size(); ++i) {
      auto known = i == dim || open_[i] ? std::nullopt : known_extent(node_, sizes_[i]);
      if (known) count /= std::max<int64_t>(1, known->lower_bound());
    }
    return count;
  }

  // Extent i of the shape; `all`: the number of x's elements.
  std::optional<Dim> dim(size_t i, const Dim& all, Value excess) {
    auto known = known_extent(node_, sizes_[i]);
    if (known && !open_[i]) {
      if (known->lower_bound() >= 0 && is_safe_dim(*known)) return ImportState::with_counts({Dim(*known)})[0];
      node_.fail("the shape holds " + known->to_string());
      return std::nullopt;
    }
    int64_t max = max_rows(i, all.extent.upper_bound());
    auto given = given_bound(node_, name_of_input(node_, 1), i);
    if (max == 0 && !given) {
      node_.fail_unknown({node_.input(1)}, node_.input_label(1) +
                                               " is known only when it runs, and of no elements "
                                               "its extents may be any" +
                                               bounding_advice(name_of_input(node_, 1)));
      return std::nullopt;
    }
    if (given) max = max == 0 ? *given : std::min(max, *given), is_bounded_ = true;
    sizes_[i] = add(node_, sizes_[i], excess);
    return counted_extent(node_, sizes_[i], max);
  }

  NodeContext& node_;
  Value x_;
  bool allow_zero_, is_bounded_ = false;
  Values sizes_;
  std::vector<bool> open_; // elements that are not known now, or are -1
};

} // namespace

std::optional<int64_t> given_bound(NodeContext& node, const std::string& name, size_t element) {
  const auto& bounds = node.state().options.bounds;
  auto found = bounds.find(name);
  if (found == bounds.end()) return std::nullopt;
  node.state().used_bounds.insert(name);
  const std::vector<int64_t>& each = found->second;
  return each[std::min(element, each.size() - 1)];
}

std::optional<int64_t> derived_bound(NodeContext& node, Value value) {
  constexpr int64_t kMeant = int64_t{1} << 20; // larger values come from the range of a type
  auto max = max_of(node, value);
  return max && *max <= kMeant ? max : std::nullopt;
}

std::string bounding_advice(const std::string& name) {
  return "; give the most that it may be: --max " + shell_word(name) + "=<n>";
}

Value within_bound(NodeContext& node, Value value, int64_t max) {
  return within_bounds(node, number(node, 0), value, number(node, max));
}

Value within_bounds(NodeContext& node, Value min, Value value, Value max) {
  return node.op(Opcode::Clamp, {min, value, max}, {{"checked", true}});
}

std::optional<Dim> counted_extent(NodeContext& node, Value value, int64_t max) {
  if (max > kMaxElements) {
    node.fail_unsupported("an extent may be " + std::to_string(max) + ", more than Firn can hold");
    return std::nullopt;
  }
  // A count of at most 0 still needs a step, so that the run checks the value.
  Value steps = node.iota(DType::I64, {Dim(std::max<int64_t>(max, 1))}, 0);
  Value found = non_zero(node, node.compare("lt", steps, within_bound(node, value, max)));
  return found ? std::optional(found.type().dims[1]) : std::nullopt;
}

Value extent_value(NodeContext& node, const Dim& dim) {
  return node.dim_size(node.iota(DType::I64, {dim}, 0), 0);
}

Value same_value(NodeContext& node, Value value, Value wanted) {
  return within_bounds(node, wanted, value, wanted);
}

Value where_equal(NodeContext& node, Value x, Value value, Value wanted) {
  if (!x || !value || !wanted) return {};
  auto all = node.product(x.type().dims);
  if (!all || all->extent.upper_bound() == 0) return x;
  // The gather must depend on the check, so its places are moved by the difference: 0, unless the run has
  // ended.
  const std::vector<Dim> dims = x.type().dims;
  if (dims.empty()) x = node.reshape(x, {Dim(1)});
  Value places = add(node, node.iota(DType::I64, {x.type().dims[0]}, 0),
                     subtract(node, same_value(node, value, wanted), wanted));
  return node.reshape(node.op(Opcode::Gather, {x, places}, {{"axis", int64_t{0}}}), dims);
}

Value gather_inside(NodeContext& node, Value x, int axis, Value places) {
  return node.op(Opcode::Gather, {x, node.convert(places, DType::U32)}, {{"axis", int64_t{axis}}});
}

std::optional<Values> scalars_of(NodeContext& node, int input, int64_t max) {
  if (!node.check_vector(input)) return std::nullopt;
  Value vector = node.convert(node.input(input), DType::I64);
  if (vector && vector.rank() == 0) return Values{vector};
  auto count = node.static_dim(vector, 0, node.input_label(input));
  if (!count || !node.check(*count <= max, node.input_label(input) + " has too many elements"))
    return std::nullopt;
  Values elements;
  for (int64_t i = 0; i < *count; ++i) elements.push_back(element_of(node, vector, i));
  return node.failed() ? std::nullopt : std::optional(elements);
}

std::optional<int64_t> bound_of(NodeContext& node, int input, size_t element, Value value) {
  auto max = derived_bound(node, value);
  std::string name = name_of_input(node, input);
  if (auto given = given_bound(node, name, element)) max = max ? std::min(*max, *given) : *given;
  if (!max && !node.failed())
    node.fail_unknown({node.input(input)}, node.input_label(input) +
                                               " is known only when it runs, and nothing bounds it" +
                                               bounding_advice(name));
  return max;
}

std::optional<Dim> run_dim(NodeContext& node, int input, size_t element, Value value, int64_t max) {
  auto known = known_extent(node, value);
  if (known && known->lower_bound() >= 0 && is_safe_dim(*known))
    return ImportState::with_counts({Dim(*known)})[0];
  if (!node.check(!known || known->upper_bound() >= 0, node.input_label(input) + " holds " +
                                                           (known ? known->to_string() : "") +
                                                           ", which is no extent of a dim"))
    return std::nullopt;
  if (auto given = given_bound(node, name_of_input(node, input), element)) max = std::min(max, *given);
  auto bound = max < INT64_MAX ? std::optional(max) : bound_of(node, input, element, value);
  return bound ? counted_extent(node, value, *bound) : std::nullopt;
}

std::optional<std::vector<Dim>> run_dims(NodeContext& node, int input) {
  if (node.known_ints(node.input(input)) || node.constant(node.input(input))) return node.known_dims(input);
  auto elements = scalars_of(node, input);
  if (!elements) return std::nullopt;
  std::vector<Dim> dims;
  for (size_t i = 0; i < elements->size(); ++i) {
    auto extent = run_dim(node, input, i, (*elements)[i]);
    if (!extent) return std::nullopt;
    dims.push_back(*extent);
  }
  return dims;
}

Value reshaped_by_values(NodeContext& node, bool allow_zero, Values elements) {
  Value x = node.input(0);
  auto all = node.product(x.type().dims);
  if (!all) return {};
  // Only symbolic dims make so many elements; static_dims() reports the first of them.
  if (all->extent.upper_bound() > kMaxElements) return (void)node.static_dims(0), Value{};
  RunShape shape(node, allow_zero, std::move(elements));
  auto dims = shape.dims(*all);
  if (!dims) return {};
  if (all->extent.upper_bound() == 0) return node.splat(x.dtype(), *dims, 0);
  // Elements are gathered one by one: a Reshape could not tell that the counted extents fit.
  Value place = node.splat(DType::I64, *dims, 0), stride = number(node, 1);
  for (size_t i = dims->size(); i-- > 0;) {
    Value steps = node.iota(DType::I64, *dims, static_cast<int>(i));
    place = add(node, place, multiply(node, steps, stride));
    stride = multiply(node, stride, shape.sizes()[i]);
  }
  if (node.failed()) return {};
  return node.op(Opcode::Gather, {node.reshape(x, {*all}), place}, {{"axis", int64_t{0}}});
}

} // namespace firn::onnx
