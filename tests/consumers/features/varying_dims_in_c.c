/* The same in C. */
#include "any_batch.h"

static unsigned char arena[DEMO_ANY_BATCH_ARENA_BYTES];

int main(void) {
  demo_any_batch model;
  demo_any_batch_dims dims;
  size_t i;
  if (demo_any_batch_init(&model, arena, sizeof arena) != FIRN_STATUS_OK) return 1;
  if (demo_any_batch_get_dims(&model).batch != 5 || demo_any_batch_x_dim0(&model) != 5) return 2;
  dims.batch = 6;
  if (demo_any_batch_set_dims(&model, &dims) == FIRN_STATUS_OK || demo_any_batch_y_dim0(&model) != 5)
    return 3;
  if (demo_any_batch_set_batch(&model, 2) != FIRN_STATUS_OK || demo_any_batch_y_dim0(&model) != 2) return 4;
  for (i = 0; i < 3 * demo_any_batch_x_dim0(&model); ++i) demo_any_batch_x(&model)[i] = (float)i;
  if (demo_any_batch_run(&model) != FIRN_STATUS_OK) return 5;
  return demo_any_batch_y(&model)[5] == -5.0f ? 0 : 6;
}
