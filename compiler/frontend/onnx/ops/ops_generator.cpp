// Importers of operators that generate tensors: constants, ranges, identity matrices.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import_context.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/onnx.pb.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/wire/tensor_data.h"
#include "compiler/support/int_expr_values.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace firn::onnx {

namespace {

void import_constant(NodeContext& node) {
  LiteralRef literal;
  int given = 0;
  auto has = [&](const char* name) { return node.has_attribute(name) && ++given; };
  if (has("value")) literal = node.tensor_attribute("value");
  if (has("sparse_value")) literal = node.tensor_attribute("sparse_value");
  if (has("value_float")) literal = Literal::scalar(DType::F32, node.float_attribute("value_float", 0));
  if (has("value_int")) literal = Literal::of(DType::I64, {}, node.unbounded_int_attribute("value_int"));
  if (has("value_floats")) {
    auto values = node.floats_attribute("value_floats");
    literal = Literal::of(DType::F32, {static_cast<int64_t>(values.size())}, values);
  }
  if (has("value_ints")) literal = Literal::of_i64(node.unbounded_ints_attribute("value_ints"));
  if (has("value_string")) literal = Literal::strings({}, {node.string_attribute("value_string", "")});
  if (has("value_strings")) {
    auto values = node.strings_attribute("value_strings");
    auto count = static_cast<int64_t>(values.size());
    literal = Literal::strings({count}, std::move(values));
  }
  if (given != 1)
    return node.fail("has " + std::to_string(given) + " of the value attributes, wants exactly one");
  node.set_output(0, node.model_constant(node.state().options.constant(literal)));
}

void import_constant_of_shape(NodeContext& node) {
  if (!node.check_rank(0, 1)) return;
  auto dims = run_dims(node, 0);
  if (!dims) return;
  LiteralRef value = Literal::scalar(DType::F32, 0);
  if (node.has_attribute("value")) {
    value = node.tensor_attribute("value");
    if (!value) return;
    if (!node.check(value->num_elements() == 1 && value->dtype() != DType::String,
                    "attribute 'value' is " + value->type().to_string() + ", wants one number"))
      return;
  }
  node.set_output(0, node.broadcast_to(node.constant(Literal::reshaped(value, {})), *dims));
}

// The length of a range of constants. It is a double because it may be beyond any integer. Nothing after a
// failure.
std::optional<double> constant_count(NodeContext& node, const Literal& start, const Literal& limit,
                                     const Literal& delta) {
  if (!node.check(delta.get_double(0) != 0, "delta is 0")) return std::nullopt;
  if (!is_integer(start.dtype())) {
    double count = std::ceil((limit.get_double(0) - start.get_double(0)) / delta.get_double(0));
    return std::max(count, 0.0); // a NaN stays
  }
  // Unsigned 64-bit numbers hold the distance of any two integers.
  auto first = static_cast<uint64_t>(start.get_int(0)), last = static_cast<uint64_t>(limit.get_int(0)),
       step = static_cast<uint64_t>(delta.get_int(0));
  bool falls = is_signed(start.dtype()) && delta.get_int(0) < 0;
  bool is_ahead = is_signed(start.dtype()) ? limit.get_int(0) > start.get_int(0) : last > first;
  if (first == last || is_ahead == falls) return 0;
  uint64_t distance = falls ? first - last : last - first;
  if (falls) step = 0 - step;
  return static_cast<double>(distance / step + (distance % step != 0 ? 1 : 0));
}

LiteralRef stored_range(const Literal& start, const Literal& delta, int64_t count) {
  auto literal = std::make_shared<Literal>(start.dtype(), Ints{count});
  for (int64_t i = 0; i < count; ++i) {
    if (is_integer(start.dtype()))
      literal->set_int(
          i, static_cast<int64_t>(static_cast<uint64_t>(start.get_int(0)) +
                                  static_cast<uint64_t>(i) * static_cast<uint64_t>(delta.get_int(0))));
    else
      literal->set_double(i, start.get_double(0) + static_cast<double>(i) * delta.get_double(0));
  }
  return literal;
}

// A range of constants, in f64 or the arithmetic of integers. Ranges in real models, such as positions and
// frequencies, are stored; larger ones are computed by their readers.
Value constant_range(NodeContext& node, const Literal& start, const Literal& limit, const Literal& delta) {
  constexpr int64_t kMaxStored = 4194304;
  auto found = constant_count(node, start, limit, delta);
  if (!found) return {};
  if (!(*found <= static_cast<double>(kMaxElements))) {
    char count[400];
    std::snprintf(count, sizeof count, "%.0f", *found);
    return node.fail("the range has " + std::string(count) + " elements, more than Firn can hold"), Value{};
  }
  auto count = static_cast<int64_t>(*found);
  if (count <= kMaxStored) return node.constant(stored_range(start, delta, count));
  DType dtype = start.dtype(), work = is_integer(dtype) ? dtype : DType::F64;
  auto scalar = [&](const Literal& literal) {
    return is_integer(dtype) ? node.scalar_int(work, literal.get_int(0))
                             : node.scalar(work, literal.get_double(0));
  };
  Value index = node.iota(work, {Dim(count)}, 0);
  return node.convert(add(node, multiply(node, index, scalar(delta)), scalar(start)), dtype);
}

// The length of a range whose ends a run computes; below 0 if it has none.
Value range_count(NodeContext& node, Value start, Value limit, Value delta) {
  Value zero = node.scalar_int(DType::I64, 0), none = node.scalar_int(DType::I64, -1);
  if (is_integer(start.dtype())) {
    start = node.convert(start, DType::I64);
    limit = node.convert(limit, DType::I64);
    delta = node.convert(delta, DType::I64);
    Value distance = subtract(node, limit, start);
    Value rest = node.binary(Opcode::Remainder, distance, delta);
    Value same_sign = node.compare("eq", node.compare("gt", rest, zero), node.compare("gt", delta, zero));
    Value is_part = both(node, node.compare("ne", rest, zero), same_sign);
    Value count = add(node, divide(node, distance, delta), node.convert(is_part, DType::I64));
    // A distance has wrapped if its sign does not agree with the order of the ends.
    Value wraps = node.compare("ne", node.convert(node.compare("gt", limit, start), DType::I64),
                               node.convert(node.compare("gt", distance, zero), DType::I64));
    Value wrong = node.binary(Opcode::Or, node.compare("eq", delta, zero), wraps);
    return node.select(wrong, none, larger(node, count, zero));
  }
  Value steps =
      divide(node, node.convert(subtract(node, limit, start), DType::F64), node.convert(delta, DType::F64));
  constexpr double far = 0x1p40;
  steps = smaller(node, larger(node, node.unary(Opcode::Ceil, steps), node.scalar(DType::F64, 0)),
                  node.scalar(DType::F64, far));
  return node.select(node.compare("eq", delta, node.splat_like(delta, 0)), none,
                     node.convert(steps, DType::I64));
}

// Imports a range whose length the run counts. False if the length has no upper bound.
bool range_by_values(NodeContext& node) {
  Value start = node.reshape(node.input(0), {}), limit = node.reshape(node.input(1), {}),
        delta = node.reshape(node.input(2), {});
  Value count = range_count(node, start, limit, delta);
  if (!count) return true;
  auto max = derived_bound(node, count);
  if (auto given = given_bound(node, node.proto().output(0))) max = max ? std::min(*max, *given) : *given;
  if (!max) return false;
  auto extent = counted_extent(node, count, *max);
  if (!extent) return true;
  Value index = node.iota(start.dtype(), {*extent}, 0);
  node.set_output(0, add(node, multiply(node, index, delta), start));
  return true;
}

void import_range(NodeContext& node) {
  for (int i = 0; i < 3; ++i)
    if (!node.check_scalar(i)) return;
  LiteralRef start = node.constant(node.input(0)), limit = node.constant(node.input(1)),
             delta = node.constant(node.input(2));
  if (start && limit && delta) return node.set_output(0, constant_range(node, *start, *limit, *delta));
  auto from = node.known_ints(node.input(0)), to = node.known_ints(node.input(1));
  auto by = node.known_ints(node.input(2));
  bool falls = by && (*by)[0].upper_bound() < 0, rises = by && (*by)[0].lower_bound() > 0;
  if (by && (*by)[0] == IntExpr(0)) return node.fail("delta is 0");
  if (!from || !to || !(falls || rises)) {
    if (!range_by_values(node))
      node.fail_unknown(node.inputs(),
                        "how many numbers there are is known only when it runs, and nothing bounds it" +
                            bounding_advice(node.proto().output(0)));
    return;
  }
  bool safe = is_safe_dim((*from)[0]) && is_safe_dim((*to)[0]) && is_safe_dim((*by)[0]);
  if (!node.check(safe, "a bound is out of range")) return;
  // A range whose end lies on the other side is empty.
  IntExpr distance = falls ? (*from)[0] - (*to)[0] : (*to)[0] - (*from)[0];
  IntExpr extent = ceil_div(distance, falls ? IntExpr(0) - (*by)[0] : (*by)[0]);
  Dim count(distance.lower_bound() < 0 ? decided_max(extent, 0) : extent);
  DType dtype = node.input(0).dtype();
  Value index = node.iota(dtype, {count}, 0);
  Value step = node.reshape(node.input(2), {}), first = node.reshape(node.input(0), {});
  if ((*by)[0] != 1) index = node.binary(Opcode::Multiply, index, step);
  node.set_output(0, node.binary(Opcode::Add, index, first));
}

void import_eye_like(NodeContext& node) {
  Value x = node.input(0);
  if (!node.check_rank(0, 2)) return;
  DType dtype = node.dtype_attribute("dtype").value_or(x.dtype());
  int64_t k = node.int_attribute("k", 0);
  if (dtype == DType::String) return node.fail_unsupported("a matrix of strings");
  Value row = node.iota(DType::I64, x.type().dims, 0), column = node.iota(DType::I64, x.type().dims, 1);
  Value diagonal = node.compare("eq", column, node.binary(Opcode::Add, row, node.scalar_int(DType::I64, k)));
  node.set_output(0, node.convert(diagonal, dtype));
}

constexpr OperatorRow kRows[] = {
    {"", "Constant", 1, kLatest, 0, 0, 1, 1, "", import_constant,
     "a tensor, dense or sparse, or a list of numbers or strings"},
    {"", "ConstantOfShape", 9, kLatest, 1, 1, 1, 1, "i64~int", import_constant_of_shape,
     "one value in a shape that is constant, made of dims, or of the run within bounds"},
    {"", "EyeLike", 9, kLatest, 1, 1, 1, 1, "any", import_eye_like, "ones on a diagonal"},
    {"", "Range", 11, kLatest, 3, 3, 1, 1, "T=num T T", import_range,
     "numbers in steps; bounds constant, made of dims, or of the run"},
};

} // namespace

std::span<const OperatorRow> generator_operators() {
  return kRows;
}

} // namespace firn::onnx
