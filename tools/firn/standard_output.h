// Standard output, checked: a full disk or a closed pipe must not pass for success.
#pragma once

#include "compiler/support/diagnostic.h"

#include <string_view>

namespace firn::tool {

// Writes at once; what cannot be written is a usage error that says why.
Result print(std::string_view text);
// Whether everything that was ever written has arrived, however it was written.
Result flush_output();
// Gives the standard descriptors that are closed an end where writing fails, so that no file opened later
// takes the number of one.
void open_standard_descriptors();

} // namespace firn::tool
