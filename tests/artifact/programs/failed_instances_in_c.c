// The C part of models that cannot run: their tensors may be asked for and are NULL, and nothing is touched.
#include "digits.h"
#include "everything.h"
#include "expect.h"
#include "prepared.h"

static unsigned char arena[EVERYTHING_MODEL_ARENA_BYTES + VISION_DIGITS_ARENA_BYTES];

static void expect_nothing(vision_digits* model, firn_status status) {
  static float image[784];
  EXPECT(vision_digits_run(model) == status);
  EXPECT(vision_digits_image(model) == NULL && vision_digits_probabilities(model) == NULL);
  vision_digits_bind_image(model, image);
  vision_digits_bind_image(model, NULL);
  vision_digits_bind_probabilities(model, NULL);
  EXPECT(vision_digits_probabilities(model) == NULL);
  EXPECT(vision_digits_run(model) == status);
}

static void expect_nothing_of_everything(everything_model* model, firn_status status) {
  EXPECT(everything_model_run(model) == status);
  EXPECT(everything_model_in_f64(model) == NULL && everything_model_out_u2(model) == NULL);
  EXPECT(everything_model_boxes(model) == NULL && everything_model_boxes_dim0(model) == 0);
  EXPECT(everything_model_memory(model) == NULL && everything_model_past(model) == NULL);
  everything_model_reset(model);
}

int main(void) {
  vision_digits digits = {0};
  everything_model everything = {0};
  vision_prepared prepared;
  expect_nothing(&digits, FIRN_STATUS_NOT_INITIALISED);
  expect_nothing_of_everything(&everything, FIRN_STATUS_NOT_INITIALISED);
  EXPECT(vision_digits_init(&digits, arena, 100) == FIRN_STATUS_ARENA_TOO_SMALL);
  expect_nothing(&digits, FIRN_STATUS_ARENA_TOO_SMALL);
  EXPECT(vision_digits_init(&digits, NULL, sizeof arena) == FIRN_STATUS_NO_MEMORY);
  expect_nothing(&digits, FIRN_STATUS_NO_MEMORY);
  EXPECT(everything_model_init(&everything, arena, 1) == FIRN_STATUS_ARENA_TOO_SMALL);
  expect_nothing_of_everything(&everything, FIRN_STATUS_ARENA_TOO_SMALL);
  EXPECT(vision_prepared_init(&prepared, arena, sizeof arena, NULL) == FIRN_STATUS_NO_WEIGHTS);
  EXPECT(vision_prepared_image(&prepared) == NULL && vision_prepared_probabilities(&prepared) == NULL);
  EXPECT(vision_digits_init(&digits, arena, sizeof arena) == FIRN_STATUS_OK);
  EXPECT(vision_digits_run(&digits) == FIRN_STATUS_OK);
  return failures;
}
