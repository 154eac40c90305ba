// Parsers for the words of repeatable flags: each function reads one word into the options. A word without a
// meaning, or one that contradicts others, is a usage error.
#pragma once

#include "compiler/driver/compile.h"

#include <map>
#include <string>

namespace firn::tool {

// Adds the dim and value of NAME=VALUE, a word of `option`, to `values`.
Result parse_dim_value(const char* option, const std::string& word, std::map<std::string, int64_t>& values);

Result parse_bounds(const std::string& word, driver::CompileOptions& options);   // NAME=8, NAME=8,1,64
Result parse_constant(const std::string& word, driver::CompileOptions& options); // NAME=1,2,3, NAME=FILE
Result parse_custom(const std::string& word, driver::CompileOptions& options);   // com.acme:Pool=symbol[:64K]
Result parse_dim(const std::string& word, driver::CompileOptions& options); // NAME=8, 1..8, 32..512:32, 1|4|8
Result parse_specialization(const std::string& word,
                            driver::CompileOptions& options);                  // NAME=VALUE,NAME=VALUE
Result parse_length(const std::string& word, driver::CompileOptions& options); // NAME=3, NAME=none
Result parse_name(const std::string& word, driver::CompileOptions& options);   // NEW=OLD
Result parse_shape(const std::string& word, driver::CompileOptions& options);  // NAME=2x3x224
Result parse_state(const std::string& word, driver::CompileOptions& options);  // PAST=PRESENT
Result parse_value(const std::string& word, driver::CompileOptions& options);  // NAME=f32[1,8]

} // namespace firn::tool
