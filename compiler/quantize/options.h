// What a user asks of the quantiser, the calibration data, and the engine that runs models on it.
#pragma once

#include "compiler/graph/literal.h"
#include "compiler/support/diagnostic.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace firn::quantize {

enum class ActivationType : uint8_t { U8, S8, U16 };

// How a layer computes: on activations of the type asked for, on 16-bit activations, or in floats.
enum class Precision : uint8_t { Narrow, Wide, Float };

struct Options {
  ActivationType activations = ActivationType::U8;
  std::optional<double> budget;  // largest relative error of the outputs; none: all that can be is quantised
  std::vector<std::string> keep; // names of nodes that stay as they are
};

// One run's inputs by the names that a module has for them.
struct Sample {
  std::string name; // the file or folder that it was read from
  std::map<std::string, LiteralRef> tensors;
  std::map<std::string, int64_t> lengths; // of sequences
};

using Tensors = std::map<std::string, LiteralRef>; // by name

// A model file, ready to run. Values that are added to a sample are inputs like its own.
class Executable {
public:
  virtual ~Executable() = default;
  virtual Expected<Tensors> run(const Sample& sample, const Tensors& added) = 0;
  // What the cost model says that one run takes on the machine compiled for; 0 before the first run.
  virtual double predicted_cycles() const = 0;
};

using Engine = std::function<Expected<std::unique_ptr<Executable>>(const std::string& model)>;
using Progress = std::function<void(const std::string& phase)>;

} // namespace firn::quantize
