// Tensors of the wire format as literals: raw data stays where it is mapped, typed fields are copied,
// external data is mapped from a file beneath the model's folder.
#pragma once

#include "compiler/graph/literal.h"

#include <map>
#include <string>

namespace firn::onnx {

namespace wire {
class SparseTensorProto;
class TensorProto;
class TypeProto;
} // namespace wire

// The files that hold the bytes of a model's tensors: the mapped model, and external files opened so far.
struct TensorSource {
  std::shared_ptr<const MappedFile> file;
  std::string folder;
  std::map<std::string, std::shared_ptr<const MappedFile>> external;
};

// The dtype of a number from TensorProto.DataType; nothing if unknown.
std::optional<DType> dtype_from_wire(int number);
int dtype_to_wire(DType dtype);
// "f32", or "element type 99" for unknown numbers.
std::string wire_dtype_name(int number);

// Checks dims, dtype and the amount of data. Messages start with what is wrong; the caller names the tensor.
Expected<LiteralRef> read_tensor(const wire::TensorProto& tensor, TensorSource& source);
// The dense literal of a sparse tensor; at most kMaxDenseElements elements.
Expected<LiteralRef> read_sparse_tensor(const wire::SparseTensorProto& tensor, TensorSource& source);

// The most elements of any tensor. Intermediates beyond this cannot be planned anyway.
inline constexpr int64_t kMaxElements = int64_t{1} << 31;
inline constexpr int64_t kMaxDenseElements = int64_t{1} << 26;
// ONNX has no limit on rank; every real model stays far below.
inline constexpr int kMaxRank = 32;

} // namespace firn::onnx
