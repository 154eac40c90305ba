// Stands in for the runtime's check of the CPU, which would refuse tiles: settings are drawn for CPUs whose
// code runs here, and tile instructions are interpreted on machines without them.
#include "include/firn/abi.h"
#include "tests/codegen/tile_interpreter.h"

extern "C" firn_status firn_rt2_check_cpu(int32_t, uint64_t) FIRN_NOEXCEPT {
  firn::test::interpret_tiles();
  return FIRN_STATUS_OK;
}
