// What a model's activations and outputs are on the calibration data.
#pragma once

#include "compiler/quantize/plan.h"

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

// Every second sample, so that what is chosen on some is judged on others.
enum class Fold : uint8_t { Even, Odd };
inline Fold fold_of(size_t sample) {
  return sample % 2 == 0 ? Fold::Even : Fold::Odd;
}

// The model with the activations of all layers as further outputs, run on the calibration data.
class Calibration {
public:
  static Expected<Calibration> make(const Model& model, const std::vector<Layer>& layers,
                                    const Engine& engine, const std::string& path);
  // Bounds of all samples; an error names a value that is no number.
  Result find_bounds(const std::vector<Sample>& samples);
  Result make_histograms(const std::vector<Sample>& samples);
  const Statistics& all() const { return *all_; }
  const Statistics& of(Fold fold) const { return fold == Fold::Even ? *even_ : *odd_; }

private:
  Expected<Tensors> activations(const Sample& sample);
  Statistics& part(size_t sample) { return fold_of(sample) == Fold::Even ? *even_ : *odd_; }
  std::vector<std::string> inputs_; // activations that are inputs of the model
  std::unique_ptr<Executable> executable_;
  std::optional<Statistics> all_, even_, odd_;
};

} // namespace firn::quantize
