// From files to a trained model: data, code, epochs.
#include "compiler/driver/train/train.h"

#include "compiler/driver/given_inputs.h"
#include "compiler/driver/guarded.h"
#include "compiler/driver/import_model.h"
#include "compiler/driver/runs_here.h"
#include "compiler/driver/train/example_order.h"
#include "compiler/driver/train/training_run.h"
#include "compiler/driver/training_words.h"
#include "compiler/support/words.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace firn::driver {
namespace {

constexpr int64_t kUsualBatch = 32;

// --validation: a fraction, or nothing if it names data.
Expected<std::optional<double>> fraction_of(const std::string& validation) {
  char* end = nullptr;
  const double fraction = std::strtod(validation.c_str(), &end);
  if (validation.empty() || *end != '\0') return std::optional<double>();
  if (fraction > 0 && fraction < 1) return std::optional(fraction);
  return usage_error("--validation '" + validation + "' wants a fraction between 0 and 1, or a folder");
}

// Checks that the files of --save can be written, before the work. Leaves none.
Result check_save(const TrainOptions& options, bool is_onnx) {
  if (Result known = check_tensor_path(options.save); !known) return known;
  if (options.save.ends_with(".onnx") && !is_onnx)
    return usage_error("--save '" + options.save +
                       "': the model is a graph in text form, wanted .npz or "
                       ".safetensors");
  OutputSet probe;
  for (const std::string& path : {options.save, state_path(options.save)})
    if (auto staged = probe.stage(path); !staged) return staged.error();
  return {};
}

class Training {
public:
  explicit Training(const TrainOptions& options) : options_(options), compile_(options.compile) {}

  std::optional<TrainingEnd> run(DiagnosticList& diagnostics) {
    auto failed = [&](const Diagnostic& error) { return diagnostics.add(error), std::nullopt; };
    if (Result read = read_inputs(); !read) return failed(read.error());
    if (Result chosen = choose_training(); !chosen) return failed(chosen.error());
    choose_dims();
    compile_.stop = options_.stop;
    auto compilation = compile_in_memory(compile_, diagnostics);
    if (!compilation) return std::nullopt;
    for (const std::string& warning : compilation->facts.warnings)
      if (options_.warn) options_.warn(warning);
    auto executable = LoadedExecutable::load(*compilation, memory_);
    if (!executable) return failed(executable.error());
    executable_ = std::move(*executable);
    auto end = train();
    if (!end) return failed(end.error());
    return *end;
  }

private:
  // Data and facts, and what is wrong with the options beside them.
  Result read_inputs() {
    auto model = open_model(compile_);
    if (!model) return model.error();
    is_onnx_ = !is_graph_text(compile_, *model->file);
    if (Result savable = check_save(options_, is_onnx_); !savable) return savable;
    if (Result runs = check_runs_here(compile_); !runs) return runs;
    auto facts = inspect_model(compile_);
    if (!facts) return facts.error();
    facts_ = std::move(*facts);
    auto fraction = fraction_of(options_.validation);
    if (!fraction) return fraction.error();
    fraction_ = *fraction;
    auto arrays = read_data_arrays(options_.data, facts_, compile_.import);
    if (!arrays) return arrays.error();
    arrays_ = std::move(*arrays);
    if (options_.validation.empty() || fraction_) return {};
    auto held_back = read_data_arrays(options_.validation, facts_, compile_.import);
    if (!held_back) return held_back.error();
    held_back_ = std::move(*held_back);
    return {};
  }

  // Loss, optimizer and learning rate where the options leave them open.
  Result choose_training() {
    if (!compile_.training) compile_.training.emplace();
    training::TrainingOptions& training = *compile_.training;
    const auto labels = arrays_.by_name.find(kLabels);
    std::string reason = "as asked for";
    if (training.loss.empty() && training.loss_output.empty()) {
      if (labels == arrays_.by_name.end())
        return usage_error("'" + options_.data + "' has no labels, and --train names no loss: wanted " +
                           kLabels + ".npy, or --train loss=output:NAME for a loss that the model computes");
      const bool are_classes = !is_float(labels->second.values->dtype());
      training.loss = are_classes ? "softmax_cross_entropy" : "mse";
      reason = are_classes ? "labels are integers" : "labels are floats";
    }
    if (training.optimizer.empty()) training.optimizer = "adam";
    auto rate = options_.learning_rate ? options_.learning_rate : usual_learning_rate(training.optimizer);
    if (!rate && training.functions)
      return usage_error("there is no usual learning rate for the optimizer '" + training.optimizer +
                         "': wanted --learning-rate");
    learning_rate_ = rate.value_or(0); // an optimizer that does not exist is refused by name
    char number[32];
    std::snprintf(number, sizeof number, "%g", learning_rate_);
    note("loss " + (training.loss.empty() ? training.loss_output : training.loss) + " (" + reason +
         "), optimizer " + training.optimizer + ", learning rate " + number);
    return {};
  }

  // Dims that the options leave open are those of the data. The batch varies if some batches are smaller.
  void choose_dims() {
    if (!is_onnx_) return;
    const auto examples = static_cast<int64_t>(split().trained.size());
    const int64_t batch = std::min(options_.batch.value_or(kUsualBatch), std::max<int64_t>(examples, 1));
    bool varies = examples % batch != 0 ||
                  (!held_back_.by_name.empty() && held_back_.examples % batch != 0) ||
                  (fraction_ && static_cast<int64_t>(split().held_back.size()) % batch != 0);
    GivenInputs given;
    for (const onnx::ValueFacts& input : facts_.inputs) {
      auto array = arrays_.by_name.find(input.name);
      if (array == arrays_.by_name.end()) continue;
      std::vector<int64_t> dims = array->second.values->dims();
      const bool is_open = !input.dims.empty() && !input.dims[0].empty();
      for (size_t axis = 0; axis < dims.size(); ++axis)
        if (auto fixed = fixed_extent(input, axis)) dims[axis] = *fixed;
      auto bound = is_open ? compile_.import.dims.find(input.dims[0]) : compile_.import.dims.end();
      const bool is_bound = bound != compile_.import.dims.end();
      if (is_bound)
        dims[0] = bound->second;
      else if (!fixed_extent(input, 0))
        dims[0] = batch;
      if (is_open && varies && !is_bound)
        compile_.import.ranges.emplace(input.dims[0], onnx::DimRange{1, batch});
      given[input.name] = std::make_shared<Literal>(array->second.values->dtype(), dims);
    }
    bind_inputs(given, facts_, compile_.import);
  }

  // The extent of "f32[n,8,3]" at an axis, if it is a number.
  static std::optional<int64_t> fixed_extent(const onnx::ValueFacts& input, size_t axis) {
    const size_t open = input.type.find('[');
    if (open == std::string::npos) return std::nullopt;
    const std::vector<std::string> extents = firn::split(input.type.substr(open + 1), ',');
    const int64_t extent = axis < extents.size() ? std::atoll(extents[axis].c_str()) : 0;
    return extent > 0 ? std::optional(extent) : std::nullopt;
  }

  Split split() const {
    if (fraction_) return split_examples(arrays_.examples, *fraction_, static_cast<uint64_t>(options_.seed));
    Split all;
    all.trained.resize(static_cast<size_t>(arrays_.examples));
    std::iota(all.trained.begin(), all.trained.end(), 0);
    all.held_back.resize(static_cast<size_t>(held_back_.examples));
    std::iota(all.held_back.begin(), all.held_back.end(), 0);
    return all;
  }

  // The examples of a step: as many as the object takes, or fewer if the options or the data say so.
  Expected<int64_t> choose_batch(const TrainingData& data, int64_t examples) const {
    const int64_t largest = data.largest_batch();
    const int64_t batch = options_.batch.value_or(std::min(largest, std::min(kUsualBatch, examples)));
    const bool is_fixed = data.has_fixed_batch();
    if (is_fixed && options_.batch && batch != largest)
      return usage_error("--batch " + std::to_string(batch) + ": the model takes " + std::to_string(largest) +
                         " examples at once, and no other number");
    const int64_t taken = is_fixed ? largest : batch;
    if (taken > examples)
      return usage_error("a step takes " + std::to_string(taken) + " examples, '" + options_.data + "' has " +
                         std::to_string(examples) + " to train on");
    if (Result fits = data.check_batch(taken); !fits)
      return usage_error("--batch " + std::to_string(taken) + ": " + fits.error().message);
    return taken;
  }

  void note_left_out(const TrainingData& data, size_t examples, int64_t batch, const char* when) const {
    const int64_t rest = static_cast<int64_t>(examples) % batch;
    if (rest > 0 && !data.check_batch(rest))
      note(std::to_string(rest) + " of " + std::to_string(examples) + " examples are left out " + when +
           ": the model takes no fewer than " + std::to_string(batch));
  }

  Expected<TrainingEnd> train() {
    auto made = Trainer::create(*executable_);
    if (!made) return made.error();
    Trainer& trainer = **made;
    trainer.set_learning_rate(learning_rate_);
    auto classes = class_labels(*compile_.training, trainer);
    auto data = TrainingData::fit(arrays_, trainer, classes);
    if (!data) return data.error();
    Expected<TrainingData> held_back = *data;
    if (!held_back_.by_name.empty()) held_back = TrainingData::fit(held_back_, trainer, classes);
    if (!held_back) return held_back.error();
    Split parts = split();
    auto batch = choose_batch(*data, static_cast<int64_t>(parts.trained.size()));
    if (!batch) return batch.error();
    note_left_out(*data, parts.trained.size(), *batch, "of each epoch");
    note_left_out(*held_back, parts.held_back.size(), *batch, "of validations");
    if (!parts.held_back.empty() && static_cast<int64_t>(parts.held_back.size()) < *batch &&
        !held_back->check_batch(static_cast<int64_t>(parts.held_back.size())))
      return usage_error("--validation: there are " + std::to_string(parts.held_back.size()) +
                         " examples, the model takes " + std::to_string(*batch) + " at once");
    TrainingRun run(options_, trainer, {&*data, std::move(parts.trained)},
                    {&*held_back, std::move(parts.held_back)}, classes, *batch);
    if (Result resumed = resume(trainer, run); !resumed) return resumed.error();
    return run.run();
  }

  Result resume(Trainer& trainer, TrainingRun& run) const {
    if (options_.resume.empty()) return {};
    auto position = read_training(options_.resume, trainer);
    if (!position) return position.error();
    if (position->epoch >= options_.epochs)
      note("'" + options_.resume + "' has been trained for " + std::to_string(position->epoch) +
           " epochs, which is all that --epochs asks for");
    return run.resume(*position, options_.resume);
  }

  void note(const std::string& line) const {
    if (options_.note) options_.note(line);
  }

  const TrainOptions& options_;
  CompileOptions compile_;
  bool is_onnx_ = false;
  onnx::ModelFacts facts_;
  DataArrays arrays_, held_back_;
  std::optional<double> fraction_;
  double learning_rate_ = 0;
  HeapMemory memory_; // outlives the executable
  std::unique_ptr<LoadedExecutable> executable_;
};

} // namespace

std::optional<TrainingEnd> train_model(const TrainOptions& options, DiagnosticList& diagnostics) {
  auto end = guarded(options.compile.model, diagnostics, std::optional<TrainingEnd>(),
                     [&] { return Training(options).run(diagnostics); });
  const bool was_stopped =
      !end && std::any_of(diagnostics.messages().begin(), diagnostics.messages().end(),
                          [](const Diagnostic& each) { return each.fault == Fault::Stopped; });
  if (!was_stopped) return end;
  diagnostics = {};
  return TrainingEnd::Stopped;
}

} // namespace firn::driver
