// Dims that a program sets: one object for a range, for multiples and for a few values; inputs that are
// fixed.
#include "any_batch.h"
#include "column_sums.h"
#include "even_batch.h"
#include "row_sums.h"

#include <cstring>
#include <initializer_list>
#include <type_traits>

template <class Model> struct Guarded {
  unsigned char before[64];
  alignas(64) typename Model::Arena arena;
  unsigned char after[64];
  bool is_intact() const {
    for (int i = 0; i < 64; ++i)
      if (before[i] != 0xee || after[i] != 0xee) return false;
    return true;
  }
};

static Guarded<demo::AnyBatch> any;
static demo::EvenBatch::Arena even_arena;
static demo::RowSums::Arena rows_arena;
static demo::ColumnSums::Arena columns_arena;

// Every batch, in and out of order, whatever the arena held before.
static int any_batch() {
  std::memset(&any, 0xee, sizeof any);
  demo::AnyBatch model(any.arena);
  static_assert(std::is_same_v<decltype(model.x()), firn::View<float, firn::dynamic, 3>>);
  if (model.x().extent(0) != 5 || demo::AnyBatch::info().inputs[0].dims[0] != 5) return 1;
  for (std::ptrdiff_t batch : {5, 1, 3, 2, 4, 5}) {
    std::memset(any.arena.bytes, 0xee, sizeof any.arena.bytes);
    if (!model.set_batch(batch) || model.x().size() != static_cast<std::size_t>(3 * batch)) return 2;
    float value = 0;
    for (float& x : model.x()) x = ++value;
    if (!model.run() || model.y().size() != model.x().size()) return 3;
    value = 0;
    for (float y : model.y())
      if (y != -++value) return 4;
  }
  for (std::ptrdiff_t batch : {0, 6, -1})
    if (model.set_batch(batch).code() != FIRN_STATUS_OUT_OF_RANGE || model.dims().batch != 5) return 5;
  float x[6] = {1, 2, 3, 4, 5, 6}, y[9] = {};
  model.bind_x(x);
  model.bind_y(y);
  if (!model.set_batch(2) || !model.run() || y[5] != -6 || y[6] != 0) return 6;
  return any.is_intact() ? 0 : 7;
}

static int even_batch() {
  demo::EvenBatch model(even_arena);
  if (model.set_batch(3) || model.set_batch(8) || !model.set_batch(4)) return 10;
  float value = 0;
  for (float& x : model.x()) x = ++value;
  if (!model.run() || model.y().extent(0) != 4 || model.y()(3, 2) != -12) return 11;
  return 0;
}

static int fixed_axes() {
  demo::RowSums rows(rows_arena);
  static_assert(demo::RowSums::input_count == 1);
  if (rows.set_rows(5) || !rows.set_rows(4)) return 20;
  float value = 0;
  for (float& x : rows.x()) x = ++value;
  if (!rows.run() || rows.y().rank != 1 || rows.y().extent(0) != 4 || rows.y()(3) != 33) return 21;
  demo::ColumnSums columns(columns_arena);
  std::memcpy(columns.x().data(), rows.x().data(), columns.x().size_bytes());
  if (!columns.run() || columns.y().size() != 3 || columns.y()(2) != 30) return 22;
  return 0;
}

int main() {
  if (int failed = any_batch()) return failed;
  if (int failed = even_batch()) return failed;
  return fixed_axes();
}
