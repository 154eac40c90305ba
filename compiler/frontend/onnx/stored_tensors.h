// The tensors of a data set of ONNX's layout, `input_0.pb`, `input_1.pb` ... and `output_0.pb` ..., and which
// input of the model each is for.
#pragma once

#include "compiler/frontend/onnx/import.h"

namespace firn::onnx {

// The tensors `kind`_0.pb, `kind`_1.pb ... of a folder.
Expected<std::vector<NamedTensor>> read_stored_tensors(const std::string& folder, const std::string& kind);

// The input, by its number in facts.inputs, that each stored tensor is for: the one of its name if all
// tensors are called as inputs, each as another one; else inputs in their order, as ONNX's own test runner
// counts: all of them, or, where the tensors are no more than the inputs without an initializer, those.
Expected<std::vector<size_t>> match_stored_inputs(const ModelFacts& facts,
                                                  const std::vector<NamedTensor>& tensors);

} // namespace firn::onnx
