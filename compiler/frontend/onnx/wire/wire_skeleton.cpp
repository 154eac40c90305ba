// A walk over the protobuf encoding that copies what Firn reads. Messages that cannot hold tensors are
// copied whole.
#include "compiler/frontend/onnx/wire/wire_skeleton.h"

#include <cstdint>
#include <optional>

namespace firn::onnx {
namespace {

constexpr uint32_t kRawDataField = 9;
constexpr uint32_t kRawOffsetField = 1000, kRawLengthField = 1001;
constexpr size_t kMaxSkeletonBytes = size_t{1} << 30;

enum WireType : uint32_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

// A bit per field number below 32.
constexpr uint32_t fields(std::initializer_list<int> numbers) {
  uint32_t mask = 0;
  for (int number : numbers) mask |= uint32_t{1} << number;
  return mask;
}

// The fields that are kept: exactly those of onnx.proto.
uint32_t kept_fields(WireMessage kind) {
  switch (kind) {
  case WireMessage::Model: return fields({1, 2, 3, 4, 5, 7, 8, 25});
  case WireMessage::Graph: return fields({1, 2, 5, 11, 12, 13, 15});
  case WireMessage::Node: return fields({1, 2, 3, 4, 5, 7, 8});
  case WireMessage::Attribute: return fields({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 20, 21, 22, 23});
  case WireMessage::Tensor: return fields({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14});
  case WireMessage::SparseTensor: return fields({1, 2, 3});
  case WireMessage::Function: return fields({1, 4, 5, 6, 7, 9, 10, 11, 13});
  case WireMessage::Sequence: return fields({1, 2, 3, 6});
  case WireMessage::Optional: return fields({1, 2, 3, 5});
  case WireMessage::Map: return fields({1, 2, 3, 4, 5});
  }
  FIRN_UNREACHABLE("wire message");
}

// The message in a field that may hold tensors somewhere beneath.
std::optional<WireMessage> nested(WireMessage kind, uint32_t field) {
  switch (kind) {
  case WireMessage::Model:
    if (field == 7) return WireMessage::Graph;
    if (field == 25) return WireMessage::Function;
    break;
  case WireMessage::Graph:
    if (field == 1) return WireMessage::Node;
    if (field == 5) return WireMessage::Tensor;
    if (field == 15) return WireMessage::SparseTensor;
    break;
  case WireMessage::Node:
    if (field == 5) return WireMessage::Attribute;
    break;
  case WireMessage::Attribute:
    if (field == 5 || field == 10) return WireMessage::Tensor;
    if (field == 6 || field == 11) return WireMessage::Graph;
    if (field == 22 || field == 23) return WireMessage::SparseTensor;
    break;
  case WireMessage::SparseTensor:
    if (field == 1 || field == 2) return WireMessage::Tensor;
    break;
  case WireMessage::Function:
    if (field == 7) return WireMessage::Node;
    if (field == 11) return WireMessage::Attribute;
    break;
  case WireMessage::Sequence:
    if (field == 3) return WireMessage::Tensor;
    if (field == 6) return WireMessage::Map;
    break;
  case WireMessage::Map:
    if (field == 5) return WireMessage::Sequence;
    break;
  case WireMessage::Optional:
    if (field == 3) return WireMessage::Tensor;
    if (field == 5) return WireMessage::Sequence;
    break;
  case WireMessage::Tensor: break;
  }
  return std::nullopt;
}

void append_varint(std::string& out, uint64_t value) {
  while (value >= 128) {
    out.push_back(static_cast<char>(value | 128));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

class Walk {
public:
  explicit Walk(std::span<const std::byte> file) : file_(file) {}

  // Copies the message in [begin, end) of the file to `out`; false after an error.
  bool copy(WireMessage kind, size_t begin, size_t end, int depth, std::string& out) {
    if (depth > kMaxNesting)
      return fail("messages are nested more than " + std::to_string(kMaxNesting) + " deep", begin);
    const uint32_t kept = kept_fields(kind);
    size_t at = begin;
    while (at < end) {
      const size_t start = at;
      uint64_t key = 0;
      if (!read_varint(at, end, key)) return fail("broken field key", start);
      const uint64_t field = key >> 3;
      if (field == 0 || field > UINT32_MAX) return fail("field number out of range", start);
      uint64_t length = 0; // payload of a Bytes field, which ends at `at` then
      if (!skip_value(static_cast<uint32_t>(key & 7), at, end, length)) return false;
      if (field >= 32 || !(kept >> field & 1)) continue;
      if (!copy_field(kind, static_cast<uint32_t>(field), static_cast<uint32_t>(key & 7), start, at, length,
                      depth, out))
        return false;
      if (out.size() > kMaxSkeletonBytes)
        return fail("the model without its weights is larger than 1 GiB", start);
    }
    return true;
  }

  Diagnostic error() const { return model_error(message_); }

private:
  bool fail(const std::string& message, size_t at) {
    if (message_.empty())
      message_ = "not a readable ONNX file: " + message + " at byte " + std::to_string(at);
    return false;
  }

  bool read_varint(size_t& at, size_t end, uint64_t& value) const {
    value = 0;
    for (int shift = 0; shift < 70 && at < end; shift += 7) {
      auto byte = static_cast<uint64_t>(file_[at++]);
      if (shift < 64) value |= (byte & 127) << shift;
      if (byte < 128) return true;
    }
    return false;
  }

  bool skip_value(uint32_t wire_type, size_t& at, size_t end, uint64_t& length) {
    const size_t start = at;
    uint64_t ignored = 0;
    switch (wire_type) {
    case Varint: return read_varint(at, end, ignored) || fail("broken number", start);
    case Fixed64: length = 8; break;
    case Fixed32: length = 4; break;
    case Bytes:
      if (!read_varint(at, end, length)) return fail("broken length", start);
      break;
    default: return fail("unknown wire type " + std::to_string(wire_type), start);
    }
    if (length > end - at)
      return fail("a field of " + std::to_string(length) + " bytes where " + std::to_string(end - at) +
                      " are left",
                  start);
    at += length;
    return true;
  }

  // The field lies in [start, at); the payload of a Bytes field is its last `length` bytes.
  bool copy_field(WireMessage kind, uint32_t field, uint32_t wire_type, size_t start, size_t at,
                  uint64_t length, int depth, std::string& out) {
    if (wire_type == Bytes && kind == WireMessage::Tensor && field == kRawDataField) {
      append_varint(out, uint64_t{kRawOffsetField} << 3 | Varint);
      append_varint(out, at - length);
      append_varint(out, uint64_t{kRawLengthField} << 3 | Varint);
      append_varint(out, length);
      return true;
    }
    auto inner = nested(kind, field);
    if (inner && wire_type == Bytes) {
      std::string message;
      if (!copy(*inner, at - length, at, depth + 1, message)) return false;
      append_varint(out, uint64_t{field} << 3 | Bytes);
      append_varint(out, message.size());
      out += message;
      return true;
    }
    out.append(reinterpret_cast<const char*>(file_.data()) + start, at - start);
    return true;
  }

  std::span<const std::byte> file_;
  std::string message_;
};

} // namespace

Expected<std::string> make_skeleton(std::span<const std::byte> file, WireMessage kind) {
  Walk walk(file);
  std::string out;
  if (!walk.copy(kind, 0, file.size(), 0, out)) return walk.error();
  return out;
}

} // namespace firn::onnx
