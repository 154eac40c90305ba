// Which graph ops and operators random graphs hold, so that none is left out unnoticed.
#pragma once

#include <cstdint>

namespace firn::test {

// Draws the graphs of the seeds without compiling them and prints how many hold each graph op and each ONNX
// operator. False if a graph op that random graphs can hold is in none of them.
bool report_coverage(uint64_t first, uint64_t end);

} // namespace firn::test
