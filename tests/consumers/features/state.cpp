// State that instances keep between runs: a GRU and an LSTM step by step against the whole sequence, and
// caches that are updated in place.
#include "caches.h"
#include "gru_sequence.h"
#include "gru_step.h"
#include "lstm_sequence.h"
#include "lstm_step.h"

#include <cmath>
#include <cstring>
#include <type_traits>

static bool near(float a, float b) {
  return std::fabs(a - b) <= 1e-5f;
}

template <class Model, class = void> struct has_h_next : std::false_type {};
template <class Model>
struct has_h_next<Model, std::void_t<decltype(std::declval<Model&>().h_next())>> : std::true_type {};

static_assert(demo::GruStep::input_count == 1 && demo::GruStep::output_count == 1);
static_assert(!has_h_next<demo::GruStep>::value && has_h_next<demo::GruSequence>::value);

static void clear_states(demo::GruSequence& model) {
  for (int i = 0; i < 19; ++i) model.h()(0, 0, i) = 0;
}
static void clear_states(demo::LstmSequence& model) {
  for (int i = 0; i < 19; ++i) model.h()(0, 0, i) = model.c()(0, 0, i) = 0;
}

// Runs through the sequence twice, with a reset between.
template <class Sequence, class Step> static int recurrent() {
  static typename Sequence::Arena sequence_arena;
  static typename Step::Arena step_arena;
  Sequence sequence(sequence_arena);
  std::memset(step_arena.bytes, 0xff, sizeof step_arena.bytes); // the model may not read old contents
  Step step(step_arena);
  for (int t = 0; t < 6; ++t)
    for (int i = 0; i < 5; ++i) sequence.x()(t, 0, i) = std::sin(1.0f + 5 * t + i);
  clear_states(sequence);
  if (!sequence.run()) return 1;
  for (int pass = 0; pass < 2; ++pass) {
    for (int t = 0; t < 6; ++t) {
      for (int i = 0; i < 5; ++i) step.x()(0, 0, i) = sequence.x()(t, 0, i);
      if (!step.run()) return 2;
      for (int i = 0; i < 19; ++i)
        if (!near(step.y()(0, 0, 0, i), sequence.y()(t, 0, 0, i))) return 3;
    }
    for (int i = 0; i < 19; ++i)
      if (!near(step.h()(0, 0, i), sequence.h_next()(0, 0, i))) return 4;
    step.reset();
    for (int i = 0; i < 19; ++i)
      if (step.h()(0, 0, i) != 0) return 5;
  }
  return std::strcmp(Step::info().states[0].name, "h") == 0 ? 0 : 6;
}

static int caches() {
  static demo::Caches::Arena arena;
  demo::Caches model(arena);
  for (int run = 1; run <= 7; ++run) {
    for (int b = 0; b < 2; ++b)
      for (int d = 0; d < 3; ++d) model.row()(b, 0, d) = static_cast<float>(100 * b + 10 * d + run);
    model.position()(0, 0) = (run - 1) % 5;
    if (!model.run()) return 11;
    for (int b = 0; b < 2; ++b)
      for (int d = 0; d < 3; ++d) {
        float sum = 0, total = 10;
        for (int past = 1; past <= run; ++past) {
          float value = static_cast<float>(100 * b + 10 * d + past);
          if (past > run - 4) sum += value;
          total += value;
        }
        if (model.window_sum()(b, d) != sum || model.total()(b, 0, d) != total) return 12;
        if (model.masked()(b, (run - 1) % 5, d) != static_cast<float>(100 * b + 10 * d + run)) return 15;
        if (run < 6 && model.masked()(b, 4, d) != (run < 5 ? 0 : static_cast<float>(100 * b + 10 * d + 5)))
          return 16;
        if (model.cache_max()(3 * b + d) != static_cast<float>(100 * b + 10 * d + run)) return 13;
      }
  }
  model.reset();
  return model.total()(1, 0, 2) == 10 && model.cache()(4, 5) == 0 && model.window()(1, 3, 2) == 0 ? 0 : 14;
}

int main() {
  if (int failed = recurrent<demo::GruSequence, demo::GruStep>()) return failed;
  if (int failed = recurrent<demo::LstmSequence, demo::LstmStep>()) return 20 + failed;
  return caches();
}
