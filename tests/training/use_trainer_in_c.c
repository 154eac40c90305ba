/* The functions of a training step in C: training that is saved, loaded and goes on as if nothing had been,
   inference between steps, and a batch that is no number. */
#include "digits.h"
#include "drawn_digits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(int holds, const char* what) {
  if (holds) return;
  printf("%s\n", what);
  ++failures;
}

typedef struct training {
  unsigned char block[DIGITS_PARAMETERS_BYTES], arena[DIGITS_TRAINER_ARENA_BYTES];
  digits_parameters parameters;
  digits_trainer trainer;
} training;

static void begin(training* t) {
  memset(t, 0xa5, sizeof *t);
  expect(digits_parameters_init(&t->parameters, t->block + 1, sizeof t->block - 1) ==
                 FIRN_STATUS_ARENA_MISALIGNED ||
             ((uintptr_t)t->block + 1) % 64 == 0,
         "memory without room for aligning it is refused");
  expect(digits_trainer_init(&t->trainer, t->arena, sizeof t->arena, &t->parameters) ==
                 FIRN_STATUS_NOT_INITIALISED ||
             t->parameters.block,
         "parameters without memory are refused");
  expect(digits_parameters_init(&t->parameters, t->block, sizeof t->block) == FIRN_STATUS_OK,
         "parameters are placed");
  digits_parameters_reset(&t->parameters);
  expect(digits_trainer_init(&t->trainer, t->arena, sizeof t->arena, &t->parameters) == FIRN_STATUS_OK,
         "the trainer is ready");
  *digits_trainer_learning_rate(&t->trainer) = 0.01F;
}

static void give_batch(training* t, int number) {
  int k;
  const int batch = number * 5 % 6 + 1;
  drawn_seed = (uint32_t)number * 977U + 5U;
  expect(digits_trainer_set_batch(&t->trainer, batch) == FIRN_STATUS_OK, "the batch is set");
  for (k = 0; k < batch; ++k) {
    digits_trainer_labels(&t->trainer)[k] = (number + k * 3) % 10;
    draw((number + k * 3) % 10, digits_trainer_image(&t->trainer) + k * kSize * kSize);
  }
}

static void train(training* t, int first, int end) {
  for (; first < end; ++first) {
    give_batch(t, first);
    expect(digits_trainer_step(&t->trainer) == FIRN_STATUS_OK, "a step is made");
  }
}

static unsigned char first_file[DIGITS_PARAMETERS_SAVED_BYTES], second_file[DIGITS_PARAMETERS_SAVED_BYTES];
static unsigned char first_state[DIGITS_TRAINER_SAVED_STATE_BYTES],
    second_state[DIGITS_TRAINER_SAVED_STATE_BYTES];

static void save(training* t, unsigned char* file, unsigned char* state) {
  expect(digits_parameters_save(&t->parameters, file, DIGITS_PARAMETERS_SAVED_BYTES) == FIRN_STATUS_OK &&
             digits_trainer_save_state(&t->trainer, state, DIGITS_TRAINER_SAVED_STATE_BYTES) ==
                 FIRN_STATUS_OK,
         "files are written");
}

int main(void) {
  static training whole, first, second;
  static unsigned char arena[DIGITS_MODEL_ARENA_BYTES];
  digits_model model;
  begin(&whole);
  begin(&first);
  begin(&second);
  expect(digits_model_init(&model, arena, sizeof arena, &first.parameters) == FIRN_STATUS_OK &&
             digits_model_set_batch(&model, 1) == FIRN_STATUS_OK,
         "the model is ready");
  drawn_seed = 7;
  draw(3, digits_model_image(&model));
  train(&whole, 0, 8);
  train(&first, 0, 3);
  expect(digits_model_run(&model) == FIRN_STATUS_OK &&
             digits_trainer_evaluate(&first.trainer) == FIRN_STATUS_OK,
         "the model runs between steps");
  save(&first, first_file, first_state);
  expect(digits_parameters_load(&second.parameters, first_file, sizeof first_file) == FIRN_STATUS_OK &&
             digits_trainer_load_state(&second.trainer, first_state, sizeof first_state) == FIRN_STATUS_OK,
         "files are loaded");
  expect(digits_parameters_load(&second.parameters, first_state, sizeof first_state) ==
             FIRN_STATUS_TENSORS_UNFIT,
         "states are no parameters");
  expect(*digits_trainer_step_count(&second.trainer) == 3, "the count is in the file");
  train(&second, 3, 8);
  save(&whole, first_file, first_state);
  save(&second, second_file, second_state);
  expect(memcmp(first_file, second_file, sizeof first_file) == 0 &&
             memcmp(first_state, second_state, sizeof first_state) == 0,
         "a resumed training ends with the same bits");
  give_batch(&second, 8);
  digits_trainer_image(&second.trainer)[3] = 1e38F * 1e10F;
  expect(digits_trainer_step(&second.trainer) == FIRN_STATUS_NOT_FINITE, "a loss that is no number is told");
  save(&second, second_file, second_state);
  expect(memcmp(first_file, second_file, sizeof first_file) == 0 &&
             memcmp(first_state, second_state, sizeof first_state) == 0,
         "such a step changes no byte");
  expect(digits_parameters_dense_bias(&second.parameters)[0] ==
             digits_parameters_dense_bias(&whole.parameters)[0],
         "parameters have addresses");
  if (failures == 0) printf("ok\n");
  return failures != 0;
}
