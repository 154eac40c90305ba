// What planning is told besides the graph.
#pragma once

#include "compiler/target/target_machine.h"

namespace firn::plan {

struct Options {
  const TargetMachine& target;
  bool optimize_size = false;
};

} // namespace firn::plan
