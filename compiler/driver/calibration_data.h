// Calibration data for `firn quantize`: a model's inputs for any number of runs.
#pragma once

#include "compiler/frontend/onnx/import.h"
#include "compiler/quantize/options.h"

namespace firn::driver {

// The samples of a folder, in the order of their names:
//   a folder of ONNX's layout (input_0.pb ...), or several in it, one sample each;
//   folders with INPUT.npy or INPUT.pb for every input, one sample each, or such files in the folder itself;
//   .npz files with an array for every input, one sample each;
//   .npy or .pb files for a model with one input, one sample each, or as many as fit along the first axis.
// Inputs that `import` fixes are not read, those that it makes states may be left out. Errors name the file
// and what was wanted.
Expected<std::vector<quantize::Sample>> read_calibration_data(const std::string& folder,
                                                              const onnx::ModelFacts& facts,
                                                              const onnx::ImportOptions& import);

// The input of which a file or an array has the name, with _ for each / of the input's; null if none has it.
const onnx::ValueFacts* find_input_of_file(const onnx::ModelFacts& facts, const std::string& name);

// The paths of all files below the folder, in order.
std::vector<std::string> calibration_files(const std::string& folder);

// NumPy's .npz archives of arrays that are stored, not deflated; by the array's name.
Expected<std::map<std::string, LiteralRef>> read_npz(const std::string& path);

} // namespace firn::driver
