// The values of a data set of ONNX's layout, `input_0.pb`, `input_1.pb` ... and `output_0.pb` ..., and which
// input of the model each is for.
#pragma once

#include "compiler/frontend/onnx/import.h"

namespace firn::onnx {

// The tensors `kind`_0.pb, `kind`_1.pb ... of a folder.
Expected<std::vector<NamedTensor>> read_stored_tensors(const std::string& folder, const std::string& kind);

// The input, by its number in facts.inputs, that each stored tensor is for: the one of its name if each
// tensor has the name of a different input. Else inputs in their order, as in ONNX's own test runner: all of
// them, or only those without an initializer if there are enough of these.
Expected<std::vector<size_t>> match_stored_inputs(const ModelFacts& facts,
                                                  const std::vector<NamedTensor>& tensors);

// Whether it is neither a sequence nor an optional nor a map.
bool is_tensor(const ValueFacts& value);
bool is_map(const ValueFacts& value);

// The inputs of a data set by the names that a module has for them: tensors, the elements of sequences and
// optionals, whose lengths are for ImportOptions, and keys and values of maps.
struct StoredInputs {
  std::map<std::string, LiteralRef> tensors;
  std::map<std::string, int64_t> lengths;
};

// Tensors are matched by match_stored_inputs. If the model has inputs that are no tensors, files come in the
// order of the inputs.
Expected<StoredInputs> read_stored_inputs(const std::string& folder, const ModelFacts& facts);

// An output of a data set: its tensor or tensors. For a map these are the values in the order of the keys,
// for a sequence of maps rows of such values.
struct StoredOutput {
  std::string name;
  bool is_sequence = false;
  std::vector<LiteralRef> tensors;
  LiteralRef keys; // keys of maps; no elements for an empty sequence of maps
};

Expected<std::vector<StoredOutput>> read_stored_outputs(const std::string& folder, const ModelFacts& facts);

// Outputs in the form of a module's results, by the results' names: elements of a sequence by themselves, or
// as the rows of one result that has the sequence's name; values and keys of maps in the order of the keys in
// `got`.
std::vector<LiteralRef> as_results(const std::vector<StoredOutput>& outputs,
                                   const std::vector<std::string>& result_names,
                                   const std::vector<LiteralRef>& got);

// Adds what the file holds for the input: a tensor, a sequence, an optional or a map, as its type says.
Result add_stored_input(const std::string& path, const ValueFacts& input, StoredInputs& inputs);

} // namespace firn::onnx
