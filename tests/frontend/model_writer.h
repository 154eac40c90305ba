// Writes small ONNX models byte by byte, broken ones included: the protobuf encoding with ONNX's field
// numbers, and nothing that the frontend itself uses.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace firn::test {

// A protobuf message under construction.
class Message {
public:
  std::string bytes;

  Message& number(int field, int64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& text(int field, const std::string& value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes); }
  Message& real(int field, float value) {
    varint(static_cast<uint64_t>(field) << 3 | 5);
    bytes.append(reinterpret_cast<const char*>(&value), 4);
    return *this;
  }
  template <class T> Message& raw(int field, const std::vector<T>& values) {
    return text(field, std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
  }
  void varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes.push_back(static_cast<char>(value | 128));
    bytes.push_back(static_cast<char>(value));
  }
};

// Numbers of TensorProto.DataType.
enum WireType { F32 = 1, U8 = 2, I32 = 6, I64 = 7, Bool = 9, F16 = 10, F64 = 11 };

// --- Tensors.
inline Message tensor_header(const std::string& name, int type, const std::vector<int64_t>& dims) {
  Message m;
  for (int64_t dim : dims) m.number(1, dim);
  m.number(2, type).text(8, name);
  return m;
}
inline Message floats(const std::string& name, const std::vector<int64_t>& dims,
                      const std::vector<float>& values) {
  return tensor_header(name, F32, dims).raw(9, values);
}
inline Message ints(const std::string& name, const std::vector<int64_t>& values) {
  return tensor_header(name, I64, {static_cast<int64_t>(values.size())}).raw(9, values);
}
inline Message int_scalar(const std::string& name, int64_t value) {
  return tensor_header(name, I64, {}).raw(9, std::vector<int64_t>{value});
}
inline Message bool_scalar(const std::string& name, bool value) {
  return tensor_header(name, Bool, {}).raw(9, std::vector<uint8_t>{value});
}

// --- Attributes.
inline Message attribute(const std::string& name, int64_t value) {
  return Message().text(1, name).number(3, value).number(20, 2);
}
inline Message attribute_ints(const std::string& name, const std::vector<int64_t>& values) {
  Message m;
  m.text(1, name).number(20, 7);
  for (int64_t value : values) m.number(8, value);
  return m;
}
inline Message attribute_real(const std::string& name, float value) {
  return Message().text(1, name).real(2, value).number(20, 1);
}
inline Message attribute_reals(const std::string& name, const std::vector<float>& values) {
  Message m;
  m.text(1, name).number(20, 6);
  for (float value : values) m.real(7, value);
  return m;
}
inline Message attribute_texts(const std::string& name, const std::vector<std::string>& values) {
  Message m;
  m.text(1, name).number(20, 8);
  for (const std::string& value : values) m.text(9, value);
  return m;
}
inline Message attribute_text(const std::string& name, const std::string& value) {
  return Message().text(1, name).text(4, value).number(20, 3);
}
inline Message attribute_tensor(const std::string& name, const Message& value) {
  return Message().text(1, name).message(5, value).number(20, 4);
}
inline Message attribute_graph(const std::string& name, const Message& value) {
  return Message().text(1, name).message(6, value).number(20, 5);
}
inline Message attribute_reference(const std::string& name, const std::string& of, int kind) {
  return Message().text(1, name).text(21, of).number(20, kind);
}

// --- Nodes and values.
using Names = std::vector<std::string>;

inline Message node(const std::string& op, const Names& inputs, const Names& outputs,
                    const std::vector<Message>& attributes = {}, const std::string& domain = "",
                    const std::string& name = "") {
  Message m;
  for (const auto& input : inputs) m.text(1, input);
  for (const auto& output : outputs) m.text(2, output);
  if (!name.empty()) m.text(3, name);
  m.text(4, op);
  for (const auto& each : attributes) m.message(5, each);
  if (!domain.empty()) m.text(7, domain);
  return m;
}

// A dim is a number or a name.
struct WireDim {
  WireDim(int64_t value) : value(value) {}
  WireDim(int value) : value(value) {}
  WireDim(const char* name) : name(name) {}
  int64_t value = 0;
  std::string name;
};

inline Message value(const std::string& name, int type, const std::vector<WireDim>& dims) {
  Message shape;
  for (const auto& dim : dims)
    shape.message(1, dim.name.empty() ? Message().number(1, dim.value) : Message().text(2, dim.name));
  Message tensor = Message().number(1, type).message(2, shape);
  return Message().text(1, name).message(2, Message().message(1, tensor));
}

struct Graph {
  std::vector<Message> nodes, initializers, inputs, outputs;

  Message encode() const {
    Message m;
    for (const auto& each : nodes) m.message(1, each);
    m.text(2, "graph");
    for (const auto& each : initializers) m.message(5, each);
    for (const auto& each : inputs) m.message(11, each);
    for (const auto& each : outputs) m.message(12, each);
    return m;
  }
};

inline Message opset(const std::string& domain, int64_t version) {
  return Message().text(1, domain).number(2, version);
}

struct Model {
  Graph graph;
  int64_t ir_version = 10;
  std::vector<std::pair<std::string, int64_t>> opsets{{"", 17}};
  std::vector<Message> functions;

  std::string encode() const {
    Message m;
    m.number(1, ir_version).text(2, "test");
    m.message(7, graph.encode());
    for (const auto& [domain, version] : opsets) m.message(8, opset(domain, version));
    for (const auto& each : functions) m.message(25, each);
    return m.bytes;
  }
};

inline Message function(const std::string& domain, const std::string& name, const Names& inputs,
                        const Names& outputs, const std::vector<Message>& nodes, const Names& attributes = {},
                        const std::vector<std::pair<std::string, int64_t>>& opsets = {{"", 17}}) {
  Message m;
  m.text(1, name);
  for (const auto& each : inputs) m.text(4, each);
  for (const auto& each : outputs) m.text(5, each);
  for (const auto& each : attributes) m.text(6, each);
  for (const auto& each : nodes) m.message(7, each);
  for (const auto& [set_domain, version] : opsets) m.message(9, opset(set_domain, version));
  return m.text(10, domain);
}

} // namespace firn::test
