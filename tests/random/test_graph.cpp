// See test_graph.h.
#include "tests/random/test_graph.h"

#include <algorithm>

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

static Message declared(const std::string& name, const Literal& literal) {
  std::vector<WireDim> dims(literal.dims().begin(), literal.dims().end());
  return value(name, wire_type(literal.dtype()), dims);
}

std::string TestGraph::encode() const {
  Model model;
  model.opsets = {{"", 24}};
  model.ir_version = 11;
  for (const std::string& name : inputs) model.graph.inputs.push_back(declared(name, literal(name)));
  for (const std::string& name : outputs)
    model.graph.outputs.push_back(values.count(name) ? declared(name, literal(name))
                                                     : Message().text(1, name));
  for (const std::string& name : constants) {
    const Literal& constant = literal(name);
    auto bytes = constant.bytes();
    model.graph.initializers.push_back(
        tensor_header(name, wire_type(constant.dtype()), constant.dims())
            .text(9, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
  }
  for (const TestNode& each : nodes)
    model.graph.nodes.push_back(node(each.op, each.inputs, each.outputs, each.attributes));
  return model.encode();
}

} // namespace firn::test
