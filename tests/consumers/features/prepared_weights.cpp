// Weights that a program prepares: of a network whose kernels read them as they are they are read in place
// and take no memory; those of others are made once, shared by two instances. The embedded ones give the same
// results.
#include "affine.h"
#include "caches_in_place.h"
#include "prepared.h"
#include "smooth.h"
#include "smooth_prepared.h"

#include <cstring>

static demo::CachesInPlace::Weights::Memory nothing;
static demo::Prepared::Weights::Memory packed;
static demo::SmoothPrepared::Weights::Memory memory;
static demo::CachesInPlace::Arena caches_arena;
static demo::Prepared::Arena arena;
static demo::Affine::Arena affine_arena;
static demo::SmoothPrepared::Arena arenas[2];
static demo::Smooth::Arena smooth_arena;

static int reads_in_place() {
  static_assert(demo::CachesInPlace::raw_weight_bytes > 0 && demo::CachesInPlace::prepared_weight_bytes == 0);
  const demo::CachesInPlace::Weights weights = demo::CachesInPlace::Weights::prepare(nothing);
  if (weights.data() != demo::CachesInPlace::Weights::raw().data()) return 1;
  demo::CachesInPlace caches(caches_arena, weights);
  return caches.run() ? 0 : 2;
}

// Columns of a product are packed from the bytes of the model, which the program may also hold elsewhere.
static int packs() {
  static_assert(demo::Prepared::prepared_weight_bytes >= demo::Prepared::raw_weight_bytes);
  alignas(FIRN_WEIGHT_ALIGNMENT) static unsigned char elsewhere[demo::Prepared::raw_weight_bytes];
  std::memcpy(elsewhere, demo::Prepared::Weights::raw().data(), sizeof elsewhere);
  for (int own = 0; own < 2; ++own) {
    std::memset(packed.bytes, 0xff, sizeof packed.bytes);
    demo::Prepared prepared(arena, own ? demo::Prepared::Weights::prepare(packed)
                                       : demo::Prepared::Weights::prepare(elsewhere, packed.bytes));
    demo::Affine affine(affine_arena);
    for (float& value : prepared.features()) value = 0.5f;
    for (float& value : affine.features()) value = 0.5f;
    if (!prepared.run() || !affine.run()) return 2;
    if (std::memcmp(prepared.scores().data(), affine.scores().data(), 6 * sizeof(float)) != 0) return 3;
  }
  return 0;
}

// Twice the matrix and twice the bias give twice the scores: weights that the model has never had.
static int takes_others() {
  alignas(FIRN_WEIGHT_ALIGNMENT) static unsigned char raw[demo::Prepared::raw_weight_bytes];
  std::memcpy(raw, demo::Prepared::Weights::raw().data(), sizeof raw);
  for (std::size_t at = 0; at + sizeof(float) <= sizeof raw; at += sizeof(float)) {
    float weight;
    std::memcpy(&weight, raw + at, sizeof weight);
    weight *= 2;
    std::memcpy(raw + at, &weight, sizeof weight);
  }
  demo::Prepared prepared(arena, demo::Prepared::Weights::prepare(raw, packed.bytes));
  demo::Affine affine(affine_arena);
  for (float& value : prepared.features()) value = 0.5f;
  for (float& value : affine.features()) value = 0.5f;
  if (!prepared.run() || !affine.run()) return 7;
  const float *twice = prepared.scores().data(), *once = affine.scores().data();
  for (int i = 0; i < 6; ++i)
    if (twice[i] != 2 * once[i]) return 8;
  return 0;
}

// An index that decides which code there is, the first of these weights, is refused if one bit of it differs.
static int refuses_others() {
  alignas(FIRN_WEIGHT_ALIGNMENT) static unsigned char raw[demo::CachesInPlace::raw_weight_bytes];
  std::memcpy(raw, demo::CachesInPlace::Weights::raw().data(), sizeof raw);
  const firn::ByteSpan none;
  if (!demo::CachesInPlace(caches_arena, demo::CachesInPlace::Weights::prepare(raw, none)).status()) return 9;
  raw[0] ^= 1;
  return demo::CachesInPlace(caches_arena, demo::CachesInPlace::Weights::prepare(raw, none)).run().code() ==
                 FIRN_STATUS_WEIGHTS_UNFIT
             ? 0
             : 10;
}

static int tells_copies() {
  alignas(FIRN_WEIGHT_ALIGNMENT) static unsigned char copy[demo::Affine::weight_bytes];
  std::memcpy(copy, demo::Affine::embedded().data(), sizeof copy);
  if (firn::hash_weights(copy) != demo::Affine::weights_hash) return 11;
  copy[sizeof copy - 1] ^= 1;
  return firn::hash_weights(copy) != demo::Affine::weights_hash ? 0 : 12;
}

static int prepares_once() {
  static_assert(demo::SmoothPrepared::prepared_weight_bytes >= demo::SmoothPrepared::raw_weight_bytes);
  const demo::SmoothPrepared::Weights weights = demo::SmoothPrepared::Weights::prepare(memory);
  demo::SmoothPrepared first(arenas[0], weights), second(arenas[1], weights);
  demo::Smooth smooth(smooth_arena);
  for (float& value : first.x()) value = 1.0f;
  for (float& value : second.x()) value = 0.5f;
  for (float& value : smooth.x()) value = 0.5f;
  if (!first.run() || !second.run() || !smooth.run()) return 4;
  if (std::memcmp(second.y().data(), smooth.y().data(), 16 * 32 * 32 * sizeof(float)) != 0) return 5;
  return demo::SmoothPrepared(arenas[0], demo::SmoothPrepared::Weights::prepare({memory.bytes, 1}))
                     .status()
                     .code() == FIRN_STATUS_WEIGHTS_SIZE
             ? 0
             : 6;
}

int main() {
  if (const int code = reads_in_place(); code != 0) return code;
  if (const int code = packs(); code != 0) return code;
  if (const int code = takes_others(); code != 0) return code;
  if (const int code = refuses_others(); code != 0) return code;
  if (const int code = tells_copies(); code != 0) return code;
  return prepares_once();
}
