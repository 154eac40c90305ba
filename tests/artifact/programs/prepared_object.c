// A hand-made object of the prepared sample: packed weight i is twice raw weight i, for the first 32 of 64;
// probability i is packed weight i.
#include "prepared.h"
#include "prepared_symbols.h"

static const _Alignas(64) float raw_weights[32] = {0.5f, 1.5f};

firn_status PREPARE_SYMBOL(const firn_rt2_call* call) {
  const float* raw = (const float*)(const void*)call->weights;
  float* packed = (float*)(void*)call->arena;
  for (int i = 0; i < 64; ++i) packed[i] = i < 32 ? 2 * raw[i] : 0.0f;
  return FIRN_STATUS_OK;
}

firn_status RUN_SYMBOL(const firn_rt2_call* call) {
  const float* packed = (const float*)(const void*)call->weights;
  for (int i = 0; i < 10; ++i) ((float*)call->outputs[0])[i] = packed[i];
  return FIRN_STATUS_OK;
}

const unsigned char* WEIGHTS_SYMBOL(void) {
  return (const unsigned char*)raw_weights;
}
