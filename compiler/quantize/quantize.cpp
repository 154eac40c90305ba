// The whole flow of the quantiser: the map of this folder.
#include "compiler/quantize/quantize.h"

#include "compiler/quantize/choose.h"
#include "compiler/quantize/prepare.h"
#include "compiler/quantize/smooth.h"
#include "compiler/quantize/write.h"

#include <cmath>

namespace firn::quantize {
namespace {

// The outputs of the model as it is, by sample.
struct Exact {
  std::vector<Tensors> outputs;
  double cycles = 0; // predicted
};

Expected<Exact> run_all(const std::string& path, const std::vector<Sample>& samples, const Engine& engine) {
  auto executable = engine(path);
  if (!executable) return executable.error();
  Exact exact;
  for (const Sample& sample : samples) {
    auto outputs = (*executable)->run(sample, {});
    if (!outputs) return outputs.error();
    exact.outputs.push_back(std::move(*outputs));
  }
  exact.cycles = (*executable)->predicted_cycles();
  return exact;
}

// Why a layer cannot be quantised on these activations; empty: it can.
std::string hindrance(const Model& model, const Layer& layer, const Statistics& statistics) {
  for (int number : layer.activations) {
    const std::string& name = operand(model, layer, number);
    if (!statistics.has(name)) return "its input '" + name + "' is no f32";
    if (statistics.is_constant(name)) return "its input '" + name + "' is constant on the calibration data";
  }
  return "";
}

Result check_inputs_vary(const Model& model, const std::vector<Layer>& layers, const Statistics& statistics) {
  std::set<std::string> inputs;
  for (const auto& input : model.graph().input()) inputs.insert(input.name());
  for (const Layer& layer : layers)
    for (int number : layer.activations)
      if (const std::string& name = operand(model, layer, number);
          inputs.count(name) && statistics.has(name) && statistics.is_constant(name))
        return usage_error("input '" + name +
                           "' is one constant in all calibration data: its range is empty, and "
                           "ranges of activations cannot be told from it");
  return {};
}

Plan make_plan(const Model& model, const std::vector<Layer>& layers) {
  Plan plan;
  for (const Layer& layer : layers) {
    PlannedLayer planned;
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

std::string number_text(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

LayerReport describe(const Model& model, const Plan& plan, const PlannedLayer& planned, bool has_harm) {
  LayerReport row;
  row.name = planned.layer.name;
  row.op = model.graph().node(planned.layer.node).op_type();
  row.precision = planned.precision;
  row.local_error = planned.local_error;
  row.harm = std::sqrt(planned.harm);
  row.has_harm = has_harm;
  for (const std::string& name : planned.activations)
    row.rules += (row.rules.empty() ? "" : ", ") + std::string(rule_name(plan.tensors.at(name).rule));
  if (planned.layer.kind == Layer::Kind::Lookup) row.rules = "a scale for each row";
  if (planned.precision != Precision::Narrow)
    row.reason = "for the budget: alone it costs " + number_text("%.2g", row.harm);
  return row;
}

// Layers in the order of the graph.
std::vector<LayerReport> describe_all(const Model& model, const Plan& plan,
                                      const std::vector<Layer>& left_out, bool has_harm) {
  std::map<int, LayerReport> rows;
  for (const PlannedLayer& planned : plan.layers)
    rows[planned.layer.node] = describe(model, plan, planned, has_harm);
  for (const Layer& layer : left_out) {
    LayerReport& row = rows[layer.node];
    row.name = layer.name;
    row.op = model.graph().node(layer.node).op_type();
    row.precision = Precision::Float;
    row.reason = layer.reason;
  }
  std::vector<LayerReport> list;
  for (auto& [node, row] : rows) list.push_back(std::move(row));
  return list;
}

} // namespace

Expected<Report> quantize(const std::string& model_path, const std::string& output_path,
                          const std::string& folder, const std::vector<Sample>& samples,
                          const Options& options, const Engine& engine, const Progress& progress) {
  auto model = Model::read(model_path);
  if (!model) return model.error();
  if (Result raised = raise_opset(*model); !raised) return raised.error();
  const int64_t float_bytes = model->constant_bytes();
  fold_batch_norms(*model);
  auto layers = find_layers(*model, options.keep);
  if (!layers) return layers.error();
  const Diagnostic nothing =
      model_error("there is nothing to quantise: no convolution or product of f32 by constants "
                  "whose input varies");
  if (layers->empty()) return nothing;

  progress("running the model on " + std::to_string(samples.size()) + " samples");
  auto exact = run_all(model_path, samples, engine);
  if (!exact) return exact.error();
  auto calibration = Calibration::make(*model, *layers, engine, folder + "/observed.onnx");
  if (!calibration) return calibration.error();
  if (Result found = calibration->find_bounds(samples); !found) return found.error();
  if (smooth_activations(*model, *layers, calibration->all()) > 0) {
    progress("running it with smooth activations");
    layers = find_layers(*model, options.keep);
    calibration = Calibration::make(*model, *layers, engine, folder + "/smooth.onnx");
    if (!calibration) return calibration.error();
    if (Result found = calibration->find_bounds(samples); !found) return found.error();
  }
  const Statistics& statistics = calibration->all();
  if (Result vary = check_inputs_vary(*model, *layers, statistics); !vary) return vary.error();
  std::vector<Layer> taken, left_out;
  for (Layer& layer : *layers) {
    layer.reason = hindrance(*model, layer, statistics);
    (layer.reason.empty() ? taken : left_out).push_back(layer);
  }
  if (taken.empty()) return nothing;
  if (Result made = calibration->make_histograms(samples); !made) return made.error();

  progress("choosing ranges for " + std::to_string(taken.size()) + " layers");
  Plan plan = make_plan(*model, taken);
  auto trial = Trial::make(*model, plan, engine, folder + "/trial.onnx");
  if (!trial) return trial.error();
  if (Result chosen = choose_ranges(*trial, plan, *calibration, samples, exact->outputs, options.activations);
      !chosen)
    return chosen.error();
  bool met = true;
  if (options.budget) {
    progress("measuring what each layer costs");
    if (Result done =
            meet_budget(*trial, plan, samples, exact->outputs, *options.budget, options.activations);
        !done)
      return done.error();
  }
  for (const PlannedLayer& planned : plan.layers) met &= planned.precision == Precision::Narrow;

  progress("checking the quantised model");
  Model quantized = quantized_model(*model, plan);
  const std::string result = folder + "/quantized.onnx";
  if (Result written = quantized.write(result); !written) return written.error();
  auto found = run_all(result, samples, engine);
  if (!found) return found.error();
  OutputErrors errors;
  for (size_t i = 0; i < samples.size(); ++i) errors.add(exact->outputs[i], found->outputs[i]);
  if (Result written = quantized.write(output_path); !written) return written.error();
  Report report;
  report.model = model_path, report.output = output_path;
  report.samples = samples.size();
  report.budget = options.budget;
  report.error = errors.relative();
  report.worst_output = errors.worst();
  report.layers = describe_all(*model, plan, left_out, !met);
  report.float_bytes = float_bytes;
  report.quantized_bytes = quantized.constant_bytes();
  report.float_cycles = exact->cycles;
  report.quantized_cycles = found->cycles;
  return report;
}

} // namespace firn::quantize
