// A hand-made object of the varying sample: checks extents as compiled code does, then notes them, counts
// runs in the state, and reports two boxes.
#include "varying.h"
#include "varying_symbols.h"

enum { COUNT_OFFSET = 24576, RUNS_OFFSET = 24640 };

firn_status RUN_SYMBOL(const firn_rt2_call* call) {
  static const size_t lower[4] = {1, 0, 1, 1}, upper[4] = {8, 64, 3, 8};
  int64_t* longer = (int64_t*)call->outputs[0];
  const int64_t count = 2;
  for (size_t i = 0; i < 4; ++i)
    if (call->extents[i] < lower[i] || call->extents[i] > upper[i]) return FIRN_STATUS_OUT_OF_RANGE;
  longer[0] = (int64_t)(1000 * call->extents[0] + call->extents[1]);
  longer[1] = (int64_t)(1000 * call->extents[2] + call->extents[3]);
  memcpy(call->arena + COUNT_OFFSET, &count, sizeof count);
  *(float*)(void*)(call->arena + RUNS_OFFSET) += 1.0f;
  return FIRN_STATUS_OK;
}

const unsigned char* WEIGHTS_SYMBOL(void) {
  return NULL;
}
