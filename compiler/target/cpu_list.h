// The CPUs of one object that has code for several.
#pragma once

#include "compiler/target/machine.h"

#include <span>

namespace firn {

// A CPU by the name it was asked for with.
struct NamedTarget {
  std::string name; // "x86-64-v3", "armv8.2-a+dotprod"
  Machine target;
};

// The CPUs of these names (find_target), the most able first: the order in which a program takes the first
// that its own CPU can follow. All but the first have vectors as long as the first one's. What cannot lie in
// one object is a usage error: other architectures, two CPUs that ask for the same features.
Expected<std::vector<NamedTarget>> find_targets(std::string_view triple, std::span<const std::string> names);

} // namespace firn
