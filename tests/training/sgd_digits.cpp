// Trains models/digits from drawn weights with batches of 8, on any CPU, without an operating system, too.
// Prints the bits of each loss, and how many of other pictures are right before and in the end. Memory is
// that of the trainer and of the parameters: the network runs in the trainer's arena while no step is made.
#include "digits.h"
#include "drawn_digits.h"

extern "C" void print(const char* text); // startup.c on cores without an operating system

#ifndef __arm__
#include <cstdio>
extern "C" void print(const char* text) {
  std::fputs(text, stdout);
}
#endif

namespace {

constexpr int kSteps = STEPS, kTested = TESTED, kBatch = 8;

Digits::Parameters parameters;
alignas(Digits::Trainer::arena_alignment) unsigned char arena[Digits::Trainer::arena_bytes];
static_assert(Digits::arena_bytes <= Digits::Trainer::arena_bytes);

void print_number(const char* before, std::uint32_t value, unsigned base, const char* after) {
  char text[12], *at = text + 11;
  *at = 0;
  do *--at = "0123456789abcdef"[value % base];
  while ((value /= base) != 0);
  print(before);
  print(at);
  print(after);
}

// Sums of three numbers one after the other, as the order of a sum's operands is the compiler's choice.
template <class View> void draw_weights(View view, float scale) {
  for (std::size_t i = 0; i < view.size(); ++i) {
    float sum = -1.5F;
    for (int k = 0; k < 3; ++k) sum += drawn();
    view.data()[i] = scale * sum;
  }
}

template <class View> void clear(View view) {
  for (std::size_t i = 0; i < view.size(); ++i) view.data()[i] = 0;
}

int stop(const firn::Status& status) {
  print(status.message());
  print("\n");
  return 1;
}

int count_right() {
  int right = 0;
  Digits digits(firn::ByteSpan(arena, sizeof arena), parameters);
  if (firn::Status set = digits.set_batch(1); !set) return stop(set), -1;
  for (int i = 0; i < kTested; ++i) {
    draw(i % 10, digits.image().data());
    if (firn::Status done = digits.run(); !done) return stop(done), -1;
    const float* scores = digits.probabilities().data();
    int best = 0;
    for (int k = 1; k < 10; ++k)
      if (scores[k] > scores[best]) best = k;
    right += best == i % 10;
  }
  return right;
}

int train() {
  Digits::Trainer trainer(firn::ByteSpan(arena, sizeof arena), parameters);
  if (firn::Status set = trainer.set_batch(kBatch); !set) return stop(set);
  for (int i = 0; i < kSteps; ++i) {
    trainer.learning_rate() = 0.1F * (1.0F - static_cast<float>(i) / kSteps);
    for (int k = 0; k < kBatch; ++k) {
      const int digit = (i * kBatch + k) * 7 % 10;
      trainer.labels().data()[k] = digit;
      draw(digit, trainer.image().data() + k * kSize * kSize);
    }
    if (firn::Status done = trainer.step(); !done) return stop(done);
    const float loss = trainer.loss();
    std::uint32_t bits = 0;
    std::memcpy(&bits, &loss, sizeof bits);
    print_number("loss ", bits, 16, "\n");
  }
  return 0;
}

} // namespace

int main() {
  draw_weights(parameters.conv1_weight(), 0.6F);
  draw_weights(parameters.conv2_weight(), 0.2F);
  draw_weights(parameters.dense_weight(), 0.06F);
  clear(parameters.conv1_bias());
  clear(parameters.conv2_bias());
  clear(parameters.dense_bias());
  print_number("right ", static_cast<std::uint32_t>(count_right()), 10, " before\n");
  if (train() != 0) return 1;
  print_number("right ", static_cast<std::uint32_t>(count_right()), 10, " after\n");
  return 0;
}
