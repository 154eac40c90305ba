// A program as a user writes it: the digits class on a static arena, on the caller's memory, owned, moved and
// rebound.
#include "digits.h"
#include "expect.h"

#include <firn/owned.h>

#include <cstring>
#include <utility>

static vision::Digits::Arena static_arena;

static void fill(vision::Digits& digits, float value) {
  auto image = digits.image();
  for (int y = 0; y < 28; ++y)
    for (int x = 0; x < 28; ++x) image(0, 0, y, x) = value;
}

static void runs_on_a_static_arena() {
  vision::Digits digits(static_arena);
  EXPECT(digits.status());
  fill(digits, 1.0f);
  EXPECT(digits.run());
  EXPECT(digits.probabilities()(0, 0) == 28.5f);
  EXPECT(digits.probabilities()(0, 1) == 29.5f);
  EXPECT(firn::argmax(digits.probabilities()) == 1);
  EXPECT(digits.image()(0, 0, 27, 27) == 1.0f);
}

static void bound_buffers_replace_the_arena() {
  static float image[784], result[10];
  image[0] = 2.0f;
  vision::Digits digits(static_arena);
  fill(digits, 1.0f);
  digits.bind_image(image);
  digits.bind_probabilities(result);
  EXPECT(digits.run());
  EXPECT(result[0] == 2.5f);
  EXPECT(digits.probabilities().data() == result);
  digits.bind_image(nullptr);
  digits.bind_probabilities(nullptr);
  EXPECT(digits.run());
  EXPECT(result[0] == 2.5f);
  EXPECT(digits.probabilities()(0, 0) == 28.5f);
}

static void memory_that_does_not_fit_is_reported() {
  alignas(64) static unsigned char memory[vision::Digits::arena_bytes + 64];
  EXPECT(vision::Digits(firn::ByteSpan(memory)).status());
  EXPECT(vision::Digits(firn::ByteSpan(memory + 3, vision::Digits::arena_bytes + 61)).status());
  vision::Digits small(firn::ByteSpan(memory, vision::Digits::arena_bytes - 1));
  EXPECT(small.status().code() == FIRN_STATUS_ARENA_TOO_SMALL);
  EXPECT(small.run().code() == FIRN_STATUS_ARENA_TOO_SMALL);
  EXPECT(vision::Digits(firn::ByteSpan(memory + 1, vision::Digits::arena_bytes)).status().code() ==
         FIRN_STATUS_ARENA_MISALIGNED);
}

static void moving_leaves_an_uninitialised_model() {
  vision::Digits first(static_arena);
  fill(first, 1.0f);
  vision::Digits second(std::move(first));
  EXPECT(second.run());
  EXPECT(first.run().code() == FIRN_STATUS_NOT_INITIALISED);
  first = std::move(second);
  EXPECT(first.run());
  EXPECT(!second.run());
  static_assert(!std::is_copy_constructible_v<vision::Digits>);
}

static void weights_can_be_elsewhere() {
  alignas(64) static unsigned char copy[vision::Digits::weight_bytes];
  const vision::Digits::Weights embedded = vision::Digits::embedded();
  std::memcpy(copy, embedded.data(), embedded.size());
  const float bias = 100.0f;
  std::memcpy(copy, &bias, sizeof bias);
  const auto weights = vision::Digits::Weights::bound(copy);
  vision::Digits digits(static_arena, weights);
  fill(digits, 0.0f);
  EXPECT(digits.run());
  EXPECT(digits.probabilities()(0, 0) == 100.0f);
  EXPECT(vision::Digits(static_arena, vision::Digits::Weights::bound({copy, 8})).status().code() ==
         FIRN_STATUS_WEIGHTS_SIZE);
  EXPECT(vision::Digits(static_arena, vision::Digits::Weights::bound({copy + 1, 256})).status().code() ==
         FIRN_STATUS_WEIGHTS_MISALIGNED);
}

static void owned_models_bring_their_arena() {
  firn::Owned<vision::Digits> digits;
  EXPECT(digits.status());
  fill(*digits, 1.0f);
  firn::Owned<vision::Digits> other(std::move(digits));
  EXPECT(other->run());
  EXPECT(other->probabilities()(0, 9) == 28.0f);
  EXPECT(!digits->run());
  digits = std::move(other);
  EXPECT(digits->run());
}

static void facts_describe_the_model() {
  const firn::ModelInfo& info = vision::Digits::info();
  EXPECT(info.input_count == 1 && info.output_count == 1 && info.state_count == 0);
  EXPECT(std::strcmp(info.inputs[0].name, "image") == 0);
  EXPECT(info.inputs[0].rank == 4 && info.inputs[0].dims[3] == 28 && info.inputs[0].bytes == 3136);
  EXPECT(info.outputs[0].dtype == firn::ElementType::F32);
  EXPECT(info.arena_bytes == vision::Digits::arena_bytes);
}

int main() {
  runs_on_a_static_arena();
  bound_buffers_replace_the_arena();
  memory_that_does_not_fit_is_reported();
  moving_leaves_an_uninitialised_model();
  weights_can_be_elsewhere();
  owned_models_bring_their_arena();
  facts_describe_the_model();
  return failures;
}
