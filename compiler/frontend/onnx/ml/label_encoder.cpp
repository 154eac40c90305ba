// LabelEncoder: maps numbers or strings to other numbers or strings. Numbers are found by a binary search in
// the sorted keys, all elements at once; strings by an op of their own.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/ml/feature_operators.h"
#include "compiler/frontend/onnx/ops/text_operators.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace firn::onnx {

namespace {

LiteralRef strings(std::vector<std::string> values) {
  auto count = static_cast<int64_t>(values.size());
  return Literal::strings({count}, std::move(values));
}

// The one of the attributes keys_* or values_* that is given, as a vector; fail() if none or several are.
LiteralRef read_list(NodeContext& node, const std::string& which) {
  LiteralRef found;
  int given = 0;
  if (node.has_attribute(which + "_strings") && ++given)
    found = strings(node.strings_attribute(which + "_strings"));
  if (node.has_attribute(which + "_floats") && ++given) {
    auto values = node.floats_attribute(which + "_floats");
    found = Literal::of(DType::F32, {static_cast<int64_t>(values.size())}, values);
  }
  if (node.has_attribute(which + "_int64s") && ++given)
    found = Literal::of_i64(node.unbounded_ints_attribute(which + "_int64s"));
  if (node.has_attribute(which + "_tensor") && ++given) found = node.tensor_attribute(which + "_tensor");
  if (node.failed() ||
      !node.check(given == 1, "has " + std::to_string(given) + " attributes " + which + "_*, wants one"))
    return nullptr;
  bool fits = is_float(found->dtype()) || is_integer(found->dtype()) || found->dtype() == DType::String;
  if (!node.check(fits, "attribute " + which + "_tensor is " + found->type().to_string() +
                            ", wants numbers or strings"))
    return nullptr;
  return Literal::reshaped(found, {found->num_elements()});
}

LiteralRef read_default(NodeContext& node, DType dtype) {
  if (node.has_attribute("default_tensor")) {
    LiteralRef given = node.tensor_attribute("default_tensor");
    if (!given) return nullptr;
    bool fits = given->dtype() == dtype && given->num_elements() == 1;
    if (!node.check(fits, "attribute default_tensor is " + given->type().to_string() +
                              ", wants one element of " + std::string(dtype_name(dtype))))
      return nullptr;
    return Literal::reshaped(given, {});
  }
  if (dtype == DType::String)
    return Literal::strings({}, {node.string_attribute("default_string", "_Unused")});
  if (is_float(dtype)) return Literal::scalar(dtype, node.float_attribute("default_float", -0.0));
  Ints given = node.has_attribute("default_int64") ? node.unbounded_int_attribute("default_int64") : Ints{-1};
  return Literal::of(dtype, {}, given);
}

// Positions of keys in ascending order, NaN last, with the last of equal keys; keys are compared exactly.
Ints sorted_positions(const Literal& keys) {
  bool floats = is_float(keys.dtype());
  auto less = [&](int64_t a, int64_t b) {
    if (!floats) return keys.get_int(a) < keys.get_int(b);
    double x = keys.get_double(a), y = keys.get_double(b);
    return std::isnan(y) ? !std::isnan(x) : x < y;
  };
  Ints order(static_cast<size_t>(keys.num_elements()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::stable_sort(order.begin(), order.end(), less);
  Ints kept;
  for (int64_t each : order)
    if (!kept.empty() && !less(kept.back(), each))
      kept.back() = each;
    else
      kept.push_back(each);
  return kept;
}

// The last position of each distinct string.
Ints last_positions(const std::vector<std::string>& keys) {
  std::map<std::string_view, size_t> last;
  for (size_t i = 0; i < keys.size(); ++i) last[keys[i]] = i;
  Ints kept;
  for (size_t i = 0; i < keys.size(); ++i)
    if (last[keys[i]] == i) kept.push_back(static_cast<int64_t>(i));
  return kept;
}

Value taken(NodeContext& node, const LiteralRef& list, const Ints& positions) {
  Value indices = node.constant_ints(positions);
  return node.op(Opcode::Gather, {node.constant(list), indices}, {{"axis", int64_t{0}}});
}

// The value of the key that each string of x equals, else `fallback`.
Value encode_strings(NodeContext& node, Value x, const LiteralRef& keys, const LiteralRef& values,
                     Value fallback) {
  Ints order = last_positions(keys->string_values());
  std::vector<std::string> kept;
  for (int64_t at : order) kept.push_back(keys->string_values()[static_cast<size_t>(at)]);
  Value at = find_text(node, x, std::move(kept));
  Value zero = node.scalar_int(DType::I64, 0);
  Value found =
      node.op(Opcode::Gather, {taken(node, values, order), larger(node, at, zero)}, {{"axis", int64_t{0}}});
  return node.select(node.compare("ge", at, zero), found, fallback);
}

// The value of the key that each number of x equals, else `fallback`.
Value encode_numbers(NodeContext& node, Value x, const LiteralRef& keys, const LiteralRef& values,
                     Value fallback) {
  Ints order = sorted_positions(*keys);
  Value flat_keys = taken(node, keys, order), flat_values = taken(node, values, order);
  // `at` is the first key that may still equal x: no key before it is larger than x.
  auto key_at = [&](Value at) { return node.op(Opcode::Gather, {flat_keys, at}, {{"axis", int64_t{0}}}); };
  auto count = static_cast<int64_t>(order.size()), step = int64_t{1};
  while (step < count) step *= 2;
  Value at = node.broadcast_to(node.scalar_int(DType::I32, 0), x.type().dims);
  for (step /= 2; step > 0; step /= 2) {
    Value next = add(node, at, node.scalar_int(DType::I32, step));
    Value inside = node.compare("lt", next, node.scalar_int(DType::I32, count));
    next = smaller(node, next, node.scalar_int(DType::I32, count - 1));
    // NaN is sorted last: if x is NaN, no key counts as larger.
    Value reached = node.compare("le", key_at(next), x);
    if (is_float(x.dtype())) reached = node.binary(Opcode::Or, reached, node.unary(Opcode::IsNaN, x));
    at = node.select(both(node, inside, reached), next, at);
  }
  Value key = key_at(at), equal = node.compare("eq", key, x);
  // Before version 4 a NaN is no key.
  if (is_float(x.dtype()) && node.opset() >= 4)
    equal = node.binary(Opcode::Or, equal,
                        both(node, node.unary(Opcode::IsNaN, key), node.unary(Opcode::IsNaN, x)));
  Value found = node.op(Opcode::Gather, {flat_values, at}, {{"axis", int64_t{0}}});
  return node.select(equal, found, fallback);
}

// Sets the output to the values of the keys that x equals, and the default elsewhere.
void encode(NodeContext& node, const LiteralRef& keys, const LiteralRef& values) {
  Value x = node.input(0), fallback = node.constant(read_default(node, values->dtype()));
  if (!node.check(keys->dtype() == x.dtype(), node.input_label(0) + " is " + x.type().to_string() +
                                                  ", the keys are " + keys->type().to_string()) ||
      !node.check(keys->num_elements() == values->num_elements(),
                  std::to_string(keys->num_elements()) + " keys for " +
                      std::to_string(values->num_elements()) + " values") ||
      !fallback)
    return;
  Value y = keys->num_elements() == 0    ? node.broadcast_to(fallback, x.type().dims)
            : x.dtype() == DType::String ? encode_strings(node, x, keys, values, fallback)
                                         : encode_numbers(node, x, keys, values, fallback);
  node.set_output(0, y);
}

// Maps names to their numbers, or numbers to their names.
void encode_names(NodeContext& node, std::vector<std::string> names, const Ints& numbers) {
  LiteralRef texts = strings(std::move(names)), integers = Literal::of_i64(numbers);
  bool from_text = node.input(0).dtype() == DType::String;
  encode(node, from_text ? texts : integers, from_text ? integers : texts);
}

} // namespace

// Version 1: classes are numbered from 0.
void import_label_encoder_1(NodeContext& node) {
  std::vector<std::string> classes = node.strings_attribute("classes_strings");
  Ints numbers(classes.size());
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  encode_names(node, std::move(classes), numbers);
}

void import_category_mapper(NodeContext& node) {
  encode_names(node, node.strings_attribute("cats_strings"), node.unbounded_ints_attribute("cats_int64s"));
}

void import_label_encoder(NodeContext& node) {
  LiteralRef keys = read_list(node, "keys"), values = read_list(node, "values");
  if (keys && values) encode(node, keys, values);
}

} // namespace firn::onnx
