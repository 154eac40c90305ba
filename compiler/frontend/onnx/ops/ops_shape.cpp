// Importers of operators about shapes and dtypes: reshape and its kin, Shape, Size, Cast, Identity.
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/text_operators.h"
#include "compiler/frontend/onnx/wire/tensor_data.h"
#include "compiler/support/exact_quotient.h"
#include "compiler/support/int_expr_size.h"

#include <algorithm>

namespace firn::onnx {

namespace {

void import_identity(NodeContext& node) {
  node.set_output(0, node.input(0));
}

// --- Reshape: 0 copies the input's dim, -1 takes what is left.

// The extent that -1 stands for: the elements of `from` divided by those of `to`, which lacks that dim.
// Nothing if only a run knows whether they divide, or after a failure. Dims that occur on both sides cancel,
// so that symbolic ones need not be divided.
std::optional<Dim> rest_of(NodeContext& node, std::vector<Dim> from, std::vector<Dim> to) {
  for (size_t i = 0; i < to.size();) {
    auto same = std::find(from.begin(), from.end(), to[i]);
    bool zero = to[i] == Dim(0);
    if (same == from.end() || zero) {
      ++i;
      continue;
    }
    from.erase(same);
    to.erase(to.begin() + static_cast<std::ptrdiff_t>(i));
  }
  auto numerator = node.product(from), denominator = node.product(to);
  if (!numerator || !denominator) return std::nullopt;
  const IntExpr &count = numerator->extent, &divisor = denominator->extent;
  auto quotient = divisor.lower_bound() > 0 ? exact_quotient(count, divisor) : std::nullopt;
  if (quotient) return Dim(*quotient);
  if (count.is_constant() && divisor.is_constant())
    node.fail("cannot reshape " + node.input(0).type().to_string() +
              ": its elements do not divide into the shape");
  bool is_counted = numerator->counted || denominator->counted;
  if (node.failed() || is_counted || !is_safe_dim(count) || !is_safe_dim(divisor)) return std::nullopt;
  IntExpr rest = floor_div(count, at_least_one(divisor));
  return is_safe_dim(rest) ? std::optional(Dim(rest)) : std::nullopt;
}

// Whether one number of elements is counted, and the other is a different expression.
bool fits_by_data(NodeContext& node, const std::vector<Dim>& from, const std::vector<Dim>& to) {
  auto is_counted = [](const Dim& dim) { return dim.counted; };
  if (std::none_of(from.begin(), from.end(), is_counted) && std::none_of(to.begin(), to.end(), is_counted))
    return false;
  auto before = node.product(from), after = node.product(to);
  return before && after && !(before->extent == after->extent);
}

// Extents of the shape that are 0 in some runs copy x's dim in these, as a constant 0 does. They stay if x
// has the same number of elements or a dim of that extent: x is empty in such a run then.
void copy_where_zero(NodeContext& node, std::vector<Dim>& dims, int rest) {
  constexpr size_t kMaxAtoms = 12;
  const std::vector<Dim>& from = node.input(0).type().dims;
  for (size_t i = 0; i < std::min(from.size(), dims.size()); ++i) {
    const IntExpr extent = dims[i].extent, own = from[i].extent;
    bool may_be_zero = !extent.is_constant() && extent.lower_bound() == 0 && static_cast<int>(i) != rest;
    if (!may_be_zero || dims[i].counted || from[i].counted || !is_safe_dim(extent) || !is_safe_dim(own) ||
        is_larger_than(extent, kMaxAtoms) || is_larger_than(own, kMaxAtoms) ||
        std::find(from.begin(), from.end(), dims[i]) != from.end())
      continue;
    auto before = node.product(from), after = node.product(dims);
    if (!before || !after || (rest < 0 && before->extent == after->extent)) return;
    Dim copied(max(extent, (IntExpr(1) - min(extent, 1)) * own));
    if (is_safe_dim(copied.extent)) dims[i] = copied;
  }
}

// The dims of the shape for input 0, with -1 resolved. Nothing if only a run knows whether the number of
// elements fits, or after a failure.
std::optional<std::vector<Dim>> dims_of_shape(NodeContext& node, const std::vector<IntExpr>& shape,
                                              bool allow_zero) {
  Value x = node.input(0);
  std::vector<Dim> dims;
  int rest = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const IntExpr& extent = shape[i];
    bool zero = extent == IntExpr(0), minus_one = extent == IntExpr(-1);
    if (extent.is_constant() && extent.value() < -1)
      return node.fail("the shape holds " + extent.to_string()), std::nullopt;
    if (minus_one && rest >= 0) return node.fail("the shape holds -1 twice"), std::nullopt;
    if (zero && !allow_zero && static_cast<int>(i) >= x.rank())
      return node.fail("the shape holds 0 as dim " + std::to_string(i) + ", the input is " +
                       x.type().to_string()),
             std::nullopt;
    if (minus_one) rest = static_cast<int>(i);
    dims.push_back(minus_one ? Dim(1) : zero && !allow_zero ? x.type().dims[i] : Dim(extent));
  }
  dims = ImportState::with_counts(std::move(dims));
  if (!allow_zero) copy_where_zero(node, dims, rest);
  if (rest >= 0) {
    std::vector<Dim> others = dims;
    others.erase(others.begin() + rest);
    auto extent = rest_of(node, x.type().dims, std::move(others));
    if (!extent) return std::nullopt;
    dims[static_cast<size_t>(rest)] = *extent;
  }
  if (node.failed() || fits_by_data(node, x.type().dims, dims)) return std::nullopt;
  return dims;
}

// A Reshape to a shape of which only a run knows one extent, `value` at `place`. The other extents determine
// it; a run in which `value` is neither that extent nor -1 or 0 for it ends.
Value reshaped_as_said(NodeContext& node, std::vector<Dim> dims, bool allow_zero, size_t place, Value value) {
  Value x = node.input(0), y = reshape_where_equal(node, x, std::move(dims));
  if (!y) return {};
  auto dim = static_cast<int>(place);
  Value rest = node.dim_size(y, dim);
  value = node.select(node.compare("eq", value, node.scalar_int(DType::I64, -1)), rest, value);
  if (!allow_zero && dim < x.rank())
    value =
        node.select(node.compare("eq", value, node.scalar_int(DType::I64, 0)), node.dim_size(x, dim), value);
  return where_equal(node, y, value, rest);
}

void import_reshape(NodeContext& node) {
  Value shape = node.input(1);
  if (shape.rank() != 1)
    return node.fail("input 'shape' is " + shape.type().to_string() + ", wants a vector");
  bool allow_zero = node.flag_attribute("allowzero", false);
  if (auto known = node.known_ints(shape)) {
    auto dims = dims_of_shape(node, *known, allow_zero);
    if (dims) return node.set_output(0, reshape_where_equal(node, node.input(0), std::move(*dims)));
  } else if (node.constant(shape)) {
    node.fail("the shape has too many elements");
  }
  if (node.failed()) return;
  auto elements = scalars_of(node, 1);
  if (!elements) return;
  std::vector<IntExpr> sizes;
  size_t open = 0, unknown = 0, place = 0;
  for (Value element : *elements) {
    auto known = node.known_ints(element);
    open += !known || (*known)[0] == IntExpr(-1);
    if (!known) ++unknown, place = sizes.size();
    sizes.push_back(known ? (*known)[0] : IntExpr(-1));
  }
  auto dims = open == 1 ? dims_of_shape(node, sizes, allow_zero) : std::nullopt;
  if (node.failed()) return;
  if (!dims) return node.set_output(0, reshaped_by_values(node, allow_zero, std::move(*elements)));
  node.set_output(0, unknown == 0
                         ? reshape_where_equal(node, node.input(0), std::move(*dims))
                         : reshaped_as_said(node, std::move(*dims), allow_zero, place, (*elements)[place]));
}

void import_reshape_1(NodeContext& node) {
  Ints shape = node.required_ints("shape");
  if (node.failed()) return;
  auto dims = dims_of_shape(node, {shape.begin(), shape.end()}, /*allow_zero=*/false);
  if (node.failed()) return;
  if (dims) return node.set_output(0, reshape_where_equal(node, node.input(0), std::move(*dims)));
  Values elements;
  for (int64_t each : shape) elements.push_back(node.scalar_int(DType::I64, each));
  node.set_output(0, reshaped_by_values(node, /*allow_zero=*/false, std::move(elements)));
}

void import_flatten(NodeContext& node) {
  Value x = node.input(0);
  int64_t axis = node.int_attribute("axis", 1);
  if (axis < -x.rank() || axis > x.rank())
    return node.fail("axis " + std::to_string(axis) + " is out of range for rank " +
                     std::to_string(x.rank()));
  if (axis < 0) axis += x.rank();
  const auto& dims = x.type().dims;
  auto rows = node.product({dims.begin(), dims.begin() + axis}),
       columns = node.product({dims.begin() + axis, dims.end()});
  if (rows && columns) node.set_output(0, node.reshape(x, {*rows, *columns}));
}

// The axes of Squeeze and Unsqueeze: an attribute before opset 13, an input since.
std::optional<Ints> given_axes(NodeContext& node) {
  if (node.opset() < 13) return node.ints_attribute("axes");
  return node.has_input(1) ? node.required_constant_ints(1) : std::optional<Ints>(Ints{});
}

void import_squeeze(NodeContext& node) {
  Value x = node.input(0);
  auto given = given_axes(node);
  if (!given) return;
  auto axes = node.axes(*given, x.rank());
  if (!axes) return;
  bool all = node.opset() < 13 ? !node.has_attribute("axes") : !node.has_input(1);
  std::vector<Dim> dims;
  for (int i = 0; i < x.rank(); ++i) {
    const Dim& dim = x.type().dims[static_cast<size_t>(i)];
    bool listed = std::find(axes->begin(), axes->end(), i) != axes->end();
    if (listed && !node.static_dim(0, i)) return;
    if (listed && !(dim == Dim(1)))
      return node.fail("cannot squeeze dim " + std::to_string(i) + " of " + x.type().to_string() +
                       ": it is not 1");
    if (!listed && !(all && dim == Dim(1))) dims.push_back(dim);
  }
  node.set_output(0, node.reshape(x, std::move(dims)));
}

void import_unsqueeze(NodeContext& node) {
  Value x = node.input(0);
  if (node.opset() < 13 && !node.has_attribute("axes"))
    return node.fail("attribute 'axes' is missing, wants ints");
  auto given = given_axes(node);
  if (!given) return;
  if (!node.check(given->size() <= kMaxRank, std::to_string(given->size()) +
                                                 " axes are inserted, wants at most " +
                                                 std::to_string(kMaxRank)))
    return;
  int rank = x.rank() + static_cast<int>(given->size());
  auto axes = node.axes(*given, rank);
  if (!axes) return;
  std::vector<Dim> dims;
  size_t next = 0;
  for (int i = 0; i < rank; ++i)
    dims.push_back(std::find(axes->begin(), axes->end(), i) != axes->end() ? Dim(1) : x.type().dims[next++]);
  node.set_output(0, node.reshape(x, std::move(dims)));
}

// --- Shape and Size.

void import_shape(NodeContext& node) {
  Value x = node.input(0);
  auto clamp = [&](int64_t value) {
    return static_cast<int>(std::clamp<int64_t>(value < 0 ? value + x.rank() : value, 0, x.rank()));
  };
  int start = clamp(node.int_attribute("start", 0));
  int end = node.has_attribute("end") ? clamp(node.int_attribute("end", 0)) : x.rank();
  Values sizes;
  for (int i = start; i < end; ++i) sizes.push_back(node.unsqueeze(node.dim_size(x, i), 0));
  node.set_output(0, sizes.empty() ? node.constant_ints({}) : node.concatenate(std::move(sizes), 0));
}

void import_size(NodeContext& node) {
  std::vector<int> dims;
  for (int i = 0; i < node.input(0).rank(); ++i) dims.push_back(i);
  node.set_output(0, node.count(node.input(0), dims, DType::I64));
}

// --- Expand: numpy's rule in both directions, to a shape that is an input.

// The shape for Expand if a run decides some extents. Such an extent is counted if x may have 1 there; if x
// has more, it must be 1 or x's, or the run ends. Changes x; nothing after a failure.
std::optional<std::vector<Dim>> expanded_by_values(NodeContext& node, Value& x) {
  auto elements = scalars_of(node, 1);
  if (!elements) return std::nullopt;
  std::vector<Dim> wanted;
  auto places = static_cast<int>(elements->size());
  for (int i = 0; i < places; ++i) {
    Value said = (*elements)[static_cast<size_t>(i)];
    int own = x.rank() - places + i;
    bool stays = own >= 0 && x.type().dims[static_cast<size_t>(own)].extent.lower_bound() > 1;
    if (!stays || node.known_ints(said)) {
      auto extent = run_dim(node, 1, static_cast<size_t>(i), said);
      if (!extent) return std::nullopt;
      wanted.push_back(*extent);
      continue;
    }
    wanted.push_back(x.type().dims[static_cast<size_t>(own)]);
    Value extent = node.dim_size(x, own), one = node.scalar_int(DType::I64, 1);
    x = where_equal(node, x, node.select(node.compare("eq", said, one), extent, said), extent);
    if (!x) return std::nullopt;
  }
  return ImportState::with_counts(std::move(wanted));
}

// x; a run in which an extent of the shape is neither the result's nor 1 ends.
Value where_shape_fits(NodeContext& node, Value x, const std::vector<Dim>& shape,
                       const std::vector<Dim>& result) {
  size_t before = result.size() - shape.size();
  for (size_t i = 0; i < shape.size() && x; ++i) {
    const Dim &said = shape[i], &extent = result[before + i];
    if (said == extent || said == Dim(1)) continue;
    Value size = extent_value(node, said), whole = extent_value(node, extent),
          one = node.scalar_int(DType::I64, 1);
    x = where_equal(node, x, node.select(node.compare("eq", size, one), whole, size), whole);
  }
  return x;
}

void import_expand(NodeContext& node) {
  Value x = node.input(0);
  if (!node.check_rank(1, 1)) return;
  bool known = node.known_ints(node.input(1)) || node.constant(node.input(1));
  auto wanted = known ? node.known_dims(1) : expanded_by_values(node, x);
  if (!wanted) return;
  auto dims = unified_dims(node, x.type().dims, *wanted);
  if (dims) x = where_shape_fits(node, x, *wanted, *dims);
  if (!dims)
    return node.fail(x.type().to_string() + " does not broadcast with shape " +
                     Type::tensor(DType::I64, *wanted).to_string().substr(3));
  node.set_output(0, broadcast_where_equal(node, x, *dims));
}

// --- Casts.

bool is_float8(DType dtype) {
  return is_float(dtype) && bit_width(dtype) <= 8;
}

// A positive number rounded to a power of two, as f32: e8m0 has no other values. `up` rounds towards
// infinity.
Value round_to_power(NodeContext& node, Value x, const std::string& mode) {
  Value wide = node.convert(x, DType::F32);
  if (!wide) return {};
  Instruction* bits =
      node.make_typed(Opcode::BitcastConvert, {wide}, {Type::tensor(DType::U32, wide.type().dims)});
  if (!bits) return {};
  int64_t carry = mode == "up" ? 0x7fffff : mode == "nearest" ? 0x400000 : 0;
  Value rounded = node.binary(Opcode::Add, bits->result(), node.scalar_int(DType::U32, carry));
  rounded = node.binary(Opcode::And, rounded, node.scalar_int(DType::U32, 0x7f800000));
  if (!rounded) return {};
  Instruction* power = node.make_typed(Opcode::BitcastConvert, {rounded}, {wide.type()});
  if (!power) return {};
  return node.select(node.unary(Opcode::IsNaN, wide), wide, power->result());
}

Value cast(NodeContext& node, Value x, DType to) {
  if (x.dtype() == to) return x;
  if (x.dtype() == DType::String || to == DType::String) return converted_text(node, x, to);
  Attributes attributes{{"to", to}};
  if (is_float8(to) && node.flag_attribute("saturate", true)) attributes.set("saturate", true);
  if (to == DType::F8E8M0 && is_float(x.dtype()))
    x = round_to_power(node, x, node.choice_attribute("round_mode", "up", {"up", "down", "nearest"}));
  // f4 has neither NaN nor infinity: ONNX's tests want NaN to be -0.
  if (to == DType::F4E2M1 && is_float(x.dtype()))
    x = node.select(node.unary(Opcode::IsNaN, x), node.scalar(x.dtype(), -0.0), x);
  return node.op(Opcode::Convert, {x}, std::move(attributes));
}

void import_cast(NodeContext& node) {
  auto to = node.dtype_attribute("to");
  if (!to) return node.fail("attribute 'to' is missing");
  node.set_output(0, cast(node, node.input(0), *to));
}

// Opset 1 to 5 spelled the type: "FLOAT".
void import_cast_1(NodeContext& node) {
  static constexpr std::pair<std::string_view, DType> kNames[] = {
      {"FLOAT", DType::F32},   {"UINT8", DType::U8},   {"INT8", DType::I8},    {"UINT16", DType::U16},
      {"INT16", DType::I16},   {"INT32", DType::I32},  {"INT64", DType::I64},  {"BOOL", DType::Bool},
      {"FLOAT16", DType::F16}, {"DOUBLE", DType::F64}, {"UINT32", DType::U32}, {"UINT64", DType::U64},
  };
  std::string to = node.string_attribute("to", "");
  for (const auto& [name, dtype] : kNames)
    if (name == to) return node.set_output(0, cast(node, node.input(0), dtype));
  node.fail("attribute 'to' is '" + to + "', wants the name of a type such as FLOAT");
}

void import_cast_like(NodeContext& node) {
  node.set_output(0, cast(node, node.input(0), node.input(1).dtype()));
}

void import_bit_cast(NodeContext& node) {
  Value x = node.input(0);
  auto to = node.dtype_attribute("to");
  if (!to) return node.fail("attribute 'to' is missing");
  if (*to == DType::String || x.dtype() == DType::String || bit_width(*to) != bit_width(x.dtype()))
    return node.fail("cannot read " + x.type().to_string() + " as " + std::string(dtype_name(*to)) +
                     ": both must have one width");
  if (*to == x.dtype()) return node.set_output(0, x);
  Instruction* made = node.make_typed(Opcode::BitcastConvert, {x}, {Type::tensor(*to, x.type().dims)});
  if (made) node.set_output(0, made->result());
}

constexpr OperatorRow kRows[] = {
    {"", "BitCast", 26, kLatest, 1, 1, 1, 1, "any", import_bit_cast,
     "the same bits as another type of that width"},
    {"", "Cast", 1, 5, 1, 1, 1, 1, "any", import_cast_1, "conversion to another dtype"},
    {"", "Cast", 6, kLatest, 1, 1, 1, 1, "any", import_cast,
     "conversion to another dtype, strings in decimal; what is no number ends a run"},
    {"", "CastLike", 15, kLatest, 2, 2, 1, 1, "any any", import_cast_like,
     "conversion to the second input's dtype"},
    {"", "Expand", 8, kLatest, 2, 2, 1, 1, "any int", import_expand,
     "broadcast to a shape that is constant, made of dims, or of the run within bounds"},
    {"", "Flatten", 1, kLatest, 1, 1, 1, 1, "any", import_flatten, "reshape to a matrix"},
    {"", "Identity", 1, kLatest, 1, 1, 1, 1, "value", import_identity, "the input"},
    {"", "Reshape", 1, 4, 1, 1, 1, 1, "any", import_reshape_1, "other dims by attribute"},
    {"", "Reshape", 5, kLatest, 2, 2, 1, 1, "any i64~int", import_reshape,
     "other dims, constant, made of dims, or of the run"},
    {"", "Shape", 1, kLatest, 1, 1, 1, 1, "any", import_shape, "dims as a vector"},
    {"", "Size", 1, kLatest, 1, 1, 1, 1, "any", import_size, "number of elements"},
    {"", "Squeeze", 1, kLatest, 1, 2, 1, 1, "any i64~int", import_squeeze, "drops dims of extent 1"},
    {"", "Unsqueeze", 1, kLatest, 1, 2, 1, 1, "any i64~int", import_unsqueeze, "inserts dims of extent 1"},
};

} // namespace

std::span<const OperatorRow> shape_operators() {
  return kRows;
}

} // namespace firn::onnx
