// Programs that the driver starts: compilers and linkers.
#pragma once

#include <string>
#include <vector>

namespace firn::driver {

// Runs a program without a shell, its output to `log`, its temporary files beside that; its exit code, 128
// and the number of the signal that ended it, or -1 if it could not be started. One that takes longer than
// `seconds` is ended with all that it started; 0: no limit.
int run_program(const std::vector<std::string>& arguments, const std::string& log, int seconds = 0);

} // namespace firn::driver
