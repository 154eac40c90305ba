// A graph under test: ONNX nodes, and the value that each of its tensors has for the inputs drawn, in every
// run. Because every value is known, any of them can take the place of the nodes that compute it, which is
// how graphs are shrunk.
#pragma once

#include "compiler/frontend/onnx/import.h"
#include "tests/frontend/model_writer.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace firn::test {

struct TestValue {
  LiteralRef literal;
  // By how much a correct program may differ from the literal, as a share of its largest element: what
  // rounding in other orders makes of it, carried through the graph. 0: equal bits.
  double error = 0;
  // Computed from constants and dims: importers may read its value, as that of a constant.
  bool known = false;
};

using Values = std::map<std::string, TestValue>;

// The most that an integer which only a run knows may be, where it decides extents.
struct TestBound {
  std::string value;        // that --max names
  std::vector<int64_t> max; // of all its elements or of each
  bool derived = false;     // the compiler finds it in the graph, and a node alone has to be told
};

// Elements of an input of the graph, in place of those of the first run, with which a run may end early.
struct TestEnd {
  std::string input;
  LiteralRef literal;
};

struct TestNode {
  std::string op;
  Names inputs;   // "": an optional one that is left out
  Names captures; // what regions among the attributes read besides
  Names outputs;
  std::vector<Message> attributes;
  // Several ONNX nodes in place of one, where what lies between them is no tensor; then `op` is their name
  // here.
  std::vector<Message> group = {};
  std::vector<TestBound> bounds = {};
  std::vector<TestEnd> ends = {};
  Names operands() const; // each once, inputs first
};

// A dim of inputs that varies from run to run.
struct TestSymbol {
  std::string name; // in the model
  onnx::DimRange range;
  std::vector<int64_t> at; // in every run, in the first one the upper bound
};

struct TestGraph {
  Names inputs, constants, outputs;                        // names of values; constants are initializers
  std::vector<TestNode> nodes;                             // in an order of execution
  std::vector<std::pair<std::string, std::string>> states; // (input, output)
  std::vector<TestSymbol> symbols;
  std::vector<Values> runs{1};
  bool counted = false; // some dims are known when they have been counted, no sooner

  const TestValue& value(const std::string& name, size_t run = 0) const { return runs[run].at(name); }
  const Literal& literal(const std::string& name, size_t run = 0) const { return *value(name, run).literal; }
  void erase_value(const std::string& name) {
    for (Values& values : runs) values.erase(name);
  }
  bool is_open() const { return counted || !symbols.empty(); } // some dims are no numbers
  // What to call a dim that has these extents in the runs: a number or words made of the symbols' names.
  // Nothing if no words say it.
  std::optional<WireDim> dim(const std::vector<int64_t>& extents) const;
  // Whether that holds for each dim of the value: it can be an input.
  bool is_declarable(const std::string& name) const;
  // The extents, in a run, of dims that have those of `dims` in the first one, if these are the symbols'.
  std::vector<int64_t> dims_in(size_t run, std::vector<int64_t> dims) const;
  std::string encode() const; // as an ONNX model
  onnx::ImportOptions import_options() const;
  std::string import_flags() const; // the same for the command line

private:
  std::vector<WireDim> declared_dims(const std::string& name) const;
};

// TensorProto.DataType of a dtype.
int wire_type(DType dtype);

} // namespace firn::test
