// ONNX in: reads a model file, validates it and writes it as a graph IR module. The only folder that sees
// protobuf.
#pragma once

#include "compiler/graph/custom_call.h"
#include "compiler/graph/module.h"
#include "compiler/support/diagnostic.h"
#include "compiler/support/file_digest.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace firn::onnx {

// The values that a dim may have.
struct DimRange {
  int64_t lower = 1;
  int64_t upper = INT64_MAX;
  int64_t multiple = 1;             // every value is a multiple of this
  std::vector<int64_t> values = {}; // ascending, the first and last are the bounds; empty: every multiple
};

// The length of an optional input that holds nothing.
inline constexpr int64_t kAbsent = -1;

// The name in the module of an element of a sequence that is an input or output of the model: NAME_0, NAME_1,
// ... The value in an optional has the optional's name.
std::string element_name(const std::string& sequence, size_t number);

// The names in the module of the keys of a map, or of a sequence of maps, and of the dim that counts them if
// the map is an input. The values have the map's own name.
std::string keys_name(const std::string& map);
std::string map_size_name(const std::string& map);

// An operator that a function of the program computes (include/firn/custom_op.h).
struct CustomOperator {
  std::string name;      // "com.acme:Pool", of ONNX's own domain "ai.onnx:Pool"
  std::string symbol;    // a C identifier
  int64_t workspace = 0; // bytes of scratch memory that each call gets, at most kMaxCustomWorkspace
};

struct ImportOptions {
  // Symbolic dims by the model's name for them (dim_param; for a dim without one: "<input>_dim<i>"). Bound
  // dims become numbers; ranges bound the symbols that stay. A dim that the model calls "past + seq" is a sum
  // if both are given.
  std::map<std::string, int64_t> dims;
  std::map<std::string, DimRange> ranges;
  // Other names for dims: that of another dim, or a sum or product of several.
  std::map<std::string, std::string> dim_names;
  // Whole shapes of graph inputs by name: for inputs whose shape the model leaves open.
  std::map<std::string, std::vector<int64_t>> shapes;
  // Whole shapes with names among the extents, "n" beside "4": the input's dims take these names.
  std::map<std::string, std::vector<std::string>> named_shapes;
  // The lengths of inputs that are sequences, and kAbsent for optionals that hold nothing. Each element is an
  // input by itself (element_name), by whose name shapes and constants are given.
  std::map<std::string, int64_t> lengths;
  // Graph inputs fixed to these values, in place of an initializer's if they have one: they are no
  // parameters of the module. For inputs that decide shapes.
  std::map<std::string, LiteralRef> constants;
  // Constants as text: numbers apart by commas, of the input's type, as many as its dims say.
  std::map<std::string, std::string> constant_texts;
  bool is_fixed(const std::string& input) const {
    return constants.count(input) || constant_texts.count(input);
  }
  // Gradients take what rounds for the identity (GradientOf::straight_through).
  bool straight_through = false;
  // Initializers that are listed as graph inputs too stay inputs; otherwise they are constants.
  bool initializers_are_inputs = false;
  // Initializers of floats with dims stay constants of their own, from which nothing is computed on import: a
  // training step makes states of them.
  bool keep_initializers = false;
  // Pairs (graph input, graph output) that are one state: what the output gives is what the input has in
  // the next run. Such inputs stay inputs though they have an initializer, which is their first value.
  std::vector<std::pair<std::string, std::string>> states;
  bool is_state(const std::string& input) const {
    return std::any_of(states.begin(), states.end(), [&](const auto& pair) { return pair.first == input; });
  }
  // Operators of the program by name, before those that Firn knows and functions of the model.
  std::map<std::string, CustomOperator> custom;
  // Types of values that such operators give, "f32[batch,8]", if the model does not declare them.
  std::map<std::string, std::string> values;
  // Upper bounds of integers that only a run knows and that decide extents: by the name of the value, one for
  // all its elements or one for each. A run with a larger integer ends.
  std::map<std::string, std::vector<int64_t>> bounds;
  // Programs may be given other values for the model's constants of several elements: the compiler does not
  // make use of their values, or says so (Literal::refittable).
  bool refittable_constants = false;
  LiteralRef constant(const LiteralRef& literal) const {
    bool may_change = refittable_constants && literal && literal->num_elements() > 1;
    return may_change ? Literal::refittable(literal) : literal;
  }
  // The most pieces into which StringSplit cuts a string, unless the model says how many.
  int64_t text_pieces = 64;
};

struct UnsupportedOperator {
  std::string domain, name; // domain "ai.onnx" for the default one
  int64_t version = 0;      // opset version that the model imports
  int64_t count = 0;
  std::string first; // label of the first node
};

// An input or output as the model declares it.
struct ValueFacts {
  std::string name;
  std::string type;                   // "f32[batch,3,224,224]", "f32[?]" without a shape
  bool has_initializer = false;       // an input has this value unless one is given
  std::vector<std::string> dims = {}; // the names by which options set its dims; empty for numbers
};

struct ModelFacts {
  int64_t ir_version = 0;
  std::vector<std::pair<std::string, int64_t>> opsets; // domain ("ai.onnx") and version, sorted
  std::string producer, graph_name;
  FileDigest digest;                        // digest of the model file
  std::map<std::string, int64_t> operators; // "Conv", "com.acme:Pool" to number of nodes, subgraphs included
  int64_t nodes = 0, parameters = 0, parameter_bytes = 0; // parameters: elements of initializers
  std::vector<ValueFacts> inputs, outputs;                // inputs: all of the graph's, in its order
  std::vector<UnsupportedOperator> unsupported;           // sorted by domain and name
  std::vector<std::string> external_files;                // paths of external data that were read
  std::vector<FileDigest> external_digests;               // their digests, in this order
  std::vector<std::string> warnings;
};

// A dim that varies within the range given for it: `range.multiple` times the symbol.
struct VaryingDim {
  std::string name; // in the model
  SymbolRef symbol;
  DimRange range;
};

struct ImportedModel {
  std::unique_ptr<Module> module;
  ModelFacts facts;
  std::map<std::string, LiteralRef> initial_states; // by input; others start from zeros
  std::vector<VaryingDim> dims;                     // dims of inputs
  // Names of the initializers that are constants of the module; nothing: a graph in text form has none.
  std::optional<std::set<std::string>> initializers;
};

// Imports the model at `path`. On failure returns null and `diagnostics` says why, naming nodes:
// Fault::Unsupported when operators are not known (one message with all of them), Fault::Model when the
// model is wrong.
std::unique_ptr<ImportedModel> import_onnx(const std::string& path, const ImportOptions& options,
                                           DiagnosticList& diagnostics);

// Imports a model from bytes in memory; external data is refused.
std::unique_ptr<ImportedModel> import_onnx_bytes(std::string name, std::string bytes,
                                                 const ImportOptions& options, DiagnosticList& diagnostics);

// Facts of a model that can be read, whether or not it can be imported.
Expected<ModelFacts> inspect_onnx(const std::string& path, const ImportOptions& options = {});

// The message for operators that are refused, as `firn compile` prints it.
std::string unsupported_message(const std::vector<UnsupportedOperator>& operators);

// A tensor in a `.pb` file, as ONNX's test data holds them, and back. `name` is what the file calls the
// tensor.
struct NamedTensor {
  std::string name;
  LiteralRef literal;
};
Expected<NamedTensor> read_tensor_file(const std::string& path);
// A sequence in such a file, and what an optional holds there: a tensor or the elements of a sequence.
Expected<std::vector<LiteralRef>> read_sequence_file(const std::string& path);
Expected<std::optional<std::vector<LiteralRef>>> read_optional_file(const std::string& path);
// A map in such a file, or a sequence of maps: keys, i64 or strings, and a value of one type for each.
struct StoredMap {
  LiteralRef keys, values;
};
Expected<StoredMap> read_map_file(const std::string& path);
Expected<std::vector<StoredMap>> read_map_sequence_file(const std::string& path);
Result write_tensor_file(const std::string& path, const std::string& name, const Literal& literal);

} // namespace firn::onnx
