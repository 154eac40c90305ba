// The whole flow of the quantiser: the map of this folder.
#include "compiler/quantize/quantize.h"

#include "compiler/quantize/choose.h"
#include "compiler/quantize/describe.h"
#include "compiler/quantize/gains.h"
#include "compiler/quantize/normalise_model.h"
#include "compiler/quantize/smooth.h"
#include "compiler/quantize/weights.h"
#include "compiler/quantize/write.h"

#include <algorithm>

namespace firn::quantize {
namespace {

// An engine refuses what is no valid model.
Expected<double> predicted_cycles(const std::string& path, const Sample& sample, const Engine& engine) {
  auto executable = engine(path);
  if (!executable) return executable.error();
  return (*executable)->predicted_cycles(sample);
}

// The ranks of values, as a run finds them.
Expected<std::map<std::string, int64_t>> ranks_of(const std::vector<std::string>& values, const Model& model,
                                                  const Sample& sample, const Engine& engine,
                                                  const std::string& path) {
  std::map<std::string, int64_t> ranks;
  if (values.empty()) return ranks;
  Model observed(model);
  for (const std::string& value : values) {
    auto given = sample.tensors.find(value);
    if (given != sample.tensors.end()) ranks[value] = static_cast<int64_t>(given->second->dims().size());
    if (!model.is_output(value) && model.producer(value) >= 0 && ranks.emplace(value, 0).second)
      observed.graph().add_output()->set_name(value);
  }
  if (Result written = observed.write(path); !written) return written.error();
  auto executable = engine(path);
  if (!executable) return executable.error();
  Result done = (*executable)->run({{&sample, {}}}, [&](size_t, const Tensors& outputs) -> Result {
    for (const std::string& value : values)
      if (auto found = outputs.find(value); found != outputs.end())
        ranks[value] = static_cast<int64_t>(found->second->dims().size());
    return {};
  });
  return done ? Expected<std::map<std::string, int64_t>>(std::move(ranks)) : done.error();
}

bool is_input(const Model& model, const std::string& name) {
  const auto& inputs = model.graph().input();
  return std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) { return input.name() == name; });
}

// Why a layer cannot be quantised on these activations; empty: it can.
std::string hindrance(const Model& model, const Layer& layer, const Statistics& statistics) {
  if (layer.weight >= 0)
    if (std::string why = hindrance_of(*model.constant(operand(model, layer, layer.weight))); !why.empty())
      return why;
  for (int number : layer.activations) {
    const std::string& name = operand(model, layer, number);
    if (!statistics.has(name))
      return is_input(model, name) ? "the calibration data gives no range in f32 for its input '" + name + "'"
                                   : "its input '" + name + "' is no f32";
    if (statistics.is_constant(name)) return "its input '" + name + "' is constant on the calibration data";
  }
  return "";
}

Diagnostic nothing_to_quantise(const std::vector<Layer>& left_out = {}) {
  std::string message =
      "there is nothing to quantise: no convolution or product of f32 by constants whose input varies";
  if (!left_out.empty()) message += " ('" + left_out[0].name + "': " + left_out[0].reason + ")";
  return model_error(message);
}

Result check_inputs_vary(const Model& model, const std::vector<Layer>& layers, const Statistics& statistics,
                         const std::set<std::string>& states) {
  std::set<std::string> inputs;
  for (const auto& input : model.graph().input())
    if (!states.count(input.name())) inputs.insert(input.name());
  for (const Layer& layer : layers)
    for (int number : layer.activations)
      if (const std::string& name = operand(model, layer, number);
          inputs.count(name) && statistics.has(name) && statistics.is_constant(name))
        return usage_error("input '" + name +
                           "' is one constant in all calibration data: its range is empty, and "
                           "ranges of activations cannot be told from it");
  return {};
}

LayerChoices make_plan(const Model& model, const std::vector<Layer>& layers) {
  LayerChoices plan;
  for (const Layer& layer : layers) {
    LayerChoice planned;
    planned.layer = layer;
    for (int number : layer.activations) {
      planned.activations.push_back(operand(model, layer, number));
      plan.tensors[planned.activations.back()] = {};
    }
    if (layer.weight >= 0)
      planned.weight =
          quantize_weight(*model.constant(operand(model, layer, layer.weight)), layer.weight_axis);
    plan.layers.push_back(std::move(planned));
  }
  return plan;
}

// The model as it is quantised, what is known of its activations, and its layers.
struct Calibrated {
  Model model;
  Calibration calibration;
  std::vector<Layer> layers;
  std::vector<Tensors> outputs; // exact, by sample
};

Expected<Calibrated> calibrate(Model model, const std::vector<Sample>& samples, const Options& options,
                               const Engine& engine, const std::string& folder) {
  auto layers = find_layers(model, options.keep);
  if (!layers) return layers.error();
  if (layers->empty()) return nothing_to_quantise();
  auto calibration = Calibration::make(model, *layers, engine, folder + "/observed.onnx");
  if (!calibration) return calibration.error();
  std::vector<Tensors> outputs;
  if (Result found = calibration->find_bounds(samples, &outputs); !found) return found.error();
  if (Result vary = check_inputs_vary(model, *layers, calibration->all(), options.states); !vary)
    return vary.error();
  if (smooth_activations(model, *layers, calibration->all()) > 0) {
    layers = find_layers(model, options.keep);
    calibration = Calibration::make(model, *layers, engine, folder + "/smooth.onnx");
    if (!calibration) return calibration.error();
    if (Result found = calibration->find_bounds(samples); !found) return found.error();
  }
  if (Result made = calibration->make_histograms(samples); !made) return made.error();
  return Calibrated{std::move(model), std::move(*calibration), std::move(*layers), std::move(outputs)};
}

// A plan of all layers that can be quantised, with its trial, and the others.
struct Chosen {
  LayerChoices plan;
  Trial trial;
  std::vector<Layer> left_out;
};

Expected<Chosen> choose_all(const Calibrated& calibrated, const std::vector<Sample>& samples,
                            const std::vector<Tensors>& exact, const Options& options, const Engine& engine,
                            const std::string& folder, const Progress& progress) {
  std::vector<Layer> taken, left_out;
  for (Layer layer : calibrated.layers) {
    layer.reason = hindrance(calibrated.model, layer, calibrated.calibration.all());
    (layer.reason.empty() ? taken : left_out).push_back(layer);
  }
  bool computes =
      std::any_of(taken.begin(), taken.end(), [](const Layer& layer) { return !layer.activations.empty(); });
  if (!computes) return nothing_to_quantise(left_out);
  progress("choosing ranges for " + std::to_string(taken.size()) + " layers");
  LayerChoices plan = make_plan(calibrated.model, taken);
  auto trial = Trial::make(calibrated.model, plan, engine, folder + "/trial.onnx");
  if (!trial) return trial.error();
  const Calibration& calibration = calibrated.calibration;
  if (Result done = choose_ranges(*trial, plan, calibration, samples, exact, options.activations); !done)
    return done.error();
  if (!options.size) {
    progress("predicting which layers gain");
    Predictor predictor(calibrated.model, samples[0], engine, folder + "/predicted.onnx");
    if (Result done = leave_out_slow(predictor, calibrated.model, plan); !done) return done.error();
  }
  return Chosen{std::move(plan), std::move(*trial), std::move(left_out)};
}

// The quantised model and what it is worth.
struct Quantised {
  Model model;
  OutputErrors errors;
  double cycles = 0;
};

Expected<Quantised> check(const Model& model, const LayerChoices& plan, const std::vector<Sample>& samples,
                          const std::vector<Tensors>& exact, const Engine& engine, const std::string& path) {
  Quantised quantised{quantized_model(model, plan), {}, 0};
  if (Result written = quantised.model.write(path); !written) return written.error();
  auto executable = engine(path);
  if (!executable) return executable.error();
  std::vector<Run> runs;
  for (const Sample& sample : samples) runs.push_back({&sample, {}});
  Result done = (*executable)->run(runs, [&](size_t number, const Tensors& outputs) -> Result {
    quantised.errors.add(exact[number], outputs);
    return {};
  });
  if (!done) return done.error();
  auto cycles = (*executable)->predicted_cycles(samples[0]);
  if (!cycles) return cycles.error();
  quantised.cycles = *cycles;
  return quantised;
}

// Integer kernels round a little otherwise than the trial: where the budget is missed by that, a smaller one
// is met.
Expected<Quantised> finish(const Model& model, Chosen& chosen, const std::vector<Sample>& samples,
                           const std::vector<Tensors>& exact, const Options& options, const Engine& engine,
                           const std::string& folder, const Progress& progress) {
  constexpr int kMaxAttempts = 6;
  double target = options.budget.value_or(0);
  for (int attempt = 1;; ++attempt) {
    if (options.budget) {
      progress("measuring what layers cost");
      Result met = meet_budget(chosen.trial, chosen.plan, samples, exact, target, options.activations);
      if (!met) return met.error();
    }
    progress("checking the quantised model");
    auto quantised = check(model, chosen.plan, samples, exact, engine, folder + "/quantized.onnx");
    if (!quantised || !options.budget || attempt == kMaxAttempts) return quantised;
    double error = quantised->errors.relative();
    if (error <= *options.budget) return quantised;
    target *= 0.9 * *options.budget / error;
  }
}

} // namespace

Expected<Report> quantize(const std::string& model_path, const std::string& output_path,
                          const std::string& folder, const std::vector<Sample>& samples,
                          const Options& options, const Engine& engine, const Progress& progress) {
  auto model = Model::read(model_path);
  if (!model) return model.error();
  Report report;
  report.model = model_path, report.output = output_path;
  report.samples = samples.size();
  report.budget = options.budget;
  report.machine = options.machine;
  report.size = options.size;
  report.float_bytes = model->constant_bytes();
  // Edits count on nodes that have what their operators want.
  auto cycles = predicted_cycles(model_path, samples[0], engine);
  if (!cycles) return cycles.error();
  report.float_cycles = *cycles;
  auto ranks = ranks_of(softmax_operands(*model), *model, samples[0], engine, folder + "/ranks.onnx");
  if (!ranks) return ranks.error();
  if (Result raised = raise_opset(*model, *ranks); !raised) return raised.error();
  fold_constants(*model);
  fold_batch_norms(*model, options.keep);
  progress("running the model on " + std::to_string(samples.size()) + " samples");
  auto calibrated = calibrate(std::move(*model), samples, options, engine, folder);
  if (!calibrated) return calibrated.error();
  auto chosen = choose_all(*calibrated, samples, calibrated->outputs, options, engine, folder, progress);
  if (!chosen) return chosen.error();
  auto quantised =
      finish(calibrated->model, *chosen, samples, calibrated->outputs, options, engine, folder, progress);
  if (!quantised) return quantised.error();
  if (Result written = quantised->model.write(output_path); !written) return written.error();
  report.error = quantised->errors.relative();
  report.worst_output = quantised->errors.worst();
  const std::vector<LayerChoice>& layers = chosen->plan.layers;
  bool has_harm =
      std::any_of(layers.begin(), layers.end(), [](const LayerChoice& planned) { return planned.harm > 0; });
  report.layers =
      describe_layers(calibrated->model, chosen->plan, chosen->left_out, options.activations, has_harm);
  report.quantized_bytes = quantised->model.constant_bytes();
  report.quantized_cycles = quantised->cycles;
  return report;
}

} // namespace firn::quantize
