// Runs for statistics, and errors of outputs.
#include "compiler/quantize/calibrate.h"

#include <cmath>

namespace firn::quantize {

void OutputErrors::add(const Tensors& exact, const Tensors& found) {
  bool has_floats = false;
  for (const auto& [name, tensor] : exact) has_floats |= is_float(tensor->dtype());
  for (const auto& [name, tensor] : exact) {
    auto other = found.find(name);
    if (other == found.end() || tensor->dtype() == DType::String ||
        (has_floats && !is_float(tensor->dtype())))
      continue;
    Sums& sums = sums_[name];
    // A count that rounding changed cannot be compared element by element.
    if (other->second->dims() != tensor->dims()) sums.error = INFINITY;
    for (int64_t i = 0; i < tensor->num_elements() && std::isfinite(sums.error); ++i) {
      double value = tensor->get_double(i), off = other->second->get_double(i) - value;
      if (std::isnan(off)) off = std::isnan(value) || std::isinf(value) ? 0 : INFINITY;
      if (std::isfinite(value)) sums.squared += value * value;
      sums.error += off * off;
    }
  }
}

double OutputErrors::relative() const {
  double worst = 0;
  for (const auto& [name, sums] : sums_) {
    double error = sums.error == 0 ? 0 : sums.squared > 0 ? std::sqrt(sums.error / sums.squared) : INFINITY;
    if (error > worst || worst_.empty()) worst_ = name;
    worst = std::max(worst, error);
  }
  return worst;
}

Expected<Calibration> Calibration::make(const Model& model, const std::vector<Layer>& layers,
                                        const Engine& engine, const std::string& path) {
  Calibration calibration;
  Model observed(model);
  std::set<std::string> inputs;
  for (const auto& input : model.graph().input()) inputs.insert(input.name());
  std::map<std::string, int> axes;
  for (const Layer& layer : layers)
    for (int number : layer.activations)
      axes.emplace(operand(model, layer, number), layer.kind == Layer::Kind::Product ? -1 : 1);
  for (const auto& [name, axis] : axes) {
    if (inputs.count(name))
      calibration.inputs_.push_back(name);
    else if (!model.is_output(name))
      observed.graph().add_output()->set_name(name);
  }
  if (Result written = observed.write(path); !written) return written.error();
  auto executable = engine(path);
  if (!executable) return executable.error();
  calibration.executable_ = std::move(*executable);
  for (auto* statistics : {&calibration.all_, &calibration.even_, &calibration.odd_})
    statistics->emplace(axes);
  return calibration;
}

Expected<Tensors> Calibration::activations(const Sample& sample) {
  auto outputs = executable_->run(sample, {});
  if (!outputs) return outputs;
  for (const std::string& name : inputs_)
    if (auto given = sample.tensors.find(name); given != sample.tensors.end())
      (*outputs)[name] = given->second;
  return outputs;
}

Result Calibration::find_bounds(const std::vector<Sample>& samples) {
  for (size_t i = 0; i < samples.size(); ++i) {
    auto tensors = activations(samples[i]);
    if (!tensors) return tensors.error();
    for (Statistics* statistics : {&*all_, &part(i)})
      if (Result added = statistics->add_bounds(samples[i], *tensors); !added) return added;
  }
  return {};
}

Result Calibration::make_histograms(const std::vector<Sample>& samples) {
  for (size_t i = 0; i < samples.size(); ++i) {
    auto tensors = activations(samples[i]);
    if (!tensors) return tensors.error();
    for (Statistics* statistics : {&*all_, &part(i)}) statistics->add_histogram(*tensors);
  }
  return {};
}

} // namespace firn::quantize
