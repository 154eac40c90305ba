// A graph under test: ONNX nodes, and the value that each of its tensors has for the inputs drawn. Because
// every value is known, any of them can take the place of the nodes that compute it, which is how graphs are
// shrunk.
#pragma once

#include "compiler/graph/literal.h"
#include "tests/frontend/model_writer.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace firn::test {

struct TestValue {
  LiteralRef literal;
  // By how much a correct program may differ from the literal, as a share of its largest element: what
  // rounding in other orders makes of it, carried through the graph. 0: equal bits.
  double error = 0;
  // Computed from constants and static dims: importers may read its value, as that of a constant.
  bool known = false;
};

struct TestNode {
  std::string op;
  Names inputs;   // "": an optional one that is left out
  Names captures; // what regions among the attributes read besides
  Names outputs;
  std::vector<Message> attributes;
  Names operands() const; // each once, inputs first
};

struct TestGraph {
  Names inputs, constants, outputs;                        // names of values; constants are initializers
  std::vector<TestNode> nodes;                             // in an order of execution
  std::vector<std::pair<std::string, std::string>> states; // (input, output)
  std::map<std::string, TestValue> values;

  const Literal& literal(const std::string& name) const { return *values.at(name).literal; }
  std::string encode() const; // as an ONNX model
};

// TensorProto.DataType of a dtype.
int wire_type(DType dtype);

} // namespace firn::test
