// Steps, validation and what is saved.
#include "compiler/driver/train/training_run.h"

#include "compiler/driver/train/example_order.h"

#include <algorithm>
#include <cmath>

namespace firn::driver {
namespace {

constexpr double kSmoothing = 0.95; // the share of the losses before a step in the smoothed one

// The batches of examples in their order; the last one is smaller, or left out if it does not fit.
std::vector<std::span<const int64_t>> batches_of(const std::vector<int64_t>& order, int64_t batch,
                                                 bool fits_rest) {
  std::vector<std::span<const int64_t>> batches;
  const auto size = static_cast<size_t>(batch);
  for (size_t begin = 0; begin < order.size(); begin += size) {
    const size_t count = std::min(size, order.size() - begin);
    if (count == size || fits_rest) batches.emplace_back(order.data() + begin, count);
  }
  return batches;
}

bool fits_rest(const ExampleSet& set, int64_t batch) {
  const int64_t rest = static_cast<int64_t>(set.numbers.size()) % batch;
  return rest > 0 && set.data->check_batch(rest);
}

} // namespace

TrainingRun::TrainingRun(const TrainOptions& options, Trainer& trainer, ExampleSet examples,
                         ExampleSet validation, std::optional<ClassLabels> classes, int64_t batch)
    : options_(options), trainer_(trainer), examples_(std::move(examples)),
      validation_(std::move(validation)), classes_(classes), batch_(batch) {
  position_.examples = static_cast<int64_t>(examples_.numbers.size());
  position_.batch = batch;
  position_.seed = options.seed;
  position_.shuffles = options.shuffles;
}

Result TrainingRun::resume(const TrainingPosition& position, const std::string& path) {
  struct Fact {
    const char* what;
    int64_t saved, own;
  };
  for (const Fact& fact :
       {Fact{"examples to train on", position.examples, position_.examples},
        Fact{"as --batch", position.batch, position_.batch}, Fact{"as --seed", position.seed, position_.seed},
        Fact{"as --shuffle", position.shuffles, position_.shuffles}})
    if (fact.saved != fact.own)
      return usage_error("'" + state_path(path) + "' was saved with " + std::to_string(fact.saved) + " " +
                         fact.what + ", this training has " + std::to_string(fact.own));
  if (position.epoch < 0 || position.step < 0)
    return usage_error("'" + state_path(path) + "' is not the state of a training");
  position_ = position;
  return {};
}

Expected<TrainingEnd> TrainingRun::run() {
  start_ = std::chrono::steady_clock::now();
  while (position_.epoch < options_.epochs) {
    auto end = run_epoch();
    if (!end || *end == TrainingEnd::Stopped) return end;
  }
  if (Result saved = save(); !saved) return saved.error();
  return TrainingEnd::Complete;
}

Expected<TrainingEnd> TrainingRun::run_epoch() {
  epoch_start_ = std::chrono::steady_clock::now();
  const std::vector<int64_t> order = options_.shuffles
                                         ? shuffled(examples_.numbers, static_cast<uint64_t>(options_.seed),
                                                    static_cast<uint64_t>(position_.epoch))
                                         : examples_.numbers;
  const auto batches = batches_of(order, batch_, fits_rest(examples_, batch_));
  for (auto at = static_cast<size_t>(position_.step); at < batches.size(); ++at) {
    if (is_stopped()) {
      if (Result saved = save(); !saved) return saved.error();
      return TrainingEnd::Stopped;
    }
    if (Result done = step(batches[at]); !done) return done.error();
    report_step(static_cast<int64_t>(batches.size()));
  }
  if (Result ended = end_epoch(); !ended) return ended.error();
  return TrainingEnd::Complete;
}

// Saves the training so far before it hands an error on.
Result TrainingRun::step(std::span<const int64_t> examples) {
  if (Result taken = examples_.data->take(examples); !taken) return taken;
  const firn_status status = trainer_.step();
  if (status != FIRN_STATUS_OK) {
    if (Result saved = save(); !saved) return saved;
    return stopped_by(status);
  }
  const auto weight = static_cast<double>(examples.size());
  position_.loss_sum += trainer_.loss() * weight;
  position_.loss_weight += weight;
  ++position_.step;
  ++steps_done_;
  smoothed_loss_ = kSmoothing * smoothed_loss_ + (1 - kSmoothing) * trainer_.loss();
  smoothed_weight_ = kSmoothing * smoothed_weight_ + (1 - kSmoothing);
  return {};
}

Diagnostic TrainingRun::stopped_by(firn_status status) const {
  const std::string number = std::to_string(trainer_.step_count() + 1),
                    where = "step " + number + " (epoch " + std::to_string(position_.epoch + 1) + ", step " +
                            std::to_string(position_.step + 1) + " of it)";
  if (status != FIRN_STATUS_NOT_FINITE)
    return usage_error(where + " ended early: " + firn_rt2_status_message(status));
  return model_error("the loss of " + where + " is " + (std::isnan(trainer_.loss()) ? "NaN" : "infinite") +
                     ": wanted a finite one, perhaps by a smaller --learning-rate or clip_norm; '" +
                     options_.save + "' holds what the step before has left");
}

void TrainingRun::report_step(int64_t steps) {
  if (!options_.step) return;
  const int64_t left = steps - position_.step + (options_.epochs - position_.epoch - 1) * steps;
  options_.step({position_.epoch + 1, options_.epochs, position_.step, steps,
                 smoothed_loss_ / smoothed_weight_,
                 seconds_since_start() / static_cast<double>(steps_done_) * static_cast<double>(left)});
}

double TrainingRun::seconds_since_start() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

Result TrainingRun::end_epoch() {
  EpochReport report;
  report.epoch = position_.epoch + 1;
  report.epochs = options_.epochs;
  report.loss = position_.loss_sum / position_.loss_weight;
  if (!validation_.numbers.empty())
    if (Result validated = validate(report); !validated) return validated;
  ++position_.epoch;
  position_.step = 0;
  position_.loss_sum = position_.loss_weight = 0;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - epoch_start_).count();
  if (options_.epoch) options_.epoch(report);
  return position_.epoch < options_.epochs ? save() : Result();
}

Result TrainingRun::validate(EpochReport& report) {
  double sum = 0, weight = 0;
  int64_t right = 0, counted = 0;
  for (std::span<const int64_t> batch :
       batches_of(validation_.numbers, batch_, fits_rest(validation_, batch_))) {
    if (Result taken = validation_.data->take(batch); !taken) return taken;
    const firn_status status = trainer_.evaluate();
    if (status != FIRN_STATUS_OK && status != FIRN_STATUS_NOT_FINITE)
      return usage_error(std::string("a validation ended early: ") + firn_rt2_status_message(status));
    sum += trainer_.loss() * static_cast<double>(batch.size());
    weight += static_cast<double>(batch.size());
    if (classes_ && trainer_.infer() == FIRN_STATUS_OK) right += count_right(batch, counted);
  }
  report.validation_loss = sum / weight;
  if (counted > 0) report.accuracy = static_cast<double>(right) / static_cast<double>(counted);
  return {};
}

// Scores are [N,C,d...], and a label is right that has the first of the largest. Adds the labels that count.
int64_t TrainingRun::count_right(std::span<const int64_t> examples, int64_t& counted) const {
  const Trainer::Slot& scores = trainer_.outputs()[classes_->prediction];
  Literal values(scores.tensor->dtype, trainer_.output_dims(classes_->prediction));
  std::copy_n(scores.memory, values.bytes().size(), values.mutable_bytes().data());
  const auto inner = static_cast<int64_t>(validation_.data->labels_per_example());
  int64_t right = 0;
  for (size_t i = 0; i < examples.size(); ++i)
    for (int64_t at = 0; at < inner; ++at) {
      const int64_t label = validation_.data->label(examples[i], static_cast<size_t>(at));
      if (label == classes_->ignored) continue;
      const int64_t first = static_cast<int64_t>(i) * classes_->classes * inner + at;
      int64_t best = 0;
      for (int64_t c = 1; c < classes_->classes; ++c)
        if (values.get_double(first + c * inner) > values.get_double(first + best * inner)) best = c;
      right += best == label;
      ++counted;
    }
  return right;
}

Result TrainingRun::save() const {
  OutputSet outputs;
  if (Result written = write_training(options_.save, options_.compile.model, trainer_, position_, outputs);
      !written)
    return written;
  return outputs.commit();
}

} // namespace firn::driver
