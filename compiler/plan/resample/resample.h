// How lines of resampled images are combined: the places along a line that each vector of results reads.
#pragma once

#include "compiler/graph/resample.h"
#include "compiler/plan/options.h"
#include "compiler/plan/resample/plan.h"
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

// The places along a line that a vector of results reads: `base`, and per tap the distance of every lane from
// it.
struct ShufflePattern {
  int64_t base = 0, span = 0;
  std::vector<std::vector<int64_t>> lanes;
  bool repeats(const ShufflePattern& other) const { return lanes == other.lanes; }
};

// All vectors of a line whose neighbours lie side by side. The last one overlaps the one before if the line
// is no multiple of vectors.
struct RowShuffles {
  // Among the whole vectors, [first, first + count * period) have shuffles that repeat after `period`
  // vectors, `advance` elements further on.
  struct Run {
    size_t first = 0, count = 0, period = 1;
    int64_t advance = 0;
  };
  std::vector<ShufflePattern> patterns; // one for every vector
  Run run;
  int64_t last = 0; // place where the last vector begins

  static RowShuffles of(const ResampledRows& resampled, int64_t lanes);
  // Whether two vectors of the line hold all elements that any vector of results reads.
  bool are_near(int64_t lanes) const;
  // The number of vectors with code of their own.
  int64_t unrolled() const {
    return static_cast<int64_t>(patterns.size() - run.count * run.period + run.period);
  }
};

// Completes a plan whose form is left to the cost model. Says why a plan cannot be followed; empty: it can.
std::string complete(ResamplePlan& plan, const Instruction& composite, const PlanOptions& options);

} // namespace firn::plan
