// Examples in the form in which a trainer takes them.
#pragma once

#include "compiler/driver/train/data_arrays.h"
#include "compiler/driver/train/trainer.h"
#include "compiler/training/training.h"

#include <span>

namespace firn::driver {

// Labels that are numbers of classes.
struct ClassLabels {
  size_t prediction = 0;  // the output of the model that has the scores, [N,C] or [N,C,d...]
  int64_t classes = 0;    // C
  int64_t ignored = -100; // the label of what counts for nothing
};

class TrainingData {
public:
  // Checks types and dims of arrays against what the trainer takes, and labels against the classes; integers
  // as labels become what the loss takes. The trainer outlives the data. A usage error names the file.
  static Expected<TrainingData> fit(const DataArrays& arrays, Trainer& trainer,
                                    const std::optional<ClassLabels>& classes);

  int64_t examples() const { return examples_; }
  // Copies examples into the trainer's inputs and sets its dims to theirs. An error if the object is not for
  // so many.
  Result take(std::span<const int64_t> examples) const;
  // An error says why a step does not take so many examples. Leaves the trainer's dims at them.
  Result check_batch(int64_t examples) const;
  // The most examples that a step takes, and whether it takes no other number of them.
  int64_t largest_batch() const;
  bool has_fixed_batch() const;
  // The label of position `at` of an example, [N,d...].
  int64_t label(int64_t example, size_t at) const;
  size_t labels_per_example() const;

private:
  struct Column {
    std::string source;
    LiteralRef values;
    std::byte* memory = nullptr;
    size_t row_bytes = 0;
  };
  TrainingData() = default;
  Trainer* trainer_ = nullptr;
  std::vector<Column> columns_; // by input of the trainer
  const Column* labels() const;
  std::optional<size_t> labels_;
  int64_t examples_ = 0;
};

// The labels of a model that was made with these options; nothing: they are no numbers of classes.
std::optional<ClassLabels> class_labels(const training::TrainingOptions& options, const Trainer& trainer);

} // namespace firn::driver
