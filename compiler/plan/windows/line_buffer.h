// Convolutions over a map that is made a few lines at a time, as they are read: padded, transposed or
// otherwise moved, or the padded result of another convolution. On machines whose memory is small the map
// takes the place of several lines only.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/options.h"
#include "compiler/plan/windows/plan.h"

#include <optional>

namespace firn::plan {

// A fusion of kind line_buffer. The members that make the map are code per element, or a convolution and the
// padding of its result.
struct LineBuffer {
  Value map;                                // is computed in the fusion's region
  const Instruction* convolution = nullptr; // or a contraction of one
  // Channels that are filtered at once, as a depthwise convolution does: the buffer has no more, in one
  // block. 0: all are.
  int block = 0;
  WindowDim across; // the window's first dim, which goes from line to line
  // The convolution, or contraction of one, whose result `map` pads; null: the map is made by its elements.
  // All its channels are buffered.
  const Instruction* producer = nullptr;
  // Lines of the map that `rows` lines of the result read.
  int64_t covered(int64_t rows) const;
  // The part of the map that is buffered for `rows` lines of the result.
  Type part(int64_t rows) const;
};

// Nothing if the fusion is none, or if the convolution's kernel cannot walk lines of the map.
std::optional<LineBuffer> find_line_buffer(const Instruction& fusion, const PlanOptions& options);

// Lines of the result whose part of the map should be buffered together, of a convolution or a contraction
// of one whose map is moved or padded elements; 0: the map should be made as a whole.
int64_t rows_to_buffer(const Instruction& convolution, const PlanOptions& options);
// Lines that should be buffered together for a depthwise convolution, or a contraction of one, that reads the
// padded result of the contraction `producer`; 0: that result should be made as a whole.
int64_t rows_to_buffer(const Instruction& producer, const Instruction& pad, const Instruction& convolution,
                       const PlanOptions& options);

// Completes the plan. Says why it cannot be followed for the fusion; empty: it can.
std::string complete(LineBufferPlan& plan, const Instruction& fusion, const PlanOptions& options);

} // namespace firn::plan
