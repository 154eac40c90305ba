/* The same choice in C. */
#include "raw.h"
#include "several.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char memory[NETS_SEVERAL_ARENA_BYTES], raw_memory[NETS_RAW_ARENA_BYTES];

int main(void) {
  static const char* const names[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
  nets_several best, model;
  nets_raw raw;
  void* weights = aligned_alloc(FIRN_WEIGHT_ALIGNMENT, NETS_RAW_WEIGHTS_SIZE);
  size_t i;
  if (nets_raw_prepare(weights, NETS_RAW_WEIGHTS_SIZE) != FIRN_STATUS_OK) return 1;
  if (nets_several_init(&best, memory, sizeof memory) != FIRN_STATUS_OK) return 2;
  for (i = 0; i < 3; ++i) {
    const firn_status status = nets_several_init_for(&model, memory, sizeof memory, names[i]);
    if ((status & 0xff) == FIRN_STATUS_UNSUPPORTED_CPU) continue;
    if (status != FIRN_STATUS_OK || strcmp(model.cpu, names[i]) != 0) return 3;
    if (nets_several_run(&model) != FIRN_STATUS_OK) return 4;
    if (nets_raw_init_for(&raw, raw_memory, sizeof raw_memory, weights, names[i]) != FIRN_STATUS_OK) return 5;
    if (nets_raw_run(&raw) != FIRN_STATUS_OK) return 6;
  }
  if ((nets_several_init_for(&model, memory, sizeof memory, "x86-64") & 0xff) != FIRN_STATUS_UNSUPPORTED_CPU)
    return 7;
  printf("%s\n", best.cpu);
  free(weights);
  return 0;
}
