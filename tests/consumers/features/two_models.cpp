// Two models in one program, built without exceptions in mind; accessors by the names that CMake gave.
#include "affine.h"
#include "doubler.h"

#include <cstdio>
#include <cstring>

static demo::Affine::Arena affine_arena;
static demo::Affine affine(affine_arena);
static Doubler::Arena doubler_arena;
static Doubler doubler(doubler_arena);

int main() {
  for (float& value : doubler.x()) value = 1.5f;
  for (float& value : affine.features()) value = 0.0f;
  if (!doubler.run() || !affine.run()) return 1;
  if (doubler.class_()(4) != 3.0f) return 2;
  if (affine.scores()(1, 2) != 2.0f) return 3;
  if (std::strcmp(Doubler::info().inputs[0].original_name, "serving_default_x:0") != 0) return 4;
  if (doubler.x()(0) != 1.5f) return 5; // inputs survive run()
  std::printf("%zu + %zu bytes of arena\n", demo::Affine::arena_bytes, Doubler::arena_bytes);
  return 0;
}
