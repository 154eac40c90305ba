// Dims that vary, in C.
#include "expect.h"
#include "varying.h"

#include <string.h>

static unsigned char arena[NLP_VARYING_ARENA_BYTES], nibbles[64];
static float choices[8];
static char text[80];

int main(void) {
  nlp_varying model = {0};
  nlp_varying_dims dims;
  EXPECT(nlp_varying_set_batch(&model, 2) == FIRN_STATUS_NOT_INITIALISED);
  EXPECT(nlp_varying_init(&model, arena, sizeof arena) == FIRN_STATUS_OK);
  nlp_varying_bind_set_batch_2(&model, choices);
  nlp_varying_bind_nibbles(&model, nibbles);
  dims = nlp_varying_get_dims(&model);
  EXPECT(dims.batch == 8 && dims.seq == 64 && dims.image_height == 96 && dims.class_ == 8);
  dims.batch = 2;
  dims.seq = 17;
  dims.image_height = 64;
  EXPECT(nlp_varying_set_dims(&model, &dims) == FIRN_STATUS_OK);
  EXPECT(nlp_varying_input_ids_dim0(&model) == 2 && nlp_varying_input_ids_dim1(&model) == 17);
  EXPECT(nlp_varying_longer_dim1(&model) == 18 && nlp_varying_tiles_dim0(&model) == 8);
  EXPECT(nlp_varying_tiles_dim1(&model) == 9 && nlp_varying_boxes_dim0(&model) == 0);
  EXPECT(nlp_varying_run(&model) == FIRN_STATUS_OK);
  EXPECT(nlp_varying_longer(&model)[0] == 2017 && nlp_varying_longer(&model)[1] == 2008);
  EXPECT(nlp_varying_boxes_dim0(&model) == 2 && nlp_varying_boxes_dim2(&model) == 8);
  EXPECT((nlp_varying_set_image_height(&model, 65) & 0xff) == FIRN_STATUS_OUT_OF_RANGE);
  EXPECT((nlp_varying_set_class_(&model, 5) & 0xff) == FIRN_STATUS_OUT_OF_RANGE);
  dims = nlp_varying_get_dims(&model);
  EXPECT(nlp_varying_refusal(&dims, text, sizeof text) == 0 && text[0] == 0);
  dims.image_height = 65;
  EXPECT(nlp_varying_refusal(&dims, text, sizeof text) == strlen(text));
  EXPECT(strcmp(text, "image_height is 65, wants a multiple of 32 from 32 to 96") == 0);
  EXPECT(nlp_varying_set_class_(&model, 4) == FIRN_STATUS_OK);
  EXPECT(nlp_varying_set_seq(&model, 0) == FIRN_STATUS_OK);
  EXPECT(nlp_varying_tiles_dim1(&model) == 0 && nlp_varying_get_dims(&model).image_height == 64);
  EXPECT(nlp_varying_run(&model) == FIRN_STATUS_OK);
  EXPECT(nlp_varying_runs(&model)[0] == 2.0f);
  return failures;
}
