// Files of examples and which inputs they are for.
#include "compiler/driver/train/data_arrays.h"

#include "compiler/driver/calibration_data.h"
#include "compiler/driver/run.h"

#include <filesystem>

namespace firn::driver {
namespace {

namespace fs = std::filesystem;
using Arrays = std::map<std::string, DataArray>;

Expected<Arrays> read_archive_arrays(const std::string& path) {
  auto read = read_npz(path);
  if (!read) return read.error();
  Arrays arrays;
  for (auto& [name, values] : *read) arrays[name] = {path + ":" + name, std::move(values)};
  return arrays;
}

// The arrays of a folder by the names of their files.
Expected<Arrays> read_folder_arrays(const std::string& folder, const onnx::ModelFacts& facts) {
  std::vector<fs::path> archives, files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".npz") archives.push_back(entry.path());
    if (entry.path().extension() == ".npy") files.push_back(entry.path());
  }
  if (archives.size() > 1 || (!archives.empty() && !files.empty()))
    return usage_error("'" + folder + "' holds " + std::to_string(archives.size()) + " .npz and " +
                       std::to_string(files.size()) + " .npy files, wanted one .npz or .npy files alone");
  if (archives.size() == 1) return read_archive_arrays(archives[0].string());
  Arrays arrays;
  for (const fs::path& path : files) {
    const onnx::ValueFacts* input = find_input_of_file(facts, path.stem().string());
    auto values = read_tensor(path.string(), input ? input->type : "");
    if (!values) return values.error();
    arrays[path.stem().string()] = {path.string(), *values};
  }
  return arrays;
}

class Assignment {
public:
  Assignment(const onnx::ModelFacts& facts, const onnx::ImportOptions& import) : facts_(facts) {
    for (const onnx::ValueFacts& input : facts.inputs)
      if (!input.has_initializer && !import.is_fixed(input.name)) required_.push_back(&input);
  }

  // Gives arrays the names of the inputs that they are for.
  Expected<Arrays> assign(const std::string& path, const Arrays& arrays) const {
    Arrays assigned;
    for (const auto& [name, array] : arrays) {
      const onnx::ValueFacts* input = find_input_of_file(facts_, name);
      const bool is_label = !input && name.rfind(kLabels, 0) == 0;
      const bool is_alone = required_.size() == 1 && arrays.size() - arrays.count(kLabels) == 1;
      if (!input && !is_label && is_alone) input = required_[0];
      if (!input && !is_label)
        return usage_error("'" + array.source + "' is for no input of the model: its inputs are " + names() +
                           ", and the array of labels is called '" + kLabels + "'");
      assigned[input ? input->name : name] = array;
    }
    for (const onnx::ValueFacts* input : required_)
      if (!assigned.count(input->name))
        return usage_error("'" + path + "' has nothing for input '" + input->name + "' (" + input->type +
                           "): wanted an array of that name, " + input->name + ".npy or in data.npz");
    return assigned;
  }

private:
  std::string names() const {
    std::string text;
    for (const onnx::ValueFacts* input : required_) text += (text.empty() ? "'" : ", '") + input->name + "'";
    return text;
  }

  const onnx::ModelFacts& facts_;
  std::vector<const onnx::ValueFacts*> required_;
};

// Every array has a first axis, and all have equally many examples.
Expected<int64_t> count_examples(const Arrays& arrays) {
  const DataArray* first = nullptr;
  for (const auto& [name, array] : arrays) {
    if (array.values->dims().empty())
      return usage_error("'" + array.source + "' is " + array.values->type().to_string() +
                         ": its first axis has to be that of the examples");
    if (!first) first = &array;
    if (array.values->dims()[0] != first->values->dims()[0])
      return usage_error("'" + array.source + "' holds " + std::to_string(array.values->dims()[0]) +
                         " examples, '" + first->source + "' " + std::to_string(first->values->dims()[0]));
  }
  if (first->values->dims()[0] == 0) return usage_error("'" + first->source + "' holds no example");
  return first->values->dims()[0];
}

} // namespace

Expected<DataArrays> read_data_arrays(const std::string& path, const onnx::ModelFacts& facts,
                                      const onnx::ImportOptions& import) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  if (!is_folder && !path.ends_with(".npz"))
    return usage_error("'" + path + "' is neither a folder that can be read nor a .npz file");
  auto arrays = is_folder ? read_folder_arrays(path, facts) : read_archive_arrays(path);
  if (!arrays) return arrays.error();
  if (arrays->empty())
    return usage_error("there is no data in '" + path +
                       "': wanted data.npz, or an array NAME.npy for each input, and labels.npy");
  auto assigned = Assignment(facts, import).assign(path, *arrays);
  if (!assigned) return assigned.error();
  auto examples = count_examples(*assigned);
  if (!examples) return examples.error();
  return DataArrays{path, std::move(*assigned), *examples};
}

} // namespace firn::driver
