// The C part of a model whose raw weights need no preparation.
#include "expect.h"
#include "in_place.h"

static unsigned char arena[VISION_IN_PLACE_ARENA_BYTES];

int main(void) {
  vision_in_place model;
  unsigned char untouched = 7;
  EXPECT(VISION_IN_PLACE_WEIGHTS_SIZE == 0 && VISION_IN_PLACE_RAW_WEIGHTS_SIZE == 256);
  EXPECT(vision_in_place_prepare(NULL, VISION_IN_PLACE_WEIGHTS_SIZE) == FIRN_STATUS_OK);
  EXPECT(vision_in_place_prepare(&untouched, 1) == FIRN_STATUS_OK && untouched == 7);
  EXPECT(vision_in_place_init(&model, arena, sizeof arena, NULL) == FIRN_STATUS_OK);
  EXPECT(vision_in_place_run(&model) == FIRN_STATUS_OK);
  EXPECT(vision_in_place_probabilities(&model)[1] == 1.5f);
  EXPECT(vision_in_place_init(&model, arena, sizeof arena, &untouched) == FIRN_STATUS_OK);
  EXPECT(vision_in_place_run(&model) == FIRN_STATUS_OK);
  return failures;
}
