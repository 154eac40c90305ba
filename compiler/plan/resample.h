// How lines of resampled images are combined: the places along a line that vectors of results want.
#pragma once

#include "compiler/graph/resample.h"
#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/options.h"
#include "compiler/plan/views.h"

namespace firn::plan {

struct ResampledRows {
  std::vector<ResampledDim> dims;          // in ascending order
  std::vector<PhysicalDim> source, target; // at their bounds
  IntExpr outermost;                       // the first extent of `target`, which may vary
  size_t line = 0;                         // physical number of the last resampled dim
  int64_t in = 0, out = 0, inner = 1;      // extents of lines; elements between neighbours

  // Nothing for instructions that are no resampling.
  static std::optional<ResampledRows> of(const Instruction& composite);
};

// Places of a vector of results in the line: `base` and, per tap, what is to be added for every lane.
struct ShufflePattern {
  int64_t base = 0, span = 0;
  std::vector<std::vector<int64_t>> lanes;
  bool repeats(const ShufflePattern& other) const { return lanes == other.lanes; }
};

// All vectors of a line whose neighbours lie side by side; the last one overlaps the one before where lines
// are no multiple.
struct RowShuffles {
  // Vectors [first, first + count * period) of the whole ones whose shuffles repeat after `period` vectors,
  // `advance` elements further on.
  struct Run {
    size_t first = 0, count = 0, period = 1;
    int64_t advance = 0;
  };
  std::vector<ShufflePattern> patterns; // of every vector
  Run run;
  int64_t last = 0; // where the last vector begins

  static RowShuffles of(const ResampledRows& resampled, int64_t lanes);
  // Whether two vectors hold all that any vector of results wants.
  bool are_near(int64_t lanes) const;
  // Vectors with code of their own.
  int64_t unrolled() const {
    return static_cast<int64_t>(patterns.size() - run.count * run.period + run.period);
  }
};

// Completes a plan whose form is left to the cost model. Says why a plan cannot be followed; empty: it can.
std::string complete(ResamplePlan& plan, const Instruction& composite, const PlanOptions& options);

} // namespace firn::plan
