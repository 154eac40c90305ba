// The object of sample.c and changed copies of it.
#pragma once

#include "compiler/load/loaded_object.h"

#include <cstdint>
#include <string>
#include <vector>

namespace firn::test {

using Bytes = std::vector<std::byte>;

Bytes sample_object();
// The object of the same code without unwinding tables and debug information.
Bytes plain_sample_object();
// The object with one of its sections made larger. Zeros take no room in the file if `stored` is false.
Bytes with_larger_section(Bytes object, const std::string& section, uint64_t bytes, bool stored);
// The address of a section as the header of the object states it.
uint64_t stated_address(const std::byte* object, const std::string& section);

// All that sample.c calls.
load::LoadOptions sample_options();
// Loads the sample; fails the test if that fails.
load::LoadedObject loaded(const Bytes& object, const load::LoadOptions& options = sample_options());
// Calls a function of the object.
template <class Function> auto* function(const load::LoadedObject& object, const std::string& name) {
  return reinterpret_cast<Function*>(object.symbol(name));
}

} // namespace firn::test
