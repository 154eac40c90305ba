// Cycles of walks over windows of blocked channels, by counting what a tile of positions takes.
#pragma once

#include "compiler/plan/planning_context.h"
#include "compiler/plan/windows/plan.h"

namespace firn::plan {

// A walk as the count sees it: windows of `window`, each position of which combines `channels` channels.
struct WindowWalk {
  Type result;
  std::vector<WindowDim> window; // spatial dims
  int64_t channels = 1;
  bool has_taps = false; // a depthwise convolution's; pooling has none
};

// Cycles of one run, the map and the taps near. `taps_in_registers`: taps are not loaded again by each tile.
double window_cycles(const WindowWalk& walk, const WindowTiling& tiling, bool taps_in_registers,
                     const Machine& target);

// Other tilings to choose from, the widest tile of `max_pixels` positions and code of `max_body` steps.
std::vector<WindowTiling> window_tilings(const WindowWalk& walk, int64_t max_pixels, int64_t max_body);

} // namespace firn::plan
