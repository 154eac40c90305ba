// The state of one import: what every node of every graph shares, and the scopes in which names are looked
// up. Internal to the frontend; importers see NodeContext only.
#pragma once

#include "compiler/frontend/onnx/import_context.h"
#include "compiler/frontend/onnx/onnx.pb.h"
#include "compiler/frontend/onnx/wire/load.h"
#include "compiler/graph/symbolic_elements.h"

#include <array>
#include <set>
#include <unordered_map>

namespace firn::onnx {

// Caps on what a hostile model can make the importer do.
inline constexpr int64_t kMaxNodes =
    250'000;                         // imported nodes, inlined functions and unrolled bodies included
inline constexpr int kMaxDepth = 64; // nesting of function calls and subgraphs
inline constexpr int64_t kAttributeLimit = int64_t{1}
                                           << 31; // attributes hold smaller integers: products of two fit

// The call of a model-local function, or the main graph: what names of attributes and versions of opsets
// mean.
struct Frame {
  const Frame* caller = nullptr;
  const wire::FunctionProto* function = nullptr;
  std::map<std::string, const wire::AttributeProto*> attributes; // by the function's name for them
  std::map<std::string, int> opsets;
  std::string prefix; // for node labels: "call/"
};

// The meaning of a name. Without a value it is an optional input that was left out, or the output of a node
// that failed. Nodes that use the latter are skipped without a diagnostic.
struct NamedValue {
  Value value;
  bool failed = false;
};

// Names of values within one graph, and of the graphs around it.
class Scope {
public:
  Scope(const Scope* outer, const Frame& frame) : outer_(outer), frame_(&frame) {}
  const Frame& frame() const { return *frame_; }
  // False if this scope has the name already.
  bool define(const std::string& name, NamedValue value) { return values_.emplace(name, value).second; }
  // The innermost meaning of a name; null if it has none.
  const NamedValue* find(const std::string& name) const {
    for (const Scope* scope = this; scope; scope = scope->outer_) {
      auto found = scope->values_.find(name);
      if (found != scope->values_.end()) return &found->second;
    }
    return nullptr;
  }

private:
  const Scope* outer_;
  const Frame* frame_;
  std::unordered_map<std::string, NamedValue> values_;
};

// Elements of integer vectors and scalars as expressions over symbols, for values that are not constant but
// made of dims. Only the first result of an instruction can be known.
class KnownInts {
public:
  // Elements recorded here, or those of a constant of integers or bools with at most kMaxKnown elements.
  std::optional<std::vector<IntExpr>> find(Value value) const;
  // The elements that `instruction` computes, if its operands are known and it is simple enough.
  std::optional<std::vector<IntExpr>> compute(const Instruction& instruction) const;
  void set(const Instruction* instruction, std::vector<IntExpr> elements) {
    elements_[instruction] = std::move(elements);
  }
  // Forgets an instruction that is about to be erased, and those in its regions.
  void forget_all(const Instruction& instruction);

  static constexpr int64_t kMaxKnown = 64;

private:
  std::unordered_map<const Instruction*, std::vector<IntExpr>> elements_;
};

struct NodeWalk;

class ImportState {
public:
  ImportState(const ImportOptions& options, LoadedModel& model, Module& module, ModelFacts& facts,
              DiagnosticList& diagnostics);

  const ImportOptions& options;
  LoadedModel& model;
  Module& module;
  ModelFacts& facts;
  DiagnosticList& diagnostics;
  std::vector<VaryingDim> varying; // dims of graph inputs that options give a range
  KnownInts known;
  int64_t nodes = 0;
  int depth = 0;
  bool out_of_budget = false;
  NodeWalk* walk = nullptr; // the walk that the node at hand is in
  // Set when the branches of an If give values whose types cannot agree. The import_rest functions of
  // node_walk.h clear it, or leave it set for an If or a call further out.
  bool disagreement = false;
  // Conditions of the Ifs around the node at hand, and which of their branches it is imported in. Earlier Ifs
  // of which only one branch can be computed are here too: a run that takes the other has ended.
  std::vector<std::pair<Value, bool>> decided;
  size_t errors_by_shapes = 0;          // diagnostics that may depend on the shapes at hand
  int apart = 0;                        // disagreeing Ifs into whose branches the node at hand is imported
  size_t rest_budget = size_t{1} << 24; // nodes that searches for users of an If's values may still visit
  std::set<std::string> used_bounds;    // names in options.bounds
  std::set<std::string> initializers;   // names of those that are constants
  size_t constant_budget = size_t{256} << 20; // bytes of constants that importers may still make
  size_t fold_budget = size_t{64} << 20;      // bytes that eager evaluation may still make
  size_t element_budget = size_t{1} << 20;    // elements that sequences may still list

  // The word of the text form that stands for a name of the model: "batch size" becomes batch_size. Never the
  // name of a count.
  static std::string word_of(const std::string& name);
  // A symbol of the module for a name of the model; made at first use, its name made a word of the text form.
  SymbolRef symbol(const std::string& name, DimRange range);
  // A fresh symbol for an extent that the run counts.
  SymbolRef count_symbol(int64_t upper);
  // Whether the symbol is such a count, which no option can bind.
  static bool is_count(const Symbol& symbol);
  // Marks dims as counted if their extents are made of such symbols.
  static std::vector<Dim> with_counts(std::vector<Dim> dims);
  // Whether a tensor could not be read because its external file is missing, which is reported once per file.
  bool lacks_file(const Diagnostic& error);
  const wire::FunctionProto* find_function(const wire::NodeProto& node) const;
  void warn(std::string message);

private:
  SymbolRef add_symbol(const std::string& word, DimRange range);
  std::set<std::string> missing_;                                              // messages about missing files
  std::map<std::string, SymbolRef> symbols_;                                   // by the model's names
  std::map<std::array<std::string, 3>, const wire::FunctionProto*> functions_; // by domain, name, overload
};

using Nodes = google::protobuf::RepeatedPtrField<wire::NodeProto>;

// Imports the nodes of one graph or function body into one region.
class GraphImporter {
public:
  GraphImporter(ImportState& state, Region& region) : state_(state), region_(region) {}

  // Imports initializers and nodes of `graph`; its inputs are defined in `scope` already. `is_branch`: the
  // graph is a branch of an If, which may go on behind the end of the walk.
  void import_body(const wire::GraphProto& graph, Scope& scope, bool is_branch = false);
  void import_initializers(const wire::GraphProto& graph, Scope& scope);
  // Imports one step of the walk, unless it is done.
  void import_step(NodeWalk& walk, size_t step);
  // The value of each of a graph's outputs, or nothing after a diagnostic that `where` begins.
  std::optional<Values> outputs(const wire::GraphProto& graph, const Scope& scope, const std::string& where);

private:
  void add_initializer(const std::string& name, const Expected<LiteralRef>& literal, Scope& scope);
  void import_nodes(const Nodes& nodes, Scope& scope, const std::set<std::string>& outputs, bool is_branch);
  void end_branch(NodeWalk& walk, size_t step);
  void end_function(NodeWalk& walk, size_t step);
  NamedValue returned(const wire::FunctionProto& function, int output, const Scope& scope,
                      const std::string& where);
  void import_node(const Nodes& nodes, int index, Scope& scope);
  void import_operator(NodeContext& node);
  void import_widened(NodeContext& node, const OperatorRow& row);
  void inline_function(NodeContext& node, const wire::FunctionProto& function);
  bool resolve_inputs(NodeContext& node, const Nodes& nodes);
  void define_outputs(NodeContext& node);

  ImportState& state_;
  Region& region_;
};

// Input dtypes against a row's types column; false after a diagnostic.
bool check_types(NodeContext& node, const OperatorRow& row);

// A type of dims that are safe (is_safe_dim) and whose static ones have a bounded product (dims of 0 counted
// as 1, so that every partial product is bounded too).
bool is_sane_type(const Type& type);

// Erases from the end, in regions too, instructions that no result needs, except checks of the branch that a
// run takes. True if something was erased.
bool erase_unused(Region& region);

} // namespace firn::onnx
