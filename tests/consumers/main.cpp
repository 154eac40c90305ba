// The program of the three ways to get Firn: relu(features * W + b) against values computed by hand.
#include "affine.h"

#include <firn/owned.h>

#include <cstdio>

int main() {
  firn::Owned<demo::Affine> affine;
  auto features = affine->features();
  for (int i = 0; i < 4; ++i) features(0, i) = static_cast<float>(i + 1);
  for (int i = 0; i < 4; ++i) features(1, i) = 0.0f;
  if (firn::Status status = affine->run(); !status) return std::printf("%s\n", status.message()), 1;
  const float expected[6] = {3.0f, 4.0f, 9.5f, 0.5f, 0.0f, 2.0f};
  int wrong = 0;
  for (int i = 0; i < 6; ++i) {
    const float actual = affine->scores()(i / 3, i % 3);
    if (actual != expected[i]) std::printf("score %d: %g, expected %g\n", i, actual, expected[i]), ++wrong;
  }
  return wrong;
}
