// Counts cycles of walks over windows.
#include "compiler/plan/windows/window_cycles.h"

#include "compiler/plan/windows/windows.h"

#include <algorithm>
#include <cmath>

namespace firn::plan {
namespace {

// Instructions around a step of a loop, and around a tile: its start, its addresses and its stores.
constexpr double kLoopInstructions = 3, kTileInstructions = 8;
constexpr double kIssue = 4; // instructions per cycle

} // namespace

double window_cycles(const WindowWalk& walk, const WindowTiling& tiling, bool taps_in_registers,
                     const Machine& target) {
  const auto along = static_cast<size_t>(tiling.along);
  const Type result = walk.result.at_bound();
  double pixels = static_cast<double>(tiling.pixels), size = 1, parts = target.cpu.vector_parts;
  for (const WindowDim& dim : walk.window) size *= static_cast<double>(dim.size);
  const double steps = size * static_cast<double>(walk.channels),
               others = steps / static_cast<double>(walk.window[along].size);
  // Straight code loads a column once for all positions that reach it.
  const double reach = (pixels - 1) * static_cast<double>(walk.window[along].stride) +
                       static_cast<double>(walk.window[along].size);
  const double columns = tiling.unrolled ? others * reach : pixels * steps;
  const double taps = walk.has_taps && !taps_in_registers ? steps : 0;
  const double compute = pixels * steps * parts / target.cpu.fma_pipes;
  const double loads = (columns + taps) * parts / target.cpu.loads_per_cycle;
  // The steps of a position wait for each other, however many positions go side by side.
  const double latency = steps * (walk.has_taps ? target.cpu.fma_latency : 1);
  const double loops = tiling.unrolled ? 0 : (tiling.rolled ? steps : others) * kLoopInstructions / kIssue;
  const double tile = std::max({compute, loads, latency}) + loops + pixels + kTileInstructions / kIssue;
  const auto extent = static_cast<double>(result.dim(static_cast<int>(tiling.along) + 2));
  const double vectors = static_cast<double>(result.num_elements()) / window_lanes(target);
  return vectors / extent * std::ceil(extent / pixels) * tile;
}

std::vector<WindowTiling> window_tilings(const WindowWalk& walk, int64_t max_pixels, int64_t max_body) {
  int64_t steps = walk.channels;
  for (const WindowDim& dim : walk.window) steps *= dim.size;
  std::vector<WindowTiling> all;
  for (size_t along = 0; along < walk.window.size(); ++along) {
    const int64_t extent = walk.result.at_bound().dim(static_cast<int>(along) + 2);
    for (int64_t pixels = 1; pixels <= std::min(extent, max_pixels); ++pixels) {
      WindowTiling tiling{pixels, static_cast<int64_t>(along)};
      all.push_back(tiling);
      if (pixels * steps <= max_body) all.push_back({pixels, tiling.along, /*unrolled=*/true});
    }
  }
  return all;
}

} // namespace firn::plan
