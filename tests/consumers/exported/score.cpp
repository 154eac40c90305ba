// The model behind a function.
#include "affine.h"

float score(float feature) {
  static demo::Affine::Arena arena;
  demo::Affine affine(arena);
  if (!affine.status()) return -1;
  for (float& value : affine.features()) value = feature;
  return affine.run() ? affine.scores()(0, 2) : -1;
}
