// The arrays of examples that `firn train` reads: a row of each along the first axis is an example.
#pragma once

#include "compiler/frontend/onnx/import.h"

#include <map>
#include <string>

namespace firn::driver {

// The name of arrays of labels, unless the model has an input of that name.
inline constexpr char kLabels[] = "labels";

struct DataArray {
  std::string source; // "data/image.npy", "data.npz:image", for messages
  LiteralRef values;
};

struct DataArrays {
  std::string path;
  std::map<std::string, DataArray> by_name; // inputs by the model's names for them, and labels
  int64_t examples = 0;                     // 1 or more
};

// Reads an archive data.npz, or a folder with one, or with NAME.npy for each input and labels.npy. A name has
// _ for each / of the input's, and a single array beside labels is for a single input, whatever it is called.
// Inputs that `import` fixes are left out. A usage error names file and array.
Expected<DataArrays> read_data_arrays(const std::string& path, const onnx::ModelFacts& facts,
                                      const onnx::ImportOptions& import);

} // namespace firn::driver
