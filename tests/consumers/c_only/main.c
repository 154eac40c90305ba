/* The model through the C part of its header. */
#include "affine.h"

#include <stdio.h>

static unsigned char arena[DEMO_AFFINE_ARENA_BYTES];

int main(void) {
  demo_affine affine;
  firn_status status = demo_affine_init(&affine, arena, sizeof arena);
  if (status != FIRN_STATUS_OK) return printf("%s\n", firn_rt2_status_message(status)), 1;
  for (int i = 0; i < 8; ++i) demo_affine_features(&affine)[i] = 1.0f;
  status = demo_affine_run(&affine);
  if (status != FIRN_STATUS_OK) return printf("%s\n", firn_rt2_status_message(status)), 1;
  return demo_affine_scores(&affine)[2] == 3.5f ? 0 : 2;
}
