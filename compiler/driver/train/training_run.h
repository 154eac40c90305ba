// The epochs of a training.
#pragma once

#include "compiler/driver/train/saved_training.h"
#include "compiler/driver/train/train.h"
#include "compiler/driver/train/training_data.h"

#include <chrono>

namespace firn::driver {

// Examples by their numbers within some data.
struct ExampleSet {
  const TrainingData* data = nullptr;
  std::vector<int64_t> numbers;
};

class TrainingRun {
public:
  // All of it outlives the run. `batch` examples make a step; `validation` may be empty.
  TrainingRun(const TrainOptions& options, Trainer& trainer, ExampleSet examples, ExampleSet validation,
              std::optional<ClassLabels> classes, int64_t batch);

  // Goes on from the position that a file holds; a usage error says what differs from this run's options.
  Result resume(const TrainingPosition& position, const std::string& path);
  Expected<TrainingEnd> run();

private:
  Expected<TrainingEnd> run_epoch();
  Result step(std::span<const int64_t> examples);
  Result end_epoch();
  Result validate(EpochReport& report);
  int64_t count_right(std::span<const int64_t> examples, int64_t& counted) const;
  Result save() const;
  Diagnostic stopped_by(firn_status status) const;
  void report_step(int64_t steps);
  bool is_stopped() const { return options_.stop && *options_.stop; }
  double seconds_since_start() const;

  const TrainOptions& options_;
  Trainer& trainer_;
  const ExampleSet examples_, validation_;
  const std::optional<ClassLabels> classes_;
  const int64_t batch_;
  TrainingPosition position_;
  double smoothed_loss_ = 0, smoothed_weight_ = 0;
  int64_t steps_done_ = 0; // since start_
  std::chrono::steady_clock::time_point start_, epoch_start_;
};

} // namespace firn::driver
