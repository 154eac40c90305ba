// See test_graph.h.
#include "tests/random/test_graph.h"

#include <algorithm>
#include <functional>

namespace firn::test {

int wire_type(DType dtype) {
  switch (dtype) {
  case DType::F32: return 1;
  case DType::U8: return 2;
  case DType::I8: return 3;
  case DType::U16: return 4;
  case DType::I16: return 5;
  case DType::I32: return 6;
  case DType::I64: return 7;
  case DType::Bool: return 9;
  case DType::F16: return 10;
  case DType::F64: return 11;
  case DType::U32: return 12;
  case DType::U64: return 13;
  case DType::BF16: return 16;
  case DType::F8E4M3FN: return 17;
  case DType::F8E4M3FNUZ: return 18;
  case DType::F8E5M2: return 19;
  case DType::F8E5M2FNUZ: return 20;
  case DType::U4: return 21;
  case DType::I4: return 22;
  case DType::F4E2M1: return 23;
  case DType::F8E8M0: return 24;
  case DType::U2: return 25;
  case DType::I2: return 26;
  default: break;
  }
  FIRN_CHECK(false, "random graphs have no tensors of this dtype");
  return 0;
}

Names TestNode::operands() const {
  Names names;
  for (const Names* list : {&inputs, &captures})
    for (const std::string& name : *list)
      if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

namespace {

// The name of a dim, an expression over the symbols, and its value in a run.
struct Words {
  std::string text;
  std::function<int64_t(size_t run)> at;
};

// Whether the symbol by itself is a dim of an input, so that tensors tell its value.
bool is_extent(const TestGraph& graph, const TestSymbol& symbol) {
  for (const std::string& name : graph.inputs) {
    const Literal& first = graph.literal(name);
    for (size_t axis = 0; axis < first.dims().size(); ++axis) {
      bool same = true;
      for (size_t run = 0; run < graph.runs.size(); ++run)
        same &= graph.literal(name, run).dims()[axis] == symbol.at[run];
      if (same) return true;
    }
  }
  return false;
}

std::vector<Words> words_of(const TestGraph& graph) {
  const std::vector<TestSymbol>& symbols = graph.symbols;
  std::vector<Words> all;
  for (const TestSymbol& s : symbols) {
    all.push_back({s.name, [&s](size_t run) { return s.at[run]; }});
    for (int64_t factor : {2, 3, 4})
      all.push_back(
          {std::to_string(factor) + "*" + s.name, [&s, factor](size_t run) { return factor * s.at[run]; }});
    for (int64_t more : {1, 2})
      all.push_back(
          {s.name + " + " + std::to_string(more), [&s, more](size_t run) { return s.at[run] + more; }});
  }
  if (symbols.size() == 2 && is_extent(graph, symbols[0]) && is_extent(graph, symbols[1])) {
    const TestSymbol &a = symbols[0], &b = symbols[1];
    all.push_back({a.name + " + " + b.name, [&](size_t run) { return a.at[run] + b.at[run]; }});
    all.push_back({a.name + "*" + b.name, [&](size_t run) { return a.at[run] * b.at[run]; }});
  }
  return all;
}

} // namespace

std::optional<WireDim> TestGraph::dim(const std::vector<int64_t>& extents) const {
  if (std::all_of(extents.begin(), extents.end(), [&](int64_t extent) { return extent == extents[0]; }))
    return WireDim(extents[0]);
  for (const Words& words : words_of(*this)) {
    bool fits = true;
    for (size_t run = 0; run < extents.size(); ++run) fits &= words.at(run) == extents[run];
    if (fits) return WireDim(words.text.c_str());
  }
  return std::nullopt;
}

bool TestGraph::is_declarable(const std::string& name) const {
  for (size_t axis = 0; axis < literal(name).dims().size(); ++axis) {
    std::vector<int64_t> extents;
    for (size_t run = 0; run < runs.size(); ++run) extents.push_back(literal(name, run).dims()[axis]);
    if (!dim(extents)) return false;
  }
  return true;
}

std::vector<WireDim> TestGraph::declared_dims(const std::string& name) const {
  std::vector<WireDim> dims;
  for (size_t axis = 0; axis < literal(name).dims().size(); ++axis) {
    std::vector<int64_t> extents;
    for (size_t run = 0; run < runs.size(); ++run) extents.push_back(literal(name, run).dims()[axis]);
    auto words = dim(extents);
    FIRN_CHECK(words, "inputs have dims that can be declared");
    dims.push_back(*words);
  }
  return dims;
}

std::vector<int64_t> TestGraph::dims_in(size_t run, std::vector<int64_t> dims) const {
  std::vector<Words> all = words_of(*this);
  for (int64_t& dim : dims)
    for (const Words& words : all)
      if (words.at(0) == dim) {
        dim = words.at(run);
        break;
      }
  return dims;
}

onnx::ImportOptions TestGraph::import_options() const {
  onnx::ImportOptions options;
  options.states = states;
  std::string names; // names of all dims; a symbol that none has is not in the model
  for (const std::string& name : inputs)
    for (const WireDim& dim : declared_dims(name)) names += dim.name;
  for (const TestSymbol& symbol : symbols)
    if (names.find(symbol.name) != std::string::npos) options.ranges[symbol.name] = symbol.range;
  for (const TestNode& node : nodes)
    for (const TestBound& bound : node.bounds)
      if (!bound.derived) options.bounds[bound.value] = bound.max;
  return options;
}

std::string TestGraph::import_flags() const {
  std::string flags;
  for (const TestSymbol& symbol : symbols) {
    const onnx::DimRange& range = symbol.range;
    flags += " --dim " + symbol.name + "=" + std::to_string(range.lower) + ".." + std::to_string(range.upper);
    if (!range.values.empty()) {
      flags.erase(flags.rfind('=') + 1);
      for (int64_t v : range.values) flags += (v == range.lower ? "'" : "|") + std::to_string(v);
      flags += "'";
    }
    if (range.multiple > 1 && range.values.empty()) flags += ":" + std::to_string(range.multiple);
  }
  for (const auto& [name, max] : import_options().bounds)
    for (size_t i = 0; i < max.size(); ++i)
      flags += (i == 0 ? " --max " + name + "=" : ",") + std::to_string(max[i]);
  return flags;
}

std::string TestGraph::encode() const {
  Model model;
  model.opsets = {{"", 27}, {"com.microsoft", 1}, {"ai.onnx.preview.training", 1}};
  model.ir_version = 11;
  for (const std::string& name : inputs)
    model.graph.inputs.push_back(
        firn::test::value(name, wire_type(literal(name).dtype()), declared_dims(name)));
  for (const std::string& name : outputs) {
    // The importer has to find dims that are no numbers.
    bool known = !is_open() && runs[0].count(name);
    model.graph.outputs.push_back(
        known ? firn::test::value(name, wire_type(literal(name).dtype()), declared_dims(name))
              : Message().text(1, name));
  }
  for (const std::string& name : constants) {
    const Literal& constant = literal(name);
    auto bytes = constant.bytes();
    model.graph.initializers.push_back(
        tensor_header(name, wire_type(constant.dtype()), constant.dims())
            .text(9, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
  }
  for (const TestNode& each : nodes) {
    size_t dot = each.op.rfind('.');
    std::string domain = dot == std::string::npos ? "" : each.op.substr(0, dot);
    if (each.group.empty())
      model.graph.nodes.push_back(node(dot == std::string::npos ? each.op : each.op.substr(dot + 1),
                                       each.inputs, each.outputs, each.attributes, domain));
    for (const Message& part : each.group) model.graph.nodes.push_back(part);
  }
  return model.encode();
}

} // namespace firn::test
