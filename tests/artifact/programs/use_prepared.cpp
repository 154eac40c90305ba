// A model whose weights are prepared before the first instance: from the object, from the caller's raw
// weights, and what is said of memory that does not fit.
#include "expect.h"
#include "prepared.h"

#include <firn/owned.h>
#include <firn/tfcompile.h>

#include <cstring>

using vision::Prepared;

static Prepared::Arena arena;
alignas(64) static unsigned char memory[Prepared::weight_bytes + 64];

static firn::ByteSpan room(std::size_t offset = 0, std::size_t bytes = Prepared::weight_bytes) {
  return firn::ByteSpan(memory + offset, bytes);
}

static int code_of(const Prepared::Weights& weights) {
  return Prepared(arena, weights).status().code();
}

static void prepares_what_the_object_embeds() {
  static_assert(Prepared::weight_bytes == 256 && Prepared::raw_weight_bytes == 128);
  static_assert(!std::is_constructible_v<Prepared, Prepared::Arena&>);
  EXPECT(Prepared::Weights::raw().size() == Prepared::raw_weight_bytes);
  const Prepared::Weights weights = Prepared::Weights::prepare(room());
  EXPECT(weights.data() == memory && weights.size() == Prepared::weight_bytes);
  Prepared model(arena, weights);
  EXPECT(model.status() && model.run());
  EXPECT(model.probabilities()(0, 1) == 3.0f);
  EXPECT(Prepared(arena, Prepared::Weights::bound(room())).run());
}

static void raw_weights_can_be_elsewhere() {
  alignas(64) static float raw[32] = {7.0f};
  Prepared model(arena, Prepared::Weights::prepare(raw, room()));
  EXPECT(model.run());
  EXPECT(model.probabilities()(0, 0) == 14.0f);
}

static void memory_that_does_not_fit_is_reported() {
  EXPECT(code_of(Prepared::Weights::prepare(room(0, 255))) == FIRN_STATUS_WEIGHTS_SIZE);
  EXPECT(code_of(Prepared::Weights::prepare(room(0, 257))) == FIRN_STATUS_WEIGHTS_SIZE);
  EXPECT(code_of(Prepared::Weights::prepare(room(4))) == FIRN_STATUS_WEIGHTS_MISALIGNED);
  EXPECT(code_of(Prepared::Weights::prepare(firn::ByteSpan())) == FIRN_STATUS_NO_WEIGHTS);
  alignas(64) static unsigned char raw[256];
  const auto prepared_from = [](std::size_t offset, std::size_t bytes) {
    return code_of(Prepared::Weights::prepare(firn::ConstByteSpan(raw + offset, bytes), room()));
  };
  EXPECT(prepared_from(0, 128) == FIRN_STATUS_OK);
  // Prepared weights given for raw ones, whose size would do for the result.
  EXPECT(prepared_from(0, 256) == FIRN_STATUS_WEIGHTS_SIZE);
  EXPECT(prepared_from(1, 128) == FIRN_STATUS_WEIGHTS_MISALIGNED);
  EXPECT(code_of(Prepared::Weights::prepare(firn::ConstByteSpan(), room())) == FIRN_STATUS_NO_WEIGHTS);
}

static void owners_take_prepared_weights() {
  const Prepared::Weights weights = Prepared::Weights::prepare(room());
  firn::Owned<Prepared> owned(weights);
  EXPECT(owned->run());
  EXPECT(owned->probabilities()(0, 0) == 1.0f);
  firn::TfCompiled<Prepared> compiled(weights);
  EXPECT(compiled.Run());
  EXPECT(compiled.result0_data()[1] == 3.0f);
}

int main() {
  prepares_what_the_object_embeds();
  raw_weights_can_be_elsewhere();
  memory_that_does_not_fit_is_reported();
  owners_take_prepared_weights();
  return failures;
}
