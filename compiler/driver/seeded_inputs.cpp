// Tensors drawn from a seed.
#include "compiler/driver/seeded_inputs.h"

#include <random>

namespace firn::driver {

std::vector<LiteralRef> seeded_inputs(const Compilation& c, const ActualDims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<LiteralRef> inputs;
  const Function& main = c.module->main();
  size_t next = 0; // number of the description's next input
  for (size_t p = 0; p < main.body().parameters().size(); ++p) {
    inputs.push_back(nullptr);
    if (main.is_state(p)) continue;
    const artifact::TensorDescription& input = c.description.inputs[next++];
    if (input.dtype == DType::String) {
      std::vector<int64_t> extents = actual_dims(input, dims);
      auto count = static_cast<size_t>(checked_num_elements(extents).value_or(0));
      inputs.back() = Literal::strings(extents, std::vector<std::string>(count, "some words"));
      continue;
    }
    auto literal = std::make_shared<Literal>(input.dtype, actual_dims(input, dims));
    for (int64_t i = 0; i < literal->num_elements(); ++i)
      if (is_float(input.dtype))
        literal->set_double(i, normal(random));
      else
        literal->set_int(i, static_cast<int64_t>(random() % 2));
    inputs.back() = std::move(literal);
  }
  return inputs;
}

} // namespace firn::driver
