// A hand-made object of the everything sample: copies input k to output k for each element type, counts runs
// in the state `memory`, and reports two boxes.
#include "everything.h"
#include "everything_symbols.h"

static const _Alignas(64) unsigned char weights[128] = {[64] = 0, 0, 0x80, 0x3f}; // 1.0f at 64

enum { TYPES = 25, COUNT_OFFSET = 6400 + 1728, MEMORY_OFFSET = 6400 + 1856 };

firn_status RUN_SYMBOL(const firn_rt2_call* call) {
  static const unsigned char bytes[TYPES] = {48, 24, 12, 12, 6,  6,  6, 6, 6, 3, 48, 24, 12,
                                             6,  3,  2,  48, 24, 12, 6, 3, 2, 6, 48, 96};
  for (int i = 0; i < TYPES; ++i) memcpy(call->outputs[i], call->inputs[i], bytes[i]);
  memcpy(call->outputs[TYPES], call->inputs[TYPES + 2], 16);
  const int64_t count = 2;
  memcpy(call->arena + COUNT_OFFSET, &count, sizeof count);
  float* memory = (float*)(void*)(call->arena + MEMORY_OFFSET);
  memory[0] += 1.0f;
  return FIRN_STATUS_OK;
}

const unsigned char* WEIGHTS_SYMBOL(void) {
  return weights;
}
