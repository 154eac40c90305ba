// Finds symbolic dims of inputs that the options do not bind.
#include "compiler/frontend/onnx/import/unbound_dims.h"

#include "compiler/frontend/onnx/import/dim_options.h"
#include "compiler/frontend/onnx/import/facts.h"
#include "compiler/frontend/onnx/import/graph_inputs.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/onnx.pb.h"

#include <cctype>
#include <cstring>
#include <set>

namespace firn::onnx {
namespace {

// Names of dims in the order of the inputs, each with the first axis that has it.
class OpenDims {
public:
  OpenDims(const wire::GraphProto& graph, const ImportOptions& options) : options_(options), known_(options) {
    for (const auto& tensor : graph.initializer()) initializers_.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) initializers_.insert(tensor.values().name());
    for (const auto& input : graph.input()) {
      bind_by_shape(input);
      if (!input.type().has_map_type()) continue;
      auto parts = element_inputs(input, options);
      for (const auto& part : parts.value_or(std::vector<wire::ValueInfoProto>())) bind_by_shape(part);
    }
    for (const auto& input : graph.input())
      for (const auto& dim : input.type().tensor_type().shape().dim()) names_.insert(dim.dim_param());
    for (const auto& input : graph.input()) {
      auto elements = element_inputs(input, options);
      if (!elements) add(input);
      if (elements)
        for (const auto& element : *elements)
          if (!options.shapes.count(element.name())) add(element);
    }
  }

  const std::vector<std::pair<std::string, int>>& dims() const { return dims_; }

private:
  static std::string name_of(const wire::ValueInfoProto& input, int axis) {
    return DimOptions::name_of(input.name(), axis, input.type().tensor_type().shape().dim(axis).dim_param());
  }

  void bind_by_shape(const wire::ValueInfoProto& input) {
    if (!options_.shapes.count(input.name())) return;
    for (int i = 0; i < input.type().tensor_type().shape().dim_size(); ++i) known_.bind(name_of(input, i), 1);
  }

  void add(const wire::ValueInfoProto& input) {
    bool is_constant = initializers_.count(input.name()) && !options_.initializers_are_inputs &&
                       !options_.is_state(input.name());
    if (is_constant || options_.is_fixed(input.name())) return;
    const auto& shape = input.type().tensor_type().shape();
    for (int i = 0; i < shape.dim_size(); ++i) {
      std::string name = name_of(input, i);
      if (shape.dim(i).has_dim_value() || known_.is_known(name) || is_joined(name)) continue;
      if (listed_.insert(name).second) dims_.emplace_back(name, i);
    }
  }

  // Whether the name is an expression of dims that options give or that are listed by themselves.
  bool is_joined(const std::string& name) const {
    return joined_names(name,
                        [&](const std::string& part) {
                          return known_.is_known(part) || (part != name && names_.count(part));
                        })
        .has_value();
  }

  const ImportOptions& options_;
  DimOptions known_;
  std::set<std::string> initializers_, names_, listed_; // names_: names as the model writes them
  std::vector<std::pair<std::string, int>> dims_;
};

} // namespace

std::string shell_word(const std::string& text) {
  bool plain = !text.empty();
  for (char c : text)
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-./:=+,@", c));
  if (plain) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Expected<std::vector<std::pair<std::string, int>>> unbound_dims(const ModelFile& source,
                                                                const ImportOptions& options) {
  std::vector<std::pair<std::string, int>> none;
  auto model = load_model(source.file, source.folder);
  if (!model || find_unsupported(*model, options).certain) return none;
  if (Result renamed = rename_dims(*model->proto->mutable_graph(), options); !renamed) return renamed.error();
  return OpenDims(model->proto->graph(), options).dims();
}

Result check_dims_bound(const ModelFile& model, const ImportOptions& options) {
  auto open = unbound_dims(model, options);
  if (!open) return open.error();
  if (open->empty()) return {};
  std::string names, flags;
  for (const auto& [name, axis] : *open) {
    names += (names.empty() ? "'" : ", '") + name + "'";
    // The first axis is nearly always the batch, for which 1 is a good start.
    flags += " --dim " + shell_word(name) + (axis == 0 ? "=1" : "=…");
  }
  return usage_error("symbolic dims have no value: " + names + "; give each one:" + flags +
                     "\n  --dim NAME=1..8 makes one object for a range of values");
}

std::string binding_advice(const std::vector<Dim>& dims) {
  std::set<std::string> seen;
  std::string flags;
  for (const Dim& dim : dims) {
    for (const SymbolRef& symbol : dim.extent.symbols()) {
      if (dim.counted || ImportState::is_count(*symbol))
        return "; its extent depends on data, only a run knows it";
      if (seen.insert(symbol->name).second) flags += " --dim " + symbol->name + "=<n>";
    }
  }
  return flags.empty() ? "" : "; bind it with" + flags;
}

} // namespace firn::onnx
