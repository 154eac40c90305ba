// A hand-made object of the bare sample: no weights, a constant output.
#include "bare.h"
#include "bare_symbols.h"

firn_status RUN_SYMBOL(const firn_rt2_call* call) {
  float* output = call->outputs[0];
  output[0] = 1.0f;
  output[1] = 2.0f;
  return FIRN_STATUS_OK;
}

const unsigned char* WEIGHTS_SYMBOL(void) {
  return NULL;
}
