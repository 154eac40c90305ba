// The contract between one header and one object: a hash of all that both rely on, and the symbol names that
// carry it, so that a header and an object of different compilations fail to link.
#pragma once

#include "compiler/artifact/model_description.h"

#include <string>

namespace firn::artifact {

struct SymbolNames {
  std::string prefix;  // vision_digits
  std::string run;     // vision_digits_run_a1_<hash>
  std::string weights; // vision_digits_weights_a1_<hash>
  std::string prepare; // vision_digits_prepare_a1_<hash>; only of models with raw weights
};

// The first 12 hex digits of the SHA-256 of the interface: ABI number, CPU features, arena, weights, and
// every tensor's identifier, name, dtype, dims and offsets. Known once memory is planned; independent of
// code, paths and flags.
std::string interface_hash(const ModelDescription& model);
// Requires the class name and the identifiers to be set.
SymbolNames symbol_names(const ModelDescription& model);

} // namespace firn::artifact
