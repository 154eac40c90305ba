// The user's options for the quantiser, the calibration data, and the engine that runs models on it.
#pragma once

#include "compiler/graph/literal.h"
#include "compiler/support/diagnostic.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace firn::quantize {

enum class ActivationType : uint8_t { U8, S8, U16 };

// How a layer computes: on activations of the type asked for, on 16-bit activations, or in floats.
enum class Precision : uint8_t { Narrow, Wide, Float };

struct Options {
  ActivationType activations = ActivationType::U8;
  std::optional<double> budget;  // largest relative error of the outputs; none: all that can be is quantised
  bool size = false;             // bytes count more than time: layers that gain no time are quantised too
  std::string machine;           // the one that times are predicted for, as messages call it
  std::vector<std::string> keep; // names of nodes that stay as they are
  std::set<std::string> states;  // inputs that may be one constant, as runs start from one value
};

// One run's inputs by the names that a module has for them.
struct Sample {
  std::string name; // the file or folder that it was read from
  std::map<std::string, LiteralRef> tensors;
  std::map<std::string, int64_t> lengths; // lengths of sequences
};

using Tensors = std::map<std::string, LiteralRef>; // by name

// Inputs of one run: a sample's, and values that are added to them under names of their own.
struct Run {
  const Sample* sample;
  Tensors added;
};

// A model file, ready to run.
class Executable {
public:
  // Gets the number of a run and what it gave; an error ends the whole.
  using Take = std::function<Result(size_t number, Tensors outputs)>;
  virtual ~Executable() = default;
  // Runs all, several at the same time; `take` is called for one after the other, in their order.
  virtual Result run(const std::vector<Run>& runs, const Take& take) = 0;
  // The cycles of a run on this sample on the machine compiled for, by the cost model; nothing is run.
  virtual Expected<double> predicted_cycles(const Sample& sample) = 0;
};

using Engine = std::function<Expected<std::unique_ptr<Executable>>(const std::string& model)>;
using Progress = std::function<void(const std::string& phase)>;

} // namespace firn::quantize
