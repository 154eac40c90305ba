// Importers of operators of ai.onnx.ml that prepare features, and of TfIdfVectorizer.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/ml/feature_operators.h"
#include "compiler/frontend/onnx/ml/scores.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/text_operators.h"

#include <cmath>
#include <numeric>

namespace firn::onnx {

namespace {

// The elements of the last dim at the indices. A vector counts as a row.
void import_array_feature_extractor(NodeContext& node) {
  Value x = node.input(0), indices = node.input(1);
  if (!node.check_rank_at_least(0, 1)) return;
  auto count = node.product(indices.type().dims);
  if (!count || !node.check(*count != Dim(0), node.input_label(1) + " is empty")) return;
  if (x.rank() == 1) x = node.unsqueeze(x, 0);
  Value flat = node.reshape(indices, {*count});
  if (!x || !flat) return;
  node.set_output(0, node.op(Opcode::Gather, {x, flat}, {{"axis", int64_t{x.rank() - 1}}}));
}

void import_binarizer(NodeContext& node) {
  Value x = node.input(0);
  double threshold = node.float_attribute("threshold", 0);
  // Integers are compared in f64, as the threshold need not be whole.
  Value wide = is_float(x.dtype()) ? x : node.convert(x, DType::F64);
  if (!wide) return;
  node.set_output(0, node.convert(node.compare("gt", wide, node.scalar(wide.dtype(), threshold)), x.dtype()));
}

// Concatenates inputs by columns, each cut or padded with zeros to its given number of columns.
void import_feature_vectorizer(NodeContext& node) {
  Ints sizes = node.required_ints("inputdimensions");
  if (node.failed() || !node.check(static_cast<int>(sizes.size()) == node.num_inputs(),
                                   "attribute inputdimensions has " + std::to_string(sizes.size()) +
                                       " elements, wants " + std::to_string(node.num_inputs())))
    return;
  Values parts;
  for (int i = 0; i < node.num_inputs(); ++i) {
    Value x = node.input(i);
    int64_t size = sizes[static_cast<size_t>(i)];
    if (!node.check(x && (x.rank() == 1 || x.rank() == 2), node.input_label(i) + " wants rank 1 or 2"))
      return;
    auto found = node.static_dim(i, x.rank() - 1);
    if (!found || !node.check(size >= 0, "attribute inputdimensions holds " + std::to_string(size))) return;
    Value part = node.convert(x.rank() == 1 ? node.unsqueeze(x, 0) : x, DType::F32);
    if (*found > size) part = node.slice_dim(part, 1, 0, size);
    if (*found < size) part = node.pad(part, node.scalar(DType::F32, 0), {0, 0}, {0, size - *found});
    parts.push_back(part);
  }
  node.set_output(0, node.concatenate(parts, 1));
}

// Attribute `name` as a constant that broadcasts to x's last dim: one element or one per column.
Value column_constant(NodeContext& node, Value x, std::string_view name, DType dtype) {
  bool floats = is_float(dtype);
  std::vector<double> reals = floats ? node.floats_attribute(name) : std::vector<double>{};
  Ints integers = floats ? Ints{} : node.unbounded_ints_attribute(name);
  auto count = static_cast<int64_t>(floats ? reals.size() : integers.size());
  if (node.failed() || !node.check_rank_at_least(0, 1)) return {};
  const Dim& columns = x.type().dims.back();
  if (!node.check(count == 1 || columns == Dim(count), "attribute " + std::string(name) + " has " +
                                                           std::to_string(count) + " elements, wants 1 or " +
                                                           columns.extent.to_string()))
    return {};
  return node.constant(floats ? Literal::of(dtype, {count}, reals) : Literal::of(dtype, {count}, integers));
}

void import_imputer(NodeContext& node) {
  Value x = node.input(0);
  bool floats = is_float(x.dtype());
  Value imputed =
      column_constant(node, x, floats ? "imputed_value_floats" : "imputed_value_int64s", x.dtype());
  if (!imputed) return;
  Value missing;
  if (floats) {
    double replaced = node.float_attribute("replaced_value_float", 0);
    missing = std::isnan(replaced) ? node.unary(Opcode::IsNaN, x)
                                   : node.compare("eq", x, node.scalar(x.dtype(), replaced));
  } else {
    Ints replaced = node.unbounded_int_attribute("replaced_value_int64");
    missing = node.compare(
        "eq", x, node.scalar_int(x.dtype(), node.has_attribute("replaced_value_int64") ? replaced[0] : 0));
  }
  node.set_output(0, node.select(missing, imputed, x));
}

void import_normalizer(NodeContext& node) {
  std::string norm = node.choice_attribute("norm", "MAX", {"MAX", "L1", "L2"});
  Value x = node.input(0);
  if (node.failed() ||
      !node.check(x.rank() == 1 || x.rank() == 2,
                  node.input_label(0) + " is " + x.type().to_string() + ", wants rank 1 or 2"))
    return;
  x = node.convert(x, DType::F32);
  if (!x) return;
  int dim = x.rank() - 1;
  Value size;
  if (norm == "MAX") size = node.reduce(Opcode::Maximum, x, {dim}, true);
  if (norm == "L1") size = node.reduce(Opcode::Add, node.unary(Opcode::Abs, x), {dim}, true);
  if (norm == "L2")
    size = node.unary(Opcode::Sqrt, node.reduce(Opcode::Add, multiply(node, x, x), {dim}, true));
  if (!size) return;
  Value none = node.compare("eq", size, node.scalar(DType::F32, 0));
  node.set_output(0, node.select(none, x, divide(node, x, size)));
}

void import_one_hot_encoder(NodeContext& node) {
  bool is_text = node.input(0).dtype() == DType::String;
  std::vector<std::string> names = node.strings_attribute("cats_strings");
  Ints categories = node.unbounded_ints_attribute("cats_int64s");
  if (is_text) {
    categories.resize(names.size());
    std::iota(categories.begin(), categories.end(), int64_t{0});
  }
  if (node.failed() ||
      !node.check(!categories.empty(),
                  std::string("attribute cats_") + (is_text ? "strings" : "int64s") + " is missing or empty"))
    return;
  // Elements of no category get zeros, though ONNX calls them an error if the attribute zeros is 0.
  Value x =
      is_text ? find_text(node, node.input(0), std::move(names)) : node.convert(node.input(0), DType::I64);
  if (!x) return;
  Value equal = node.compare("eq", node.unsqueeze(x, x.rank()), node.constant_ints(categories));
  node.set_output(0, node.convert(equal, DType::F32));
}

// (x - offset) * scale
void import_scaler(NodeContext& node) {
  Value x = node.convert(node.input(0), DType::F32);
  if (!x) return;
  if (node.has_attribute("offset")) x = subtract(node, x, column_constant(node, x, "offset", DType::F32));
  if (x && node.has_attribute("scale")) x = multiply(node, x, column_constant(node, x, "scale", DType::F32));
  node.set_output(0, x);
}

constexpr const char* kDomain = "ai.onnx.ml";
constexpr const char* kNumbers = "f32|f64|i64|i32";

const OperatorRow kRows[] = {
    {"", "TfIdfVectorizer", 9, kLatest, 1, 1, 1, 1, "i32|i64|string", import_tfidf_vectorizer,
     "counts of n-grams of integers or strings"},
    {kDomain, "ArrayFeatureExtractor", 1, kLatest, 2, 2, 1, 1, "f32|f64|i64|i32 i64",
     import_array_feature_extractor, "elements of the last dim at indices"},
    {kDomain, "Binarizer", 1, kLatest, 1, 1, 1, 1, kNumbers, import_binarizer,
     "1 above a threshold, 0 elsewhere"},
    {kDomain, "CategoryMapper", 1, kLatest, 1, 1, 1, 1, "i64|string", import_category_mapper,
     "numbers for strings or strings for numbers, by a list"},
    {kDomain, "FeatureVectorizer", 1, kLatest, 1, kVariadic, 1, 1, kNumbers, import_feature_vectorizer,
     "columns of all inputs side by side"},
    {kDomain, "Imputer", 1, kLatest, 1, 1, 1, 1, kNumbers, import_imputer, "replaces one value by others"},
    {kDomain, "LabelEncoder", 1, 1, 1, 1, 1, 1, "i64|string", import_label_encoder_1,
     "numbers of classes for their names, or names for numbers"},
    {kDomain, "LabelEncoder", 2, kLatest, 1, 1, 1, 1, "f32|f64|i64|i32|i16|string", import_label_encoder,
     "other numbers or strings for numbers or strings, by a list"},
    {kDomain, "Normalizer", 1, kLatest, 1, 1, 1, 1, kNumbers, import_normalizer,
     "rows divided by their largest element or norm"},
    {kDomain, "OneHotEncoder", 1, kLatest, 1, 1, 1, 1, "f32|f64|i64|i32|string", import_one_hot_encoder,
     "1 at the category of each number or string"},
    {kDomain, "Scaler", 1, kLatest, 1, 1, 1, 1, kNumbers, import_scaler, "(x - offset) * scale"},
};

} // namespace

std::span<const OperatorRow> feature_operators() {
  return kRows;
}

} // namespace firn::onnx
