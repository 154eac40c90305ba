// Decisions on walks over windows: depthwise convolutions, chains of them, and pooling.
#pragma once

#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/elements/plan.h"
#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// How the walk over windows of blocked channels is cut: a tile is a run of `pixels` positions of the result
// along one spatial dim.
struct WindowTiling {
  int64_t pixels = 1;
  int64_t along = 0;     // the spatial dim
  bool unrolled = false; // positions whose whole window is inside get straight code
  bool rolled = false;   // the window along that dim is a loop, so that code does not grow with it
  int64_t items = 16;    // items for threads: rows are cut if blocks of channels are fewer
  bool operator==(const WindowTiling&) const = default;
};

// A depthwise convolution, or one of narrow groups, over blocked channels.
struct DepthwisePlan {
  // That of f32, to which narrower factors are widened, or one of several steps: as many lines of a window.
  MacInstruction mac;
  WindowTiling tiling;
  bool taps_in_registers = false; // taps of a block of channels stay for all its tiles; needs unrolled code
  bool rolled_epilogue = false;   // see ContractionPlan
  bool bias_in_accumulators = false;
  Fields fields();
};

// A chain [convolution ->] depthwise convolution [-> convolution] in strips of lines of the result, so that
// what passes between them stays near. The members' own plans say how each is computed.
struct DepthwiseChainPlan {
  int64_t rows = 0;
  Fields fields();
};

// A convolution whose map is made in strips of as many lines as `rows` lines of the result read. The
// convolution's own plan says how that is computed; `code` is that of the map's elements.
struct LineBufferPlan {
  int64_t rows = 0;
  ElementCode code;
  Fields fields();
};

// A maximum, minimum or sum over windows of blocked channels.
struct PoolingPlan {
  WindowTiling tiling;
  Fields fields();
};

// Pooling where the elements of a row lie side by side: the rows of a window are reduced to one first,
// which stays in the nearest cache, then lanes along it.
struct RowPoolingPlan {
  int64_t lanes = 0; // 0: the cost model's
  int64_t max_unrolled_window =
      16; // rows of a window up to which they are straight code where all are inside
  Fields fields();
};

} // namespace firn::plan
