// Trains models/digits from drawn weights on drawn digits of seven strokes, one picture a step, and counts on
// other pictures how often the network, which reads the parameters that the trainer writes, is right.
#include "digits.h"
#include "drawn_digits.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

constexpr int kPictures = 2000, kTested = 500;

template <class View> void draw_weights(View view, float scale) {
  for (std::size_t i = 0; i < view.size(); ++i) view.data()[i] = scale * (drawn() + drawn() + drawn() - 1.5F);
}

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("%s\n", what);
  ++failures;
}

int count_right(Digits& digits) {
  int right = 0;
  for (int i = 0; i < kTested; ++i) {
    draw(i % 10, digits.image().data());
    expect(static_cast<bool>(digits.run()), "the network runs");
    right += firn::argmax(digits.probabilities()) == static_cast<std::size_t>(i % 10);
  }
  return right;
}

} // namespace

int main() {
  static Digits::Parameters parameters;
  static Digits::Arena arena;
  static Digits::Trainer::Arena trainer_arena;
  Digits digits(arena, parameters);
  Digits::Trainer trainer(trainer_arena, parameters);
  draw_weights(parameters.conv1_weight(), 0.6F);
  draw_weights(parameters.conv2_weight(), 0.2F);
  draw_weights(parameters.dense_weight(), 0.06F);
  std::memset(parameters.conv1_bias().data(), 0, sizeof(float) * 8);
  std::memset(parameters.conv2_bias().data(), 0, sizeof(float) * 16);
  std::memset(parameters.dense_bias().data(), 0, sizeof(float) * 10);
  const int untrained = count_right(digits);
  for (int i = 0; i < kPictures; ++i) {
    trainer.learning_rate() = 0.002F * (1.0F - static_cast<float>(i) / kPictures);
    *trainer.labels().data() = i * 7 % 10;
    draw(i * 7 % 10, trainer.image().data());
    expect(static_cast<bool>(trainer.step()) && std::isfinite(trainer.loss()), "a step is made");
  }
  const int right = count_right(digits);
  std::printf("%d of %d pictures are right, %d were\n", right, kTested, untrained);
  expect(untrained < kTested / 3 && right > kTested * 97 / 100, "the network has learnt");

  draw(3, trainer.image().data());
  *trainer.labels().data() = 3;
  expect(static_cast<bool>(trainer.evaluate()) && trainer.loss() < 0.5F, "a loss is computed without a step");
  expect(trainer.step_count() == kPictures, "steps are counted");
  return failures != 0;
}
