// The object of a model that no CPU can run: reaching it is the failure.
#include "demanding.h"
#include "demanding_symbols.h"

firn_status RUN_SYMBOL(const firn_rt2_call* call) {
  (void)call;
  return FIRN_STATUS_OK;
}

const unsigned char* WEIGHTS_SYMBOL(void) {
  return NULL;
}
