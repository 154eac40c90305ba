// Small networks that hold every kind of kernel. The gates on spills check them kernel by kernel.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/passes/pass.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace firn::test {

struct GateNetwork {
  std::string name;
  std::function<std::unique_ptr<Module>()> module; // the module as a frontend makes it, before all passes
  firn::WeightType weight_type = firn::WeightType::AsGiven;
};

const std::vector<GateNetwork>& gate_networks();

// The assembly of a network's program after the passes that `firn compile` runs.
std::string compile_network(const GateNetwork& network, const std::string& cpu);

} // namespace firn::test
