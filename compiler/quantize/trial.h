// The trial: one compiled model that computes every layer both in floats and as quantised, and takes with
// each run which of the two goes on, the grids of the activations and the corrections of the biases. So any
// choice is measured without compiling again.
#pragma once

#include "compiler/quantize/layer_choices.h"

namespace firn::quantize {

// The error of a layer's output, given the input that it has in the run.
struct LocalError {
  // By output channel: means over the output of quantised less exact, and their squares, summed over runs.
  std::vector<double> means, squared_means;
  double squared_error = 0, squared = 0; // sums over the output
  double relative() const;
};

class Trial {
public:
  // Writes the model to `path` and compiles it.
  static Expected<Trial> make(const Model& model, const LayerChoices& plan, const Engine& engine,
                              const std::string& path);

  // A run with each layer at its precision in the plan.
  struct Setting {
    const LayerChoices* plan;
    const Sample* sample;
  };
  // `local`, one for each layer, gets the errors of these runs added.
  Result run(const std::vector<Setting>& settings, const Executable::Take& take,
             std::vector<LocalError>* local = nullptr);

private:
  struct Slot { // an operand that is quantised
    size_t layer;
    std::string tensor;
  };
  void rewrite_layer(Model& model, const LayerChoices& plan, size_t number,
                     std::vector<wire::NodeProto>& nodes);
  std::string fake_quantized(Model& model, size_t layer, const std::string& tensor,
                             std::vector<wire::NodeProto>& nodes);
  std::string measured(Model& model, const LayerChoice& planned, size_t number, const std::string& quantized,
                       const std::string& exact, std::vector<wire::NodeProto>& nodes);
  Tensors values_of(const LayerChoices& plan) const;
  void add_local_errors(const Tensors& outputs, std::vector<LocalError>& errors) const;
  std::vector<Slot> slots_;
  std::vector<int64_t> correction_offsets_; // by layer
  int64_t corrections_ = 0;
  std::unique_ptr<Executable> executable_;
};

} // namespace firn::quantize
