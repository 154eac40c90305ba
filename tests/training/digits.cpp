// Trains models/digits from drawn weights on drawn digits of seven strokes, one picture a step, and counts on
// other pictures how often the network, whose @main reads the weights that @step writes, is right.
#include "digits.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr int kSize = 28, kPictures = 2000, kTested = 500;

std::uint32_t seed = 1;

float drawn() { // from 0 to 1
  seed = seed * 1664525U + 1013904223U;
  return static_cast<float>(seed >> 8) / 16777216.0F;
}

// The strokes of a digit, a bit each: top, upper left, upper right, middle, lower left, lower right, bottom.
constexpr unsigned kStrokes[10] = {0x77, 0x24, 0x5d, 0x6d, 0x2e, 0x6b, 0x7b, 0x25, 0x7f, 0x6f};

// Rectangles of strokes in a box of 12 x 20: column, row, width, height.
constexpr int kBoxes[7][4] = {{0, 0, 12, 2},  {0, 0, 2, 10},   {10, 0, 2, 10}, {0, 9, 12, 2},
                              {0, 10, 2, 10}, {10, 10, 2, 10}, {0, 18, 12, 2}};

void draw(int digit, float* picture) {
  for (int i = 0; i < kSize * kSize; ++i) picture[i] = 0.2F * drawn();
  const int left = 4 + static_cast<int>(8 * drawn()), top = 1 + static_cast<int>(6 * drawn());
  const float ink = 0.7F + 0.3F * drawn();
  for (int stroke = 0; stroke < 7; ++stroke) {
    if (!(kStrokes[digit] >> stroke & 1U)) continue;
    const int* box = kBoxes[stroke];
    for (int y = top + box[1]; y < top + box[1] + box[3]; ++y)
      for (int x = left + box[0]; x < left + box[0] + box[2]; ++x) picture[y * kSize + x] = ink;
  }
}

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
    expect(static_cast<bool>(digits.run()), "@main runs");
    const float* scores = digits.probabilities().data();
    int best = 0;
    for (int k = 1; k < 10; ++k)
      if (scores[k] > scores[best]) best = k;
    right += best == i % 10;
  }
  return right;
}

} // namespace

int main() {
  static Digits::Arena arena;
  Digits digits(arena);
  DigitsEvaluate evaluation(arena);
  DigitsStep training(arena);
  draw_weights(training.conv1_weight(), 0.6F);
  draw_weights(training.conv2_weight(), 0.2F);
  draw_weights(training.dense_weight(), 0.06F);
  std::memset(training.conv1_bias().data(), 0, sizeof(float) * 8);
  std::memset(training.conv2_bias().data(), 0, sizeof(float) * 16);
  std::memset(training.dense_bias().data(), 0, sizeof(float) * 10);
  const int untrained = count_right(digits);
  for (int i = 0; i < kPictures; ++i) {
    *training.learning_rate().data() = 0.002F * (1.0F - static_cast<float>(i) / kPictures);
    *training.labels().data() = i * 7 % 10;
    draw(i * 7 % 10, training.image().data());
    expect(static_cast<bool>(training.run()) && std::isfinite(*training.loss().data()), "@step runs");
  }
  const int right = count_right(digits);
  std::printf("%d of %d pictures are right, %d were\n", right, kTested, untrained);
  expect(untrained < kTested / 3 && right > kTested * 97 / 100, "the network has learnt");

  draw(3, training.image().data());
  const float weight = *training.dense_weight().data();
  training.image().data()[5] = NAN;
  expect(static_cast<bool>(training.run()) && std::isnan(*training.loss().data()),
         "the loss of no number is none");
  expect(*training.dense_weight().data() == weight && *training.step_count().data() == kPictures,
         "a loss that is no number changes nothing");
  draw(3, evaluation.image().data());
  *evaluation.labels().data() = 3;
  expect(static_cast<bool>(evaluation.run()) && *evaluation.loss().data() < 0.5F,
         "@evaluate sees the weights");
  return failures != 0;
}
