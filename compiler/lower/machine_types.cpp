// See machine_types.h.
#include "compiler/lower/machine_types.h"

namespace firn::lower {

using kernel::Scalar;

bool has_machine_type(DType dtype) {
  return is_float(dtype) || is_integer(dtype) || dtype == DType::Bool || dtype == DType::String;
}

Scalar memory_scalar(DType dtype) {
  switch (dtype) {
  case DType::F64: return Scalar::F64;
  case DType::F32: return Scalar::F32;
  case DType::F16: return Scalar::F16;
  case DType::BF16: return Scalar::BF16;
  case DType::I64:
  case DType::U64: return Scalar::I64;
  case DType::I32:
  case DType::U32: return Scalar::I32;
  case DType::I16:
  case DType::U16: return Scalar::I16;
  case DType::F8E4M3FN:
  case DType::F8E4M3FNUZ:
  case DType::F8E5M2:
  case DType::F8E5M2FNUZ:
  case DType::F8E8M0:
  case DType::F4E2M1:
  case DType::I8:
  case DType::I4:
  case DType::I2:
  case DType::U8:
  case DType::U4:
  case DType::U2:
  case DType::Bool: return Scalar::I8;
  case DType::String: return Scalar::I128;
  case DType::C64:
  case DType::C128: break;
  }
  FIRN_UNREACHABLE("no machine type for " + std::string(dtype_name(dtype)));
}

kernel::MachineType value_type(DType dtype, int lanes) {
  if (dtype == DType::Bool) return {Scalar::I1, lanes};
  if (dtype == DType::F16 || dtype == DType::BF16) return {Scalar::F32, lanes};
  return {memory_scalar(dtype), lanes};
}

} // namespace firn::lower
