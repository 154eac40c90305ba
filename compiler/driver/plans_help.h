// The text of `firn help plans`.
#pragma once

#include <string>

namespace firn::driver {

// The words of plans of all algorithms, as the compiler lists them, with how plans stand in graphs and in
// schedule databases.
std::string plans_help();

} // namespace firn::driver
