// The generated header: a C++ class with named, typed views, and a C part over the same symbols.
#pragma once

#include "compiler/artifact/model_description.h"
#include "compiler/support/diagnostic.h"

#include <string>

namespace firn::artifact {

// The whole text. Requires the class name and the identifiers to be set. Equal descriptions give equal bytes.
std::string write_header(const ModelDescription& model);

// The part for C alone; write_header() includes it.
std::string write_c_part(const ModelDescription& model);

} // namespace firn::artifact
