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
  for (const auto& output : model.graph().output()) calibration.outputs_.push_back(output.name());
  for (const Layer& layer : layers)
    for (int number : layer.activations)
      calibration.axes_.emplace(operand(model, layer, number), layer.kind == Layer::Kind::Product ? -1 : 1);
  for (const auto& [name, axis] : calibration.axes_) {
    if (inputs.count(name))
      calibration.inputs_.push_back(name);
    else if (!model.is_output(name))
      observed.graph().add_output()->set_name(name);
  }
  if (Result written = observed.write(path); !written) return written.error();
  auto executable = engine(path);
  if (!executable) return executable.error();
  calibration.executable_ = std::move(*executable);
  return calibration;
}

Result Calibration::run(const std::vector<Sample>& samples, const Executable::Take& take) {
  std::vector<Run> runs;
  for (const Sample& sample : samples) runs.push_back({&sample, {}});
  return executable_->run(runs, [&](size_t number, Tensors outputs) {
    for (const std::string& name : inputs_)
      if (auto given = samples[number].tensors.find(name); given != samples[number].tensors.end())
        outputs[name] = given->second;
    return take(number, std::move(outputs));
  });
}

Result Calibration::find_bounds(const std::vector<Sample>& samples, std::vector<Tensors>* outputs) {
  constexpr size_t kParts = 4;
  parts_.assign(std::min(samples.size(), kParts), Statistics(axes_));
  Result done = run(samples, [&](size_t number, Tensors tensors) -> Result {
    Result added = parts_[part_of(number)].add_bounds(samples[number], tensors);
    if (!added || !outputs) return added;
    Tensors& kept = outputs->emplace_back();
    for (const std::string& name : outputs_)
      if (auto found = tensors.find(name); found != tensors.end()) kept.insert(*found);
    return {};
  });
  if (!done) return done;
  std::vector<const Statistics*> list;
  for (const Statistics& part : parts_) list.push_back(&part);
  all_ = Statistics::merged(list);
  return {};
}

Result Calibration::make_histograms(const std::vector<Sample>& samples) {
  const Statistics bounds = *all_;
  Result done = run(samples, [&](size_t number, const Tensors& tensors) -> Result {
    parts_[part_of(number)].add_histogram(tensors, bounds);
    return {};
  });
  if (!done) return done;
  std::vector<const Statistics*> list;
  for (const Statistics& part : parts_) list.push_back(&part);
  all_ = Statistics::merged(list);
  return {};
}

Statistics Calibration::without(size_t part) const {
  if (parts_.size() == 1) return *all_;
  std::vector<const Statistics*> others;
  for (size_t i = 0; i < parts_.size(); ++i)
    if (i != part) others.push_back(&parts_[i]);
  return Statistics::merged(others);
}

} // namespace firn::quantize
