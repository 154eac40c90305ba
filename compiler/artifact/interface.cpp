// The hash is taken over a text with one line per fact; lengths precede names, which may hold any
// byte.
#include "compiler/artifact/interface.h"

#include "compiler/artifact/identifiers.h"
#include "compiler/artifact/varying_dims.h"
#include "compiler/support/sha256.h"
#include "include/firn/abi.h"

#include <span>

namespace firn::artifact {
namespace {

void add_tensor(std::string& text, std::string_view role, const TensorDescription& tensor) {
  text += std::string(role) + " " + tensor.identifier + " " + std::to_string(tensor.name.size()) + ":" +
          tensor.name + " " + std::string(dtype_name(tensor.dtype)) + " [";
  for (const IntExpr& dim : tensor.dims) text += dim.to_string() + ",";
  text += "] at " + (tensor.arena_offset ? std::to_string(*tensor.arena_offset) : "external");
  if (tensor.is_parameter) text += " of the parameters";
  if (tensor.initial_weights) text += " from " + std::to_string(*tensor.initial_weights);
  for (const CountedDim& counted : tensor.counted_dims)
    text += " count " + std::to_string(counted.axis) + " at " + std::to_string(counted.arena_offset);
  text += "\n";
}

void add_dim(std::string& text, const DimDescription& dim) {
  text += "dim " + dim.identifier + " " + std::to_string(dim.name.size()) + ":" + dim.name + " " +
          range_text(dim) + "\n";
}

} // namespace

std::string contract_hash(const ModelDescription& model) {
  std::string text = "abi " + std::to_string(FIRN_ABI) + "\n";
  text += "cpu " + std::to_string(model.architecture) + " " + std::to_string(model.required_features) + "\n";
  for (const CpuDescription& cpu : model.cpus)
    text += "code for " + cpu.name + " " + std::to_string(cpu.required_features) + "\n";
  text += "arena " + std::to_string(model.arena_bytes) + " " + std::to_string(model.arena_alignment) + "\n";
  if (model.parameter_bytes > 0) text += "parameters " + std::to_string(model.parameter_bytes) + "\n";
  text += "weights " + std::to_string(model.weight_bytes) + "\n";
  if (model.raw_weight_bytes)
    text += "raw weights " + std::to_string(*model.raw_weight_bytes) +
            (model.raw_in_place ? " in place\n" : "\n");
  for (const TensorDescription& tensor : model.inputs) add_tensor(text, "input", tensor);
  for (const TensorDescription& tensor : model.outputs) add_tensor(text, "output", tensor);
  for (const TensorDescription& tensor : model.states) add_tensor(text, "state", tensor);
  for (const DimDescription& dim : model.dims) add_dim(text, dim);
  text += "content " + model.content_hash + "\n";
  return sha256_hex(std::as_bytes(std::span(text))).substr(0, 12);
}

SymbolNames symbol_names(const ModelDescription& model) {
  SymbolNames names;
  names.prefix = symbol_prefix(model.class_name);
  names.hash = contract_hash(model);
  const std::string suffix = "_abi" + std::to_string(FIRN_ABI) + "_" + names.hash;
  names.run = names.prefix + "_run" + suffix;
  names.weights = model.owner_weights.empty() ? names.prefix + "_weights" + suffix : model.owner_weights;
  if (model.owner_weights.empty() && model.raw_weight_bytes && !model.raw_in_place)
    names.prepare = names.prefix + "_prepare" + suffix;
  return names;
}

} // namespace firn::artifact
