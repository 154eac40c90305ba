// The table of element types in headers, and the spelling of views.
#include "compiler/artifact/header_types.h"

namespace firn::artifact {

HeaderType header_type(DType dtype) {
  switch (dtype) {
  case DType::F64: return {"double", "double", "F64", false};
  case DType::F32: return {"float", "float", "F32", false};
  case DType::F16: return {"firn::half", "uint16_t", "F16", false};
  case DType::BF16: return {"firn::bfloat16", "uint16_t", "BF16", false};
  case DType::F8E4M3FN: return {"firn::float8_e4m3fn", "uint8_t", "F8E4M3FN", false};
  case DType::F8E4M3FNUZ: return {"firn::float8_e4m3fnuz", "uint8_t", "F8E4M3FNUZ", false};
  case DType::F8E5M2: return {"firn::float8_e5m2", "uint8_t", "F8E5M2", false};
  case DType::F8E5M2FNUZ: return {"firn::float8_e5m2fnuz", "uint8_t", "F8E5M2FNUZ", false};
  case DType::F8E8M0: return {"firn::float8_e8m0", "uint8_t", "F8E8M0", false};
  case DType::F4E2M1: return {"firn::float4_e2m1", "uint8_t", "F4E2M1", true};
  case DType::I64: return {"std::int64_t", "int64_t", "I64", false};
  case DType::I32: return {"std::int32_t", "int32_t", "I32", false};
  case DType::I16: return {"std::int16_t", "int16_t", "I16", false};
  case DType::I8: return {"std::int8_t", "int8_t", "I8", false};
  case DType::I4: return {"firn::int4", "uint8_t", "I4", true};
  case DType::I2: return {"firn::int2", "uint8_t", "I2", true};
  case DType::U64: return {"std::uint64_t", "uint64_t", "U64", false};
  case DType::U32: return {"std::uint32_t", "uint32_t", "U32", false};
  case DType::U16: return {"std::uint16_t", "uint16_t", "U16", false};
  case DType::U8: return {"std::uint8_t", "uint8_t", "U8", false};
  case DType::U4: return {"firn::uint4", "uint8_t", "U4", true};
  case DType::U2: return {"firn::uint2", "uint8_t", "U2", true};
  case DType::Bool: return {"bool", "bool", "Bool", false};
  case DType::C64: return {"firn::complex64", "float", "C64", false};
  case DType::C128: return {"firn::complex128", "double", "C128", false};
  case DType::String: return {"firn::Text", "firn_text", "String", false};
  }
  return {nullptr, nullptr, nullptr, false};
}

std::string type_text(const TensorDescription& tensor) {
  std::string text = std::string(dtype_name(tensor.dtype)) + "[";
  for (size_t axis = 0; axis < tensor.dims.size(); ++axis) {
    if (axis > 0) text += ",";
    if (tensor.is_counted(axis)) text += "<=";
    text += tensor.dims[axis].to_string();
  }
  return text + "]";
}

std::string signature_text(const std::vector<TensorDescription>& tensors) {
  std::string text;
  for (const TensorDescription& tensor : tensors) {
    if (!text.empty()) text += ", ";
    text += tensor.identifier + ": " + type_text(tensor);
  }
  return text.empty() ? "nothing" : text;
}

std::string view_type(const TensorDescription& tensor, bool is_const) {
  const HeaderType type = header_type(tensor.dtype);
  std::string text = std::string(type.is_sub_byte ? "firn::PackedView<" : "firn::View<") +
                     (is_const ? "const " : "") + type.cpp;
  for (size_t axis = 0; axis < tensor.dims.size(); ++axis)
    text += ", " + (tensor.varies(axis) ? "firn::dynamic" : tensor.dims[axis].to_string());
  return text + ">";
}

} // namespace firn::artifact
