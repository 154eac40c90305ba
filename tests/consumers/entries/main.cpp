// @main multiplies a row and adds it to the state `total`; @project_all multiplies several rows, adds the
// total to each, halves it, and counts its own calls. Both run in one arena and have the total in common.
#include "prepared.h"
#include "several.h"
#include "two.h"

#include <cmath>
#include <cstdio>

namespace {

constexpr int kInner = 16, kColumns = 24;

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("%s\n", what);
  ++failures;
}

// Row times the matrix of cosines, as the module makes it.
double projected(const float* row, int column) {
  double sum = 0;
  for (int k = 0; k < kInner; ++k) sum += row[k] * std::cos(static_cast<double>(k));
  (void)column;
  return sum;
}

bool is_near(float actual, double wanted) {
  return std::fabs(actual - wanted) <= 1e-4 * (1 + std::fabs(wanted));
}

template <class Main, class All> void check(const typename Main::Weights& weights) {
  static typename Main::Arena arena;
  Main model(arena, weights);
  All all(arena, weights);
  expect(static_cast<bool>(model.status()) && static_cast<bool>(all.status()), "both are ready");
  double total = 0;
  for (int run = 1; run <= 3; ++run) {
    float* x = model.x().data();
    for (int k = 0; k < kInner; ++k) x[k] = static_cast<float>(run + k) / 8.0f;
    const double y = projected(x, 0);
    expect(static_cast<bool>(model.run()), "@main runs");
    expect(is_near(model.y().data()[5], y), "@main multiplies");
    total += y;

    typename All::Dims dims;
    dims.n = static_cast<std::size_t>(run);
    expect(static_cast<bool>(all.set_dims(dims)), "dims are set");
    float* rows = all.rows().data();
    for (int i = 0; i < run * kInner; ++i) rows[i] = static_cast<float>(i % 7) - 2.0f;
    double wanted[3];
    for (int row = 0; row < run; ++row) wanted[row] = projected(rows + row * kInner, 0) + total;
    expect(static_cast<bool>(all.run()), "@project_all runs");
    for (int row = 0; row < run; ++row)
      expect(is_near(all.projected().data()[row * kColumns + 7], wanted[row]),
             "@project_all sees the total of @main");
    expect(all.count().data()[0] == static_cast<float>(run), "@project_all keeps a count of its own");
    total /= 2;
    expect(is_near(model.total().data()[3], total), "@main sees the total that @project_all halved");
  }
}

} // namespace

int main() {
  check<demo::Two, demo::TwoProjectAll>(demo::Two::embedded());
  check<demo::Several, demo::SeveralProjectAll>(demo::Several::embedded());
  static demo::Prepared::Weights::Memory memory;
  check<demo::Prepared, demo::PreparedProjectAll>(demo::Prepared::Weights::prepare(memory));
  return failures != 0;
}
