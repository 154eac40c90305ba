// Weights that the program prepares once, shared by two instances; the embedded ones give the same scores.
#include "affine.h"
#include "prepared.h"

#include <cstring>

alignas(FIRN_WEIGHT_ALIGNMENT) static unsigned char memory[demo::Prepared::weight_bytes];
static demo::Prepared::Arena arenas[2];
static demo::Affine::Arena affine_arena;

int main() {
  static_assert(demo::Prepared::raw_weight_bytes > 0);
  const demo::Prepared::Weights weights = demo::Prepared::Weights::prepare(memory);
  demo::Prepared first(arenas[0], weights), second(arenas[1], weights);
  demo::Affine affine(affine_arena);
  for (float& value : first.features()) value = 1.0f;
  for (float& value : second.features()) value = 0.5f;
  for (float& value : affine.features()) value = 0.5f;
  if (!first.run() || !second.run() || !affine.run()) return 1;
  if (std::memcmp(second.scores().data(), affine.scores().data(), 6 * sizeof(float)) != 0) return 2;
  if (first.scores()(0, 2) != 2.0f + (-3 + 0 + 3 + 6) / 4.0f) return 3;
  return demo::Prepared(arenas[0], demo::Prepared::Weights::prepare({memory, 1})).status().code() ==
                 FIRN_STATUS_WEIGHTS_SIZE
             ? 0
             : 4;
}
