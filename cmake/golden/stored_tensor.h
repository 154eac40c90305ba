// Reads a tensor from a file in ONNX's TensorProto form, the format of test data sets, without protobuf.
#ifndef FIRN_GOLDEN_STORED_TENSOR_H
#define FIRN_GOLDEN_STORED_TENSOR_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace golden {

struct StoredTensor {
  std::string name;
  int data_type = 0; // TensorProto.DataType
  std::vector<std::int64_t> dims;
  std::vector<unsigned char> bytes; // elements as a model stores them, little endian

  std::size_t element_count() const {
    std::size_t count = 1;
    for (std::int64_t dim : dims) count *= static_cast<std::size_t>(dim);
    return count;
  }
};

// Walks the fields of a protobuf message; done() after the last one or at a malformed one (then failed()
// too).
class Message {
public:
  Message(const unsigned char* bytes, std::size_t count) : at_(bytes), end_(bytes + count) {}

  // Moves to the next field; false at the end.
  bool next() {
    if (failed_ || at_ == end_) return false;
    const std::uint64_t key = varint();
    field = static_cast<int>(key >> 3);
    wire = static_cast<int>(key & 7);
    number = 0;
    data = nullptr;
    size = 0;
    switch (wire) {
    case 0: number = varint(); break;
    case 1: take(8); break;
    case 2: take(varint()); break;
    case 5: take(4); break;
    default: failed_ = true;
    }
    return !failed_;
  }
  bool failed() const { return failed_; }

  // Reads one varint; for packed fields.
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const unsigned char byte = *at_++;
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }
  bool at_end() const { return failed_ || at_ == end_; }

  int field = 0, wire = 0;
  std::uint64_t number = 0;            // wire type 0
  const unsigned char* data = nullptr; // the others
  std::size_t size = 0;

private:
  void take(std::uint64_t count) {
    if (failed_ || count > static_cast<std::uint64_t>(end_ - at_)) {
      failed_ = true;
      return;
    }
    data = at_;
    size = static_cast<std::size_t>(count);
    at_ += count;
  }
  const unsigned char* at_;
  const unsigned char* end_;
  bool failed_ = false;
};

// The integers of a repeated field, packed or not.
inline bool append_integers(const Message& message, std::vector<std::int64_t>& values) {
  if (message.wire == 0) {
    values.push_back(static_cast<std::int64_t>(message.number));
    return true;
  }
  Message packed(message.data, message.size);
  while (!packed.at_end()) values.push_back(static_cast<std::int64_t>(packed.varint()));
  return !packed.failed();
}

inline void append_bytes(std::vector<unsigned char>& bytes, const unsigned char* data, std::size_t size) {
  if (size > 0) bytes.insert(bytes.end(), data, data + size);
}

// Bytes that an element of int32_data and its like takes in the tensor.
inline std::size_t element_bytes(int data_type) {
  switch (data_type) {
  case 2:
  case 3:
  case 9:
  case 17:
  case 18:
  case 19:
  case 20:
  case 21:
  case 22:
  case 23:
  case 24:
  case 25:
  case 26: return 1;
  case 4:
  case 5:
  case 10:
  case 16: return 2;
  case 1:
  case 6:
  case 12: return 4;
  default: return 8;
  }
}

// Fills `tensor` from a message's bytes; false if they are malformed.
inline bool parse_tensor(const unsigned char* data, std::size_t size, StoredTensor& tensor) {
  enum {
    Dims = 1,
    DataType = 2,
    Floats = 4,
    Int32s = 5,
    Int64s = 7,
    Name = 8,
    Raw = 9,
    Doubles = 10,
    Uint64s = 11
  };
  std::vector<std::int64_t> integers;
  Message message(data, size);
  while (message.next()) {
    switch (message.field) {
    case Dims:
      if (!append_integers(message, tensor.dims)) return false;
      break;
    case DataType: tensor.data_type = static_cast<int>(message.number); break;
    case Name: tensor.name.assign(reinterpret_cast<const char*>(message.data), message.size); break;
    case Raw:
    case Floats:
    case Doubles: append_bytes(tensor.bytes, message.data, message.size); break;
    case Int32s:
    case Int64s:
    case Uint64s:
      if (!append_integers(message, integers)) return false;
      break;
    default: break;
    }
  }
  const std::size_t width = element_bytes(tensor.data_type);
  for (std::int64_t value : integers) {
    unsigned char element[8];
    for (std::size_t i = 0; i < 8; ++i)
      element[i] = static_cast<unsigned char>(static_cast<std::uint64_t>(value) >> (8 * i));
    append_bytes(tensor.bytes, element, width);
  }
  return !message.failed();
}

// Reads a file; false if there is none or it holds no tensor.
inline bool read_tensor(const std::string& path, StoredTensor& tensor) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return false;
  std::vector<unsigned char> content;
  unsigned char buffer[65536];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) append_bytes(content, buffer, n);
  std::fclose(file);
  tensor = StoredTensor();
  return parse_tensor(content.data(), content.size(), tensor);
}

} // namespace golden

#endif
