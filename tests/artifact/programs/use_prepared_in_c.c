// The C part of a model whose weights are prepared first.
#include "expect.h"
#include "prepared.h"

static unsigned char arena[VISION_PREPARED_ARENA_BYTES];
static _Alignas(64) unsigned char weights[VISION_PREPARED_WEIGHTS_SIZE + 64];

int main(void) {
  vision_prepared model;
  EXPECT(VISION_PREPARED_RAW_WEIGHTS_SIZE == 128);
  EXPECT(vision_prepared_prepare(NULL, VISION_PREPARED_WEIGHTS_SIZE) == FIRN_STATUS_NO_WEIGHTS);
  EXPECT(vision_prepared_prepare(weights, 255) == FIRN_STATUS_WEIGHTS_SIZE);
  EXPECT(vision_prepared_prepare(weights + 4, VISION_PREPARED_WEIGHTS_SIZE) ==
         FIRN_STATUS_WEIGHTS_MISALIGNED);
  EXPECT(vision_prepared_prepare(weights, VISION_PREPARED_WEIGHTS_SIZE) == FIRN_STATUS_OK);
  EXPECT(vision_prepared_init(&model, arena, sizeof arena, NULL) == FIRN_STATUS_NO_WEIGHTS);
  EXPECT(vision_prepared_run(&model) == FIRN_STATUS_NO_WEIGHTS);
  EXPECT(vision_prepared_init(&model, arena, sizeof arena, weights + 4) == FIRN_STATUS_WEIGHTS_MISALIGNED);
  EXPECT(vision_prepared_init(&model, arena, sizeof arena, weights) == FIRN_STATUS_OK);
  EXPECT(vision_prepared_run(&model) == FIRN_STATUS_OK);
  EXPECT(vision_prepared_probabilities(&model)[1] == 3.0f);
  return failures;
}
