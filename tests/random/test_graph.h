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
  // The difference to the literal that a correct program may have, as a share of its largest element: the
  // effect of rounding in other orders, carried through the graph. 0: equal bits.
  double error = 0;
  // Whether it is computed from constants and dims: importers may read its value like that of a constant.
  bool known = false;
};

using Values = std::map<std::string, TestValue>;

// The bound of an integer that only a run knows and that decides extents.
struct TestBound {
  std::string value;        // the value that --max names
  std::vector<int64_t> max; // one bound for all elements, or one for each
  bool derived = false;     // the compiler finds it in the graph, but not for the node alone
};

// Elements of an input of the graph, in place of those of the first run, with which a run may end early.
struct TestEnd {
  std::string input;
  LiteralRef literal;
};

struct TestNode {
  std::string op;
  Names inputs;   // "": an optional one that is left out
  Names captures; // other values that regions among the attributes read
  Names outputs;
  std::vector<Message> attributes;
  // Several ONNX nodes in place of one, which pass each other values that are no tensors; `op` is the name of
  // the group.
  std::vector<Message> group = {};
  std::vector<TestBound> bounds = {};
  std::vector<TestEnd> ends = {};
  Names operands() const; // each once, inputs first
};

// A dim of inputs that varies from run to run.
struct TestSymbol {
  std::string name; // name in the model
  onnx::DimRange range;
  std::vector<int64_t> at; // the value in every run; the upper bound in the first
};

struct TestGraph {
  Names inputs, constants, outputs;                        // names of values; constants are initializers
  std::vector<TestNode> nodes;                             // in an order of execution
  std::vector<std::pair<std::string, std::string>> states; // (input, output)
  std::vector<TestSymbol> symbols;
  std::vector<Values> runs{1};
  bool counted = false; // some dims are known only once a run has counted them

  const TestValue& value(const std::string& name, size_t run = 0) const { return runs[run].at(name); }
  const Literal& literal(const std::string& name, size_t run = 0) const { return *value(name, run).literal; }
  void erase_value(const std::string& name) {
    for (Values& values : runs) values.erase(name);
  }
  bool is_open() const { return counted || !symbols.empty(); } // some dims are no numbers
  // The dim that has these extents in the runs: a number, or an expression over the symbols' names. Nothing
  // if no expression has them.
  std::optional<WireDim> dim(const std::vector<int64_t>& extents) const;
  // Whether that holds for each dim of the value: it can be an input.
  bool is_declarable(const std::string& name) const;
  // The extents, in a run, of dims that have those of `dims` in the first one, if these are the symbols'.
  std::vector<int64_t> dims_in(size_t run, std::vector<int64_t> dims) const;
  std::string encode() const; // bytes of the ONNX model
  onnx::ImportOptions import_options() const;
  std::string import_flags() const; // flags of the command line for the import options

private:
  std::vector<WireDim> declared_dims(const std::string& name) const;
};

// TensorProto.DataType of a dtype.
int wire_type(DType dtype);

} // namespace firn::test
