// Files of a data set, and their order.
#include "compiler/frontend/onnx/stored_tensors.h"

#include <filesystem>
#include <set>

namespace firn::onnx {

Expected<std::vector<NamedTensor>> read_stored_tensors(const std::string& folder, const std::string& kind) {
  std::vector<NamedTensor> tensors;
  for (int i = 0;; ++i) {
    std::string path = folder + "/" + kind + "_" + std::to_string(i) + ".pb";
    if (!std::filesystem::exists(path)) return tensors;
    auto tensor = read_tensor_file(path);
    if (!tensor) return tensor.error();
    tensors.push_back(std::move(*tensor));
  }
}

Expected<std::vector<size_t>> match_stored_inputs(const ModelFacts& facts,
                                                  const std::vector<NamedTensor>& tensors) {
  std::vector<size_t> all, required, named;
  std::map<std::string, size_t> numbers;
  for (size_t i = 0; i < facts.inputs.size(); ++i) {
    all.push_back(i);
    if (!facts.inputs[i].has_initializer) required.push_back(i);
    numbers[facts.inputs[i].name] = i;
  }
  std::set<size_t> distinct;
  for (const NamedTensor& tensor : tensors) {
    auto found = numbers.find(tensor.name);
    if (found != numbers.end() && distinct.insert(found->second).second) named.push_back(found->second);
  }
  if (named.size() == tensors.size()) return named;
  std::vector<size_t>& counted = tensors.size() <= required.size() ? required : all;
  if (tensors.size() > counted.size())
    return model_error("got " + std::to_string(tensors.size()) + " stored inputs, the model has " +
                       std::to_string(all.size()));
  counted.resize(tensors.size());
  return counted;
}

} // namespace firn::onnx
