// The skeleton of an ONNX file: its protobuf bytes without raw tensor data, which stay in the mapped file,
// and without the fields that Firn does not read. Small enough to parse whatever the size of the weights.
#pragma once

#include "compiler/support/diagnostic.h"

#include <cstddef>
#include <span>
#include <string>

namespace firn::onnx {

enum class WireMessage {
  Model,
  Graph,
  Node,
  Attribute,
  Tensor,
  SparseTensor,
  Function,
  Sequence,
  Optional,
  Map
};

// Copies the message `kind` that `file` holds. Every raw_data field becomes two fields with its offset and
// length in `file`. Broken encoding, nesting beyond kMaxNesting messages, or a skeleton over 1 GiB is a model
// error.
Expected<std::string> make_skeleton(std::span<const std::byte> file, WireMessage kind);

// Messages within messages: graph, node, attribute, graph, ... A body nested in 30 others is still read.
inline constexpr int kMaxNesting = 96;

} // namespace firn::onnx
