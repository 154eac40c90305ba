/* The C parts of all kinds of headers. */
#include "affine.h"
#include "any_batch.h"
#include "caches.h"
#include "elements.h"
#include "even_batch.h"
#include "in_place.h"
#include "prepared.h"
#include "row_sums.h"
#include "words.h"
#ifdef HAS_SEVERAL_CPUS
#include "several.h"
#include "several_prepared.h"
#endif

#define MOST(a, b) ((a) > (b) ? (a) : (b))
static unsigned char
    arena[MOST(MOST(DEMO_ELEMENTS_ARENA_BYTES, DEMO_CACHES_ARENA_BYTES), DEMO_WORDS_ARENA_BYTES)];
static unsigned char weights[DEMO_PREPARED_WEIGHTS_SIZE + FIRN_WEIGHT_ALIGNMENT];

static int elements_run(void) {
  demo_elements model;
  if (demo_elements_init(&model, arena, sizeof arena) != FIRN_STATUS_OK) return 0;
  if (demo_elements_set_n(&model, 2) != FIRN_STATUS_OK || demo_elements_f32_dim0(&model) != 2) return 0;
  demo_elements_f32(&model)[0] = 1.0f;
  memset(demo_elements_flag(&model), 1, DEMO_ELEMENTS_FLAG_BYTES);
  return demo_elements_run(&model) == FIRN_STATUS_OK && demo_elements_y_f32(&model)[0] > 0 &&
         demo_elements_where_dim1(&model) == 6;
}

static int caches_run(void) {
  demo_caches model;
  if (demo_caches_init(&model, arena, sizeof arena) != FIRN_STATUS_OK) return 0;
  if (demo_caches_run(&model) != FIRN_STATUS_OK || !demo_caches_window(&model)) return 0;
  demo_caches_reset(&model);
  return 1;
}

static int prepared_run(void) {
  firn_status status;
  unsigned char* memory = firn_rt2_place_arena(weights, sizeof weights, DEMO_PREPARED_WEIGHTS_SIZE,
                                               FIRN_WEIGHT_ALIGNMENT, &status);
  demo_prepared model;
  if (!memory || demo_prepared_prepare(memory, DEMO_PREPARED_WEIGHTS_SIZE) != FIRN_STATUS_OK) return 0;
  if (demo_prepared_init(&model, arena, sizeof arena, memory) != FIRN_STATUS_OK) return 0;
  return demo_prepared_run(&model) == FIRN_STATUS_OK;
}

static int words_run(void) {
  demo_words model;
  if (demo_words_init(&model, arena, sizeof arena) != FIRN_STATUS_OK) return 0;
  demo_words_sentence(&model)[0].data = "The fox";
  demo_words_sentence(&model)[0].size = 7;
  return demo_words_run(&model) == FIRN_STATUS_OK && demo_words_counts(&model)[0] == 2;
}

int main(void) {
  return elements_run() && caches_run() && prepared_run() && words_run() ? 0 : 1;
}
