// The models through the C part of their headers.
#include "affine.h"
#include "doubler.h"

static unsigned char affine_arena[DEMO_AFFINE_ARENA_BYTES];
static unsigned char doubler_arena[DOUBLER_MODEL_ARENA_BYTES];

int main(void) {
  demo_affine affine;
  doubler_model twice;
  if (demo_affine_init(&affine, affine_arena, sizeof affine_arena) != FIRN_STATUS_OK) return 1;
  if (doubler_model_init(&twice, doubler_arena, sizeof doubler_arena) != FIRN_STATUS_OK) return 2;
  memset(demo_affine_features(&affine), 0, DEMO_AFFINE_FEATURES_BYTES);
  for (int i = 0; i < 5; ++i) doubler_model_x(&twice)[i] = 1.5f;
  if (demo_affine_run(&affine) != FIRN_STATUS_OK || doubler_model_run(&twice) != FIRN_STATUS_OK) return 3;
  if (demo_affine_scores(&affine)[5] != 2.0f) return 4;
  if (doubler_model_class_(&twice)[0] != 3.0f) return 5;
  return 0;
}
