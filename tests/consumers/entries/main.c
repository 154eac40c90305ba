/* The C functions of both entry functions, over one arena. */
#include "prepared.h"
#include "two.h"

#include <math.h>
#include <stdio.h>

static int failures = 0;

static void expect(bool holds, const char* what) {
  if (holds) return;
  printf("%s\n", what);
  ++failures;
}

static double projected(const float* row) {
  double sum = 0;
  int k;
  for (k = 0; k < 16; ++k) sum += row[k] * cos((double)k);
  return sum;
}

static bool is_near(double actual, double wanted) {
  return fabs(actual - wanted) <= 1e-4 * (1 + fabs(wanted));
}

static void check_embedded(void) {
  static unsigned char memory[DEMO_TWO_ARENA_BYTES];
  demo_two model;
  demo_two_project_all all;
  double y, total;
  int k;
  expect(demo_two_init(&model, memory, sizeof memory) == FIRN_STATUS_OK, "@main is ready");
  expect(demo_two_project_all_init(&all, memory, sizeof memory) == FIRN_STATUS_OK, "@project_all is ready");
  for (k = 0; k < 16; ++k) demo_two_x(&model)[k] = (float)k / 4.0f;
  y = projected(demo_two_x(&model));
  expect(demo_two_run(&model) == FIRN_STATUS_OK, "@main runs");
  expect(is_near(demo_two_y(&model)[2], y), "@main multiplies");
  for (k = 0; k < 16; ++k) demo_two_project_all_rows(&all)[k] = 1.0f - (float)k;
  total = projected(demo_two_project_all_rows(&all)) + y;
  expect(demo_two_project_all_set_n(&all, 1) == FIRN_STATUS_OK, "a dim is set");
  expect(demo_two_project_all_run(&all) == FIRN_STATUS_OK, "@project_all runs");
  expect(is_near(demo_two_project_all_projected(&all)[9], total), "@project_all sees the total of @main");
  expect(is_near(demo_two_total(&model)[9], y / 2), "@main sees the total that @project_all halved");
}

static void check_prepared(void) {
  static union {
    unsigned char bytes[DEMO_PREPARED_WEIGHTS_SIZE + FIRN_WEIGHT_ALIGNMENT];
    double aligns;
  } raw;
  static unsigned char memory[DEMO_PREPARED_ARENA_BYTES];
  unsigned char* weights = raw.bytes;
  demo_prepared model;
  demo_prepared_project_all all;
  while ((uintptr_t)weights % FIRN_WEIGHT_ALIGNMENT != 0) ++weights;
  expect(demo_prepared_prepare(weights, DEMO_PREPARED_WEIGHTS_SIZE) == FIRN_STATUS_OK,
         "weights are prepared");
  expect(demo_prepared_init(&model, memory, sizeof memory, weights) == FIRN_STATUS_OK, "@main is ready");
  expect(demo_prepared_project_all_init(&all, memory, sizeof memory, weights) == FIRN_STATUS_OK,
         "@project_all is ready");
  expect(demo_prepared_run(&model) == FIRN_STATUS_OK, "@main runs on prepared weights");
  expect(demo_prepared_project_all_run(&all) == FIRN_STATUS_OK, "@project_all runs on prepared weights");
}

int main(void) {
  check_embedded();
  check_prepared();
  return failures != 0;
}
