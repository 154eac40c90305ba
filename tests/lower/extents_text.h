// Modules in text whose dims vary, and what is expected of them.
#pragma once

#include "tests/lower/lowered_program.h"

#include <map>
#include <string>
#include <vector>

namespace firn::test {

// @main(parameters) -> type with symbols such as "n in [0, 9]". The body's last result is %r.
std::string module_of(const std::vector<std::string>& symbols, const std::string& parameters,
                      const std::string& body, const std::string& type);

std::vector<std::map<std::string, int64_t>> values_of(const std::string& name,
                                                      const std::vector<int64_t>& values);

// Compares every run with the evaluator, within 1e-5, with guard pages behind buffers and before them, alone
// and by several tasks.
void expect_everywhere(const std::string& text, LoweredOptions options);

} // namespace firn::test
