// Folds nodes of constants alone, each evaluated as a model of its own.
#include "compiler/quantize/normalise_model.h"

#include "compiler/graph/evaluate.h"

#include <algorithm>
#include <array>

namespace firn::quantize {
namespace {

// Operators that widen integers, draw random numbers, hold graphs, or give no tensor.
constexpr std::array kLeftAlone = {"DequantizeLinear",
                                   "QuantizeLinear",
                                   "RandomNormal",
                                   "RandomUniform",
                                   "RandomNormalLike",
                                   "Bernoulli",
                                   "RandomUniformLike",
                                   "Multinomial",
                                   "If",
                                   "Loop",
                                   "Scan",
                                   "Optional",
                                   "SequenceConstruct",
                                   "SequenceEmpty",
                                   "SplitToSequence"};

size_t bytes_of(const Literal& literal) {
  return literal.dtype() == DType::String ? 0 : literal.bytes().size();
}

bool is_of_constants(const Model& model, const wire::NodeProto& node) {
  bool is_left = std::any_of(kLeftAlone.begin(), kLeftAlone.end(),
                             [&](const char* name) { return is_operator(node, name); });
  if (is_left || !onnx::canonical_domain(node.domain()).empty() || node.output_size() != 1 ||
      model.is_output(node.output(0)))
    return false;
  return std::all_of(node.input().begin(), node.input().end(), [&](const std::string& input) {
    LiteralRef literal = input.empty() ? nullptr : model.constant(input);
    return input.empty() || (literal && literal->dtype() != DType::String);
  });
}

// Null if the importer or the evaluator refuses it, or it takes more bytes than its operands.
LiteralRef evaluated(const Model& model, const wire::NodeProto& node) {
  DiagnosticList diagnostics;
  auto imported = onnx::import_onnx_bytes(label(node), model.encode_node(node), {}, diagnostics);
  if (!imported) return nullptr;
  auto results = evaluate(*imported->module, {});
  if (!results || results->size() != 1) return nullptr;
  constexpr size_t kFew = 1024;
  size_t max = kFew;
  for (const std::string& input : node.input())
    if (!input.empty()) max += bytes_of(*model.constant(input));
  const LiteralRef& result = (*results)[0];
  return result->dtype() == DType::String || bytes_of(*result) > max ? nullptr : result;
}

} // namespace

void fold_constants(Model& model) {
  google::protobuf::RepeatedPtrField<wire::NodeProto> kept;
  for (auto& node : *model.graph().mutable_node()) {
    LiteralRef folded = is_of_constants(model, node) ? evaluated(model, node) : nullptr;
    if (folded)
      model.set_constant(node.output(0), folded);
    else
      *kept.Add() = std::move(node);
  }
  *model.graph().mutable_node() = std::move(kept);
  model.index();
}

} // namespace firn::quantize
