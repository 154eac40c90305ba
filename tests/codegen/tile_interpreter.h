// Tile instructions (AMX) on CPUs that have none: a handler of the signal that they raise there does what
// Intel's manual says of each, with eight tiles per thread, and skips it. Where the CPU has them it asks
// Linux for their registers, and they run as they are.
#pragma once

#include <cstdint>
#include <string>

namespace firn::test {

// The number of interpreted instructions of each kind.
struct TileCounts {
  int64_t configurations = 0, releases = 0, loads = 0, stores = 0, zeroes = 0, products = 0;
};

// From here on, for the whole process, until others handle the signal: Catch2 does from test case to test
// case.
void interpret_tiles();
// Whether instructions are interpreted: not where the CPU runs them, nor before interpret_tiles().
bool tiles_are_interpreted();

// Counts of all threads since the last call.
TileCounts take_tile_counts();
// Why an instruction of this thread was refused, which raises SIGSEGV; empty if none was since the last call.
std::string take_tile_fault();
// Whether this thread has a configuration, as between ldtilecfg and tilerelease.
bool has_tile_configuration();

} // namespace firn::test
