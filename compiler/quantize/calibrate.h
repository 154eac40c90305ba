// A model's activations and outputs on the calibration data.
#pragma once

#include "compiler/quantize/layer_choices.h"

namespace firn::quantize {

// The error of a model's outputs against those of the exact one, over several samples.
class OutputErrors {
public:
  void add(const Tensors& exact, const Tensors& found);
  // The root of the squared errors' sum over that of the squared values, of the worst output.
  double relative() const;
  const std::string& worst() const { return worst_; }

private:
  struct Sums {
    double error = 0, squared = 0;
  };
  std::map<std::string, Sums> sums_;
  mutable std::string worst_;
};

// The model with the activations of all layers as further outputs, run on the calibration data.
class Calibration {
public:
  static Expected<Calibration> make(const Model& model, const std::vector<Layer>& layers,
                                    const Engine& engine, const std::string& path);
  // Bounds of all samples; an error names a value that is no number. `outputs`, if given, gets those of the
  // model.
  Result find_bounds(const std::vector<Sample>& samples, std::vector<Tensors>* outputs = nullptr);
  Result make_histograms(const std::vector<Sample>& samples);
  const Statistics& all() const { return *all_; }

  // Samples in parts, so that what is chosen on some is judged on others. A single one is both.
  size_t parts() const { return parts_.size(); }
  size_t part_of(size_t sample) const { return sample % parts_.size(); }
  Statistics without(size_t part) const;

private:
  Result run(const std::vector<Sample>& samples, const Executable::Take& take);
  std::vector<std::string> inputs_;  // activations that are inputs of the model
  std::vector<std::string> outputs_; // outputs of the model
  std::map<std::string, int> axes_;
  std::unique_ptr<Executable> executable_;
  std::vector<Statistics> parts_;
  std::optional<Statistics> all_;
};

} // namespace firn::quantize
