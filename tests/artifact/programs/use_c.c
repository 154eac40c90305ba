// The C part of the same header: any alignment of the arena, binding, errors.
#include "digits.h"
#include "expect.h"

static unsigned char arena[VISION_DIGITS_ARENA_BYTES + 1];

static void runs_at(unsigned char* memory) {
  static const size_t dims[VISION_DIGITS_IMAGE_RANK] = VISION_DIGITS_IMAGE_DIMS;
  vision_digits model;
  EXPECT(vision_digits_init(&model, memory, VISION_DIGITS_ARENA_BYTES) == FIRN_STATUS_OK);
  for (size_t i = 0; i < dims[2] * dims[3]; ++i) vision_digits_image(&model)[i] = 1.0f;
  EXPECT(vision_digits_run(&model) == FIRN_STATUS_OK);
  EXPECT(vision_digits_probabilities(&model)[1] == 29.5f);
}

static void binds_buffers(void) {
  static float image[VISION_DIGITS_IMAGE_BYTES / sizeof(float)], result[10];
  vision_digits model;
  EXPECT(vision_digits_init(&model, arena, sizeof arena) == FIRN_STATUS_OK);
  image[0] = 2.0f;
  vision_digits_bind_image(&model, image);
  vision_digits_bind_probabilities(&model, result);
  EXPECT(vision_digits_run(&model) == FIRN_STATUS_OK);
  EXPECT(result[0] == 2.5f);
  vision_digits_bind_probabilities(&model, NULL);
  EXPECT(vision_digits_probabilities(&model) != result);
}

static void reports_errors(void) {
  vision_digits model = {0};
  EXPECT(vision_digits_run(&model) == FIRN_STATUS_NOT_INITIALISED);
  EXPECT(vision_digits_init(&model, arena, 100) == FIRN_STATUS_ARENA_TOO_SMALL);
  EXPECT(vision_digits_run(&model) == FIRN_STATUS_ARENA_TOO_SMALL);
  EXPECT(strcmp(firn_rt2_status_message(FIRN_STATUS_OK), "ok") == 0);
}

int main(void) {
  runs_at(arena);
  runs_at(arena + 1);
  binds_buffers();
  reports_errors();
  return failures;
}
