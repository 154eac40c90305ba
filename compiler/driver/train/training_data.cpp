// Checks of arrays, and batches of their rows.
#include "compiler/driver/train/training_data.h"

#include <algorithm>
#include <cstring>

namespace firn::driver {
namespace {

// "f32[examples,1,28,28]".
std::string wanted_text(const artifact::TensorDescription& tensor) {
  std::string text = std::string(dtype_name(tensor.dtype)) + "[examples";
  for (size_t axis = 1; axis < tensor.dims.size(); ++axis) text += "," + tensor.dims[axis].to_string();
  return text + "]";
}

bool is_bytewise(DType dtype) {
  return dtype != DType::String && !is_sub_byte(dtype);
}

bool fits(const Literal& values, const artifact::TensorDescription& wanted) {
  bool fits = values.dtype() == wanted.dtype && values.dims().size() == wanted.dims.size() &&
              is_bytewise(wanted.dtype);
  for (size_t axis = 1; fits && axis < wanted.dims.size(); ++axis)
    fits = !wanted.dims[axis].is_constant() || wanted.dims[axis].value() == values.dims()[axis];
  return fits;
}

// Integers as the type that the loss takes labels in; others as they are.
LiteralRef as_labels(const LiteralRef& values, DType wanted) {
  const bool is_number = is_integer(values->dtype()) || values->dtype() == DType::Bool;
  if (values->dtype() == wanted || !is_number) return values;
  auto converted = std::make_shared<Literal>(wanted, values->dims());
  for (int64_t i = 0; i < values->num_elements(); ++i) {
    if (is_float(wanted))
      converted->set_double(i, static_cast<double>(values->get_int(i)));
    else
      converted->set_int(i, values->get_int(i));
  }
  return converted;
}

Result check_labels(const DataArray& array, const Literal& values, const ClassLabels& classes) {
  const int64_t per_example = values.num_elements() / values.dims()[0];
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const int64_t label = values.get_int(i);
    if ((label >= 0 && label < classes.classes) || label == classes.ignored) continue;
    return usage_error("'" + array.source + "': the label of example " + std::to_string(i / per_example) +
                       " is " + std::to_string(label) + ", the model has " + std::to_string(classes.classes) +
                       " classes: wanted 0 to " + std::to_string(classes.classes - 1));
  }
  return {};
}

} // namespace

Expected<TrainingData> TrainingData::fit(const DataArrays& arrays, Trainer& trainer,
                                         const std::optional<ClassLabels>& classes) {
  TrainingData data;
  data.trainer_ = &trainer;
  data.examples_ = arrays.examples;
  for (const Trainer::Slot& input : trainer.inputs()) {
    const artifact::TensorDescription& wanted = *input.tensor;
    const bool is_label = trainer.labels() == &input;
    auto found = arrays.by_name.find(wanted.name);
    if (found == arrays.by_name.end())
      return usage_error("'" + arrays.path + "' has nothing for " + (is_label ? "the labels, '" : "input '") +
                         wanted.name + "' (" + wanted_text(wanted) + ")");
    const DataArray& array = found->second;
    LiteralRef values = is_label ? as_labels(array.values, wanted.dtype) : array.values;
    if (!fits(*values, wanted))
      return usage_error("'" + array.source + "' is " + array.values->type().to_string() + ", " +
                         (is_label ? "the loss" : "input '" + wanted.name + "'") + " wants " +
                         wanted_text(wanted));
    if (is_label && classes)
      if (Result known = check_labels(array, *values, *classes); !known) return known.error();
    if (is_label) data.labels_ = data.columns_.size();
    const size_t row = values->bytes().size() / static_cast<size_t>(values->dims()[0]);
    data.columns_.push_back({array.source, std::move(values), input.memory, row});
  }
  return data;
}

Result TrainingData::check_batch(int64_t examples) const {
  std::vector<std::vector<int64_t>> dims;
  for (size_t i = 0; i < columns_.size(); ++i) {
    dims.push_back(columns_[i].values->dims());
    const IntExpr& first = trainer_->inputs()[i].tensor->dims[0];
    if (first.is_constant() && first.value() != examples)
      return usage_error("'" + columns_[i].source + "': a step takes " + first.to_string() +
                         " examples, found " + std::to_string(examples));
    dims.back()[0] = examples;
  }
  return trainer_->fit_dims(dims);
}

int64_t TrainingData::largest_batch() const {
  int64_t largest = INT64_MAX;
  for (const Trainer::Slot& input : trainer_->inputs())
    largest = std::min(largest, input.tensor->dims_at_bound()[0]);
  return largest;
}

bool TrainingData::has_fixed_batch() const {
  const auto& inputs = trainer_->inputs();
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const Trainer::Slot& input) { return input.tensor->dims[0].is_constant(); });
}

Result TrainingData::take(std::span<const int64_t> examples) const {
  if (Result fits = check_batch(static_cast<int64_t>(examples.size())); !fits) return fits;
  for (const Column& column : columns_) {
    const std::byte* rows = column.values->bytes().data();
    for (size_t i = 0; i < examples.size(); ++i)
      std::memcpy(column.memory + i * column.row_bytes,
                  rows + static_cast<size_t>(examples[i]) * column.row_bytes, column.row_bytes);
  }
  return {};
}

const TrainingData::Column* TrainingData::labels() const {
  return labels_ ? &columns_[*labels_] : nullptr;
}

size_t TrainingData::labels_per_example() const {
  return labels() ? labels()->row_bytes / sizeof(int64_t) : 0;
}

int64_t TrainingData::label(int64_t example, size_t at) const {
  return labels()->values->data<int64_t>()[static_cast<size_t>(example) * labels_per_example() + at];
}

std::optional<ClassLabels> class_labels(const training::TrainingOptions& options, const Trainer& trainer) {
  const Trainer::Slot* labels = trainer.labels();
  if (!labels || labels->tensor->dtype != DType::I64) return std::nullopt;
  ClassLabels classes;
  const auto& outputs = trainer.outputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].tensor->name == options.prediction) classes.prediction = i;
  const artifact::TensorDescription& scores = *outputs[classes.prediction].tensor;
  if (scores.dims.size() != labels->tensor->dims.size() + 1 || !scores.dims[1].is_constant())
    return std::nullopt;
  classes.classes = scores.dims[1].value();
  if (auto ignored = options.numbers.find("ignore_index"); ignored != options.numbers.end())
    classes.ignored = static_cast<int64_t>(ignored->second);
  return classes;
}

} // namespace firn::driver
