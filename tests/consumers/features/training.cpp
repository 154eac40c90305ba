// A model whose last layer is trained: the loss of one picture falls from step to step, the class for
// inference reads the same parameters, and a file brings the values of the object back. Gradients that a
// step keeps point away from where the loss falls.
#include "trained.h"

#include <cstdio>
#include <vector>

int main() {
  static demo::Trained::Parameters parameters;
  static demo::Trained::Arena arena;
  static demo::Trained::Trainer::Arena trainer_arena;
  parameters.reset();
  std::vector<unsigned char> file(demo::Trained::Parameters::saved_bytes);
  demo::Trained model(arena, parameters);
  demo::Trained::Trainer trainer(trainer_arena, parameters);
  if (!model.status() || !trainer.status() || !parameters.save(file)) return 1;
  for (std::size_t i = 0; i < model.image().size(); ++i)
    trainer.image().data()[i] = model.image().data()[i] = static_cast<float>(i % 7) / 7;
  *trainer.labels().data() = 4;
  if (!trainer.evaluate() || !model.run()) return 2;
  const float before = trainer.loss(), first = model.probabilities().data()[4];
  trainer.learning_rate() = 0.05F;
  if (!trainer.step()) return 3;
  // The right class wants more of its bias, all others less: probabilities add up to 1.
  float sum = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    const float slope = trainer.gradient_dense_bias().data()[i];
    sum += slope;
    if ((slope < 0) != (i == 4)) return 7;
  }
  if (sum > 1e-5F || sum < -1e-5F || trainer.gradient_dense_weight().size() != 7840) return 8;
  for (int i = 1; i < 20; ++i)
    if (!trainer.step()) return 3;
  if (!trainer.evaluate() || !model.run()) return 4;
  const float after = trainer.loss(), last = model.probabilities().data()[4];
  std::printf("loss %g, was %g; probability %g, was %g\n", after, before, last, first);
  if (!(after < before / 2) || !(last > first) || trainer.step_count() != 20) return 5;
  if (!parameters.load(file) || !model.run() || model.probabilities().data()[4] != first) return 6;
  static_assert(demo::Trained::parameter_bytes < 10 * 784 * 4 + 200, "the last layer alone is trained");
  return 0;
}
