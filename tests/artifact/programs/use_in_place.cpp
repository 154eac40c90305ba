// A model whose raw weights need no preparation: prepare() is there as for others, and touches nothing.
#include "expect.h"
#include "in_place.h"

#include <firn/owned.h>
#include <initializer_list>

using vision::InPlace;

static InPlace::Arena arena;
alignas(64) static unsigned char memory[InPlace::weight_bytes + 64];

static int code_of(const InPlace::Weights& weights) {
  return InPlace(arena, weights).status().code();
}

static void prepares_without_memory() {
  static_assert(InPlace::prepared_weight_bytes == 0 && InPlace::weight_bytes == 256);
  static_assert(!std::is_constructible_v<InPlace, InPlace::Arena&>);
  static InPlace::Weights::Memory none;
  for (const InPlace::Weights& weights :
       {InPlace::Weights::prepare(none), InPlace::Weights::prepare(firn::ByteSpan()),
        InPlace::Weights::prepare(memory)}) {
    EXPECT(weights.data() == InPlace::Weights::raw().data() && weights.size() == InPlace::raw_weight_bytes);
    InPlace model(arena, weights);
    EXPECT(model.status() && model.run());
    EXPECT(model.probabilities()(0, 1) == 1.5f);
  }
  for (unsigned char byte : memory) EXPECT(byte == 0);
}

static void raw_weights_can_be_elsewhere() {
  alignas(64) static float raw[65] = {7.0f};
  firn::Owned<InPlace> model(InPlace::Weights::prepare({raw, 256}, {}));
  EXPECT(model->run());
  EXPECT(model->probabilities()(0, 0) == 7.0f);
  EXPECT(InPlace(arena, InPlace::Weights::bound({raw, 256})).run());
  EXPECT(code_of(InPlace::Weights::prepare({raw, 260}, {})) == FIRN_STATUS_WEIGHTS_SIZE);
  EXPECT(code_of(InPlace::Weights::prepare({raw + 1, 256}, {})) == FIRN_STATUS_WEIGHTS_MISALIGNED);
  EXPECT(code_of(InPlace::Weights::prepare(firn::ConstByteSpan(), {})) == FIRN_STATUS_NO_WEIGHTS);
}

int main() {
  prepares_without_memory();
  raw_weights_can_be_elsewhere();
  return failures;
}
