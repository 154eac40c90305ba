// The contract between one header and one object: a hash of all that both rely on and of what the model
// computes, and the symbol names that carry it. A header and an object of different compilations fail to
// link, and two models of one class name in one program do not answer for each other.
#pragma once

#include "compiler/artifact/model_description.h"

#include <string>

namespace firn::artifact {

struct SymbolNames {
  std::string prefix;  // vision_digits
  std::string hash;    // contract_hash()
  std::string run;     // vision_digits_run_abi2_<hash>
  std::string weights; // vision_digits_weights_abi2_<hash>
  std::string prepare; // vision_digits_prepare_abi2_<hash>; only of models with weights to prepare
};

// The first 12 hex digits of the SHA-256 of interface and content: ABI number, CPU features, arena, weights,
// every tensor's identifier, name, dtype, dims and offsets, the ranges of dims, and what the object is made
// of (ModelDescription::content_hash). Known once memory is planned; independent of paths.
std::string contract_hash(const ModelDescription& model);
// Requires the class name and the identifiers to be set.
SymbolNames symbol_names(const ModelDescription& model);

} // namespace firn::artifact
