// Small models whose kernels on a GPU have barriers, waits and bounds.
#pragma once

#include <string>
#include <vector>

namespace firn::test {

struct SampleModel {
  std::string name;
  std::string bytes; // an ONNX model, whose inputs are f32
};

// Reductions along rows of many lengths, norms, products, windows and code for elements.
std::vector<SampleModel> sample_models();

} // namespace firn::test
