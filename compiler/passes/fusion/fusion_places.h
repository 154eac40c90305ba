// The places at which a fusion's kernel computes its members: slices and transposes let one step of the
// kernel ask for several elements of a member, and for more still of the producers of that member, up to
// twice as many from each to the next.
#pragma once

#include "compiler/graph/module.h"

#include <optional>
#include <unordered_map>
#include <vector>

namespace firn {

// An element's index along one dim: stride times the step's index along `dim`, plus offset.
struct PlaceAxis {
  int dim = -1; // -1: a constant
  int64_t stride = 0, offset = 0;
  bool operator==(const PlaceAxis&) const = default;
};

// An element that one step computes.
struct MemberPlace {
  const Instruction* walked = nullptr; // the member that the kernel walks over: the last one, or a reduction
  int64_t steps = 0;                   // elements of its result, or of the operand it reduces
  std::vector<PlaceAxis> axes;
  bool operator==(const MemberPlace&) const = default;
};

// Places by member, each once. `members` are in program order, the last one is the kernel's result. Nothing
// if there are more than `max` places of elementwise members in all.
std::optional<std::unordered_map<const Instruction*, std::vector<MemberPlace>>>
places_of_members(const std::vector<Instruction*>& members, size_t max);

} // namespace firn
