// How element types and views are spelled in generated headers; shared by the C++ and the C part.
#pragma once

#include "compiler/artifact/model_description.h"

#include <string>

namespace firn::artifact {

struct HeaderType {
  const char* cpp;  // "float", "firn::half"; null: no type in headers (strings)
  const char* c;    // "float"; storage for types that C lacks
  const char* info; // enumerator of firn::ElementType
  bool is_sub_byte; // elements below one byte
};

HeaderType header_type(DType dtype);

// "f32[1,1,28,28]"; counted dimensions print as "<=100".
std::string type_text(const TensorDescription& tensor);
// "image: f32[1,1,28,28], mask: bool[8]"
std::string signature_text(const std::vector<TensorDescription>& tensors);
// "firn::View<const float, 1, 10>"
std::string view_type(const TensorDescription& tensor, bool is_const);

} // namespace firn::artifact
