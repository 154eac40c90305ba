// Importers of operators on maps. A map from classes to scores is a constant of the classes and a tensor of
// the scores.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/containers.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/text_operators.h"

#include <map>
#include <set>

namespace firn::onnx {

namespace {

// A list of integers or of strings, whichever of the two attributes is given; null after a fail().
LiteralRef key_list(NodeContext& node, const std::string& integers, const std::string& strings) {
  std::vector<std::string> texts = node.strings_attribute(strings);
  Ints numbers = node.unbounded_ints_attribute(integers);
  if (node.failed() || !node.check(texts.empty() != numbers.empty(),
                                   "wants either attribute " + strings + " or " + integers + ", not empty"))
    return nullptr;
  if (texts.empty()) return Literal::of_i64(numbers);
  auto count = static_cast<int64_t>(texts.size());
  return Literal::strings({count}, std::move(texts));
}

bool has_repeated(const Literal& keys) {
  if (keys.dtype() == DType::String)
    return std::set<std::string>(keys.string_values().begin(), keys.string_values().end()).size() <
           keys.string_values().size();
  Ints numbers = keys.to_ints();
  return std::set<int64_t>(numbers.begin(), numbers.end()).size() < numbers.size();
}

void import_zip_map(NodeContext& node) {
  Value x = node.input(0);
  LiteralRef keys = key_list(node, "classlabels_int64s", "classlabels_strings");
  if (!keys || !node.check(x.rank() == 1 || x.rank() == 2,
                           node.input_label(0) + " is " + x.type().to_string() + ", wants [N,C] or [C]"))
    return;
  if (x.rank() == 1) x = node.unsqueeze(x, 0);
  auto classes = node.static_dim(x, 1, node.input_label(0));
  if (!classes ||
      !node.check(*classes == keys->num_elements(), std::to_string(keys->num_elements()) + " labels for " +
                                                        std::to_string(*classes) + " classes") ||
      !node.check(!has_repeated(*keys), "two of its labels are the same"))
    return;
  node.set_output(0, make_map(node.region(), {node.constant(keys), x}));
}

// The keys and values of input 0; null after a fail().
MapParts map_input(NodeContext& node) {
  Value map = node.input(0);
  if (!node.check(is_map(map), node.input_label(0) + " is " + map.type().to_string() + ", wants a map"))
    return {};
  MapParts parts = parts_of(map);
  return node.check(parts.values.rank() == 1, node.input_label(0) + " is a sequence of maps, wants one")
             ? parts
             : MapParts{};
}

Value constant_of(NodeContext& node, DType dtype) {
  return dtype == DType::String ? node.constant(Literal::strings({}, {""})) : node.scalar(dtype, 0);
}

// The map's values for the wanted keys [C], with 0 or "" for keys that it lacks: [1,C]. Each wanted key is
// compared with all keys, as numbers.
Value values_at(NodeContext& node, Value keys, Value values, Value wanted) {
  Value same = node.compare("eq", node.unsqueeze(wanted, 1), node.unsqueeze(keys, 0));
  if (!same) return {};
  Value numbers = plus(node, node.iota(DType::I64, keys.type().dims, 0), 1);
  Value none = node.scalar_int(DType::I64, 0);
  Value found = node.reduce(Opcode::Maximum, node.select(same, numbers, none), {1}, false);
  Value first = node.unsqueeze(constant_of(node, values.dtype()), 0);
  Value y = node.op(Opcode::Gather, {node.concatenate({first, values}, 0), larger(node, found, none)},
                    {{"axis", int64_t{0}}});
  return node.unsqueeze(y, 0);
}

// Numbers for the strings, counted from 0; equal strings get equal numbers.
Ints numbered(const std::vector<std::string>& texts, std::vector<std::string>& distinct) {
  std::map<std::string, int64_t> numbers;
  Ints result;
  for (const std::string& text : texts) {
    auto [at, is_new] = numbers.emplace(text, static_cast<int64_t>(numbers.size()));
    if (is_new) distinct.push_back(text);
    result.push_back(at->second);
  }
  return result;
}

void import_dict_vectorizer(NodeContext& node) {
  MapParts map = map_input(node);
  LiteralRef vocabulary = key_list(node, "int64_vocabulary", "string_vocabulary");
  if (!vocabulary || !map.keys ||
      !node.check(vocabulary->dtype() == map.keys.dtype(),
                  node.input_label(0) + " has keys of " + std::string(dtype_name(map.keys.dtype())) +
                      ", the vocabulary is of " + std::string(dtype_name(vocabulary->dtype()))))
    return;
  Value wanted = node.constant(vocabulary), keys = map.keys;
  if (keys.dtype() == DType::String) {
    std::vector<std::string> distinct;
    wanted = node.constant_ints(numbered(vocabulary->string_values(), distinct));
    keys = find_text(node, keys, std::move(distinct));
  }
  node.set_output(0, values_at(node, keys, map.values, wanted));
}

// CastMap: values in the order of their keys, or at the positions that the keys give.
void import_cast_map(NodeContext& node) {
  MapParts map = map_input(node);
  std::string to = node.choice_attribute("cast_to", "TO_FLOAT", {"TO_FLOAT", "TO_INT64", "TO_STRING"}),
              form = node.choice_attribute("map_form", "DENSE", {"DENSE", "SPARSE"});
  int64_t max = node.int_attribute("max_map", 1);
  if (!map.keys || node.failed() ||
      !node.check(map.keys.dtype() == DType::I64, node.input_label(0) + " has keys that are no i64"))
    return;
  DType dtype = to == "TO_FLOAT" ? DType::F32 : to == "TO_INT64" ? DType::I64 : DType::String;
  bool has_text = dtype == DType::String || map.values.dtype() == DType::String;
  Value values = has_text ? converted_text(node, map.values, dtype) : node.convert(map.values, dtype);
  if (form == "SPARSE") {
    if (!node.check(max > 0, "attribute max_map is " + std::to_string(max))) return;
    return node.set_output(0, values_at(node, map.keys, values, node.iota(DType::I64, {Dim(max)}, 0)));
  }
  Value order = node.iota(DType::I64, map.keys.type().dims, 0);
  Instruction* sorted = node.sort({map.keys, order}, 0, /*descending=*/false);
  if (!sorted) return;
  Value y = node.op(Opcode::Gather, {values, sorted->result(1)}, {{"axis", int64_t{0}}});
  node.set_output(0, node.unsqueeze(y, 0));
}

constexpr const char* kDomain = "ai.onnx.ml";

constexpr OperatorRow kRows[] = {
    {kDomain, "CastMap", 1, kLatest, 1, 1, 1, 1, "value", import_cast_map,
     "the values of a map as a tensor, in the order of the keys or at their places"},
    {kDomain, "DictVectorizer", 1, kLatest, 1, 1, 1, 1, "value", import_dict_vectorizer,
     "what a map has for each word of a vocabulary"},
    {kDomain, "ZipMap", 1, kLatest, 1, 1, 1, 1, "f32", import_zip_map,
     "scores by class: a tensor, and the classes as its keys"},
};

} // namespace

std::span<const OperatorRow> map_operators() {
  return kRows;
}

} // namespace firn::onnx
