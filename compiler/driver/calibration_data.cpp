// Files of samples and which inputs they are for.
#include "compiler/driver/calibration_data.h"

#include "compiler/driver/run.h"
#include "compiler/frontend/onnx/import/stored_tensors.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace firn::driver {
namespace {

namespace fs = std::filesystem;
using quantize::Sample;
using Samples = std::vector<Sample>;

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The first extent of an input: what the options say, else that of its type, such as "f32[1,3,224,224]".
// Nothing if it is no number.
std::optional<int64_t> first_extent(const onnx::ValueFacts& input, const onnx::ImportOptions& import) {
  auto shape = import.shapes.find(input.name);
  if (shape != import.shapes.end())
    return shape->second.empty() ? std::nullopt : std::optional(shape->second[0]);
  if (!input.dims.empty())
    if (auto dim = import.dims.find(input.dims[0]); dim != import.dims.end()) return dim->second;
  const std::string& type = input.type;
  size_t open = type.find('[');
  int64_t value = 0;
  if (open == type.npos) return std::nullopt;
  auto [end, error] = std::from_chars(type.data() + open + 1, type.data() + type.size(), value);
  if (error != std::errc() || value < 1) return std::nullopt;
  return value;
}

// Elements [begin, begin + count) along the first axis.
LiteralRef rows_of(const LiteralRef& all, int64_t begin, int64_t count) {
  std::vector<int64_t> dims = all->dims();
  size_t row = all->bytes().size() / static_cast<size_t>(dims[0]);
  dims[0] = count;
  auto rows = std::make_shared<Literal>(all->dtype(), dims);
  std::copy_n(all->bytes().data() + static_cast<size_t>(begin) * row, rows->bytes().size(),
              rows->mutable_bytes().data());
  return rows;
}

// The facts with inputs that the options fix, and states, as if an initializer gave them their values: data
// may leave them out.
onnx::ModelFacts with_given_inputs(onnx::ModelFacts facts, const onnx::ImportOptions& import) {
  for (onnx::ValueFacts& input : facts.inputs)
    input.has_initializer |= import.is_fixed(input.name) || import.is_state(input.name);
  return facts;
}

// Errors in data are never the model's fault, and name the path.
Diagnostic in_data(const std::string& path, Diagnostic reason) {
  reason.fault = Fault::Usage;
  if (reason.message.find(path) == std::string::npos)
    reason.message = "calibration data '" + path + "': " + reason.message;
  return reason;
}

class Reader {
public:
  Reader(const onnx::ModelFacts& facts, const onnx::ImportOptions& import)
      : facts_(with_given_inputs(facts, import)), import_(import) {
    for (const onnx::ValueFacts& input : facts_.inputs)
      if (!input.has_initializer) required_.push_back(&input);
  }

  Expected<Samples> folder(const fs::path& folder) {
    if (Result added = add_folder(folder, /*is_outer=*/true); !added) return added.error();
    if (samples_.empty())
      return usage_error("there is no calibration data in '" + folder.string() +
                         "': wanted .npy, .npz or .pb files, or folders with input_0.pb ...");
    return std::move(samples_);
  }

private:
  Result add_folder(const fs::path& folder, bool is_outer) {
    if (fs::exists(folder / "input_0.pb")) {
      auto stored = onnx::read_stored_inputs(folder.string(), facts_);
      if (!stored) return in_data(folder.string(), stored.error());
      return add({folder.string(), std::move(stored->tensors), std::move(stored->lengths)});
    }
    std::vector<fs::path> files;
    for (const fs::path& path : sorted_entries(folder)) {
      if (fs::is_directory(path)) {
        if (Result added = is_outer ? add_folder(path, false) : Result(); !added) return added;
      } else if (path.extension() == ".npz") {
        if (Result added = add_archive(path.string()); !added) return added;
      } else if (path.extension() == ".npy" || path.extension() == ".pb") {
        files.push_back(path);
      }
    }
    return add_files(folder, files);
  }

  const onnx::ValueFacts* find_input(const std::string& name) const {
    return find_input_of_file(facts_, name);
  }

  std::string wanted() const {
    std::string names;
    for (const onnx::ValueFacts* input : required_)
      names += (names.empty() ? "'" : ", '") + input->name + "'";
    return names;
  }

  Result add(Sample sample) {
    for (const onnx::ValueFacts* input : required_)
      if (!sample.tensors.count(input->name) && !sample.lengths.count(input->name))
        return usage_error("'" + sample.name + "' has nothing for input '" + input->name + "' (" +
                           input->type + ")");
    std::erase_if(sample.tensors, [&](const auto& tensor) { return import_.is_fixed(tensor.first); });
    samples_.push_back(std::move(sample));
    return {};
  }

  Result add_archive(const std::string& path) {
    auto arrays = read_npz(path);
    if (!arrays) return in_data(path, arrays.error());
    Sample sample{path, {}, {}};
    for (const auto& [name, array] : *arrays) {
      const onnx::ValueFacts* input = find_input(name);
      bool is_alone = arrays->size() == 1 && required_.size() == 1;
      if (!input && is_alone) input = required_[0];
      if (!input)
        return usage_error("'" + path + "' holds '" + name + "', the model's inputs are " + wanted());
      sample.tensors[input->name] = array;
    }
    return add(std::move(sample));
  }

  // The files are either one for each input, or all for the only input.
  Result add_files(const fs::path& folder, const std::vector<fs::path>& files) {
    if (files.empty()) return {};
    bool named = std::all_of(files.begin(), files.end(),
                             [&](const fs::path& path) { return find_input(path.stem().string()); });
    if (!named && required_.size() != 1)
      return usage_error("'" + files[0].string() + "' could be for any of " + wanted() +
                         ": call files as inputs, in one folder for each sample, or write .npz files");
    bool one_sample = named && std::any_of(files.begin(), files.end(), [&](const fs::path& path) {
                        return required_.size() != 1 || find_input(path.stem().string()) != required_[0];
                      });
    Sample whole{folder.string(), {}, {}};
    for (const fs::path& path : files) {
      const onnx::ValueFacts* input = named ? find_input(path.stem().string()) : required_[0];
      auto tensor = read_tensor(path.string(), input->type);
      if (!tensor) return in_data(path.string(), tensor.error());
      if (one_sample)
        whole.tensors[input->name] = *tensor;
      else if (Result added = add_rows(path.string(), *input, *tensor); !added)
        return added;
    }
    return whole.tensors.empty() ? Result() : add(std::move(whole));
  }

  // A tensor of more rows than the model takes is several samples.
  Result add_rows(const std::string& path, const onnx::ValueFacts& input, const LiteralRef& tensor) {
    auto rows = first_extent(input, import_);
    if (tensor->dims().empty() || !rows || *rows < 1 || tensor->dims()[0] <= *rows ||
        tensor->dims()[0] % *rows != 0)
      return add({path, {{input.name, tensor}}, {}});
    for (int64_t begin = 0; begin < tensor->dims()[0]; begin += *rows)
      if (Result added = add(
              {path + "[" + std::to_string(begin) + "]", {{input.name, rows_of(tensor, begin, *rows)}}, {}});
          !added)
        return added;
    return {};
  }

  const onnx::ModelFacts facts_;
  const onnx::ImportOptions& import_;
  std::vector<const onnx::ValueFacts*> required_;
  Samples samples_;
};

Result check_finite(const Sample& sample) {
  for (const auto& [name, tensor] : sample.tensors) {
    if (!is_float(tensor->dtype())) continue;
    for (int64_t i = 0; i < tensor->num_elements(); ++i) {
      double value = tensor->get_double(i);
      if (value - value != 0)
        return usage_error("'" + sample.name + "': element " + std::to_string(i) + " of input '" + name +
                           "' is " + (value != value ? "NaN" : "infinite") +
                           ", calibration data has to be finite");
    }
  }
  return {};
}

} // namespace

Expected<Samples> read_calibration_data(const std::string& folder, const onnx::ModelFacts& facts,
                                        const onnx::ImportOptions& import) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return usage_error("--data '" + folder + "' is not a folder that can be read");
  auto samples = Reader(facts, import).folder(folder);
  if (!samples) return samples;
  for (const Sample& sample : *samples)
    if (Result finite = check_finite(sample); !finite) return finite.error();
  return samples;
}

const onnx::ValueFacts* find_input_of_file(const onnx::ModelFacts& facts, const std::string& name) {
  for (const onnx::ValueFacts& input : facts.inputs) {
    std::string as_file = input.name;
    std::replace(as_file.begin(), as_file.end(), '/', '_');
    if (name == input.name || name == as_file) return &input;
  }
  return nullptr;
}

std::vector<std::string> calibration_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error))
    if (entry.is_regular_file(error)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

} // namespace firn::driver
