// One function over a model of the class demo::Affine, through all that its header offers.
#include "affine.h"

#include <firn/owned.h>

extern "C" float SCORE(float feature) {
  static demo::Affine::Arena arena;
  demo::Affine on_stack(arena), affine(static_cast<demo::Affine&&>(on_stack));
  firn::Owned<demo::Affine> owned;
  if (!affine.status() || !owned.status()) return -1;
  auto features = affine.features();
  for (std::size_t i = 0; i < features.size(); ++i) features.data()[i] = feature;
  features[0](0) = feature;
  if (!owned->bind_input(0, features.data())) return -2;
  if (!affine.run() || !owned->run()) return -3;
  if (affine.scores()(0, 2) != owned->scores()[0][2]) return -4;
  return demo::Affine::info().output_count == 1 && firn::argmax(affine.scores()) < 6 ? affine.scores()(0, 2)
                                                                                     : -5;
}
