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
  return prepares_once();
}
