// Chooses forms for resampled lines.
#include "compiler/plan/resample/resample.h"

#include "compiler/plan/composites.h"

#include <algorithm>
#include <bit>

namespace firn::plan {
namespace {

constexpr int64_t kMaxPeriod = 4;    // vectors until the shuffles repeat
constexpr int64_t kMaxUnrolled = 40; // vectors with shuffles of their own
constexpr int64_t kMaxSmall = 4;     // kMaxUnrolled for small code

using Form = ResamplePlan::Form;
using Run = RowShuffles::Run;

ShufflePattern pattern_at(const ResampledRows& resampled, int64_t first, int64_t lanes) {
  const ResampledDim& dim = resampled.dims.back();
  auto index = [&](int64_t t, int64_t lane) {
    return dim.indices->get_int(t * dim.extent() + std::min(first + lane, resampled.out - 1));
  };
  ShufflePattern pattern;
  pattern.base = resampled.in;
  for (int64_t t = 0; t < dim.taps(); ++t)
    for (int64_t lane = 0; lane < lanes; ++lane) pattern.base = std::min(pattern.base, index(t, lane));
  for (int64_t t = 0; t < dim.taps(); ++t) {
    pattern.lanes.emplace_back();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      pattern.lanes.back().push_back(index(t, lane) - pattern.base);
      pattern.span = std::max(pattern.span, pattern.lanes.back().back());
    }
  }
  return pattern;
}

Run longest_run(const std::vector<ShufflePattern>& patterns, size_t whole) {
  Run best;
  for (size_t period = 1; period <= kMaxPeriod; ++period)
    for (size_t first = 0; first + period < whole;) {
      Run run{first, 1, period, patterns[first + period].base - patterns[first].base};
      auto continues = [&](size_t v) {
        return patterns[v].repeats(patterns[v - period]) &&
               patterns[v].base - patterns[v - period].base == run.advance;
      };
      size_t end = first + period;
      while (end < whole && continues(end)) ++end;
      run.count = (end - first) / period;
      if (run.count > 1 && run.count * period > best.count * best.period) best = run;
      first = std::max(first + 1, end - period + 1);
    }
  return best;
}

// Prefers shuffles as long as their code is short: gathers take a step per element.
ResamplePlan choose(const ResampledRows& resampled, const PlanOptions& options) {
  int64_t lanes = options.target.cpu.register_lanes(32);
  if (resampled.inner > 1 && resampled.inner < lanes) lanes = 1; // few channels last
  if (resampled.inner > 1 || lanes == 1) return {Form::Vectors, lanes};
  if (resampled.dims.back().indices->is_opaque()) return {Form::Gathers, lanes};
  RowShuffles shuffles = RowShuffles::of(resampled, lanes);
  bool is_short = shuffles.unrolled() <= (options.goals.optimize_size() ? kMaxSmall : kMaxUnrolled);
  return {shuffles.are_near(lanes) && is_short ? Form::Shuffles : Form::Gathers, lanes};
}

} // namespace

std::optional<ResampledRows> ResampledRows::of(const Instruction& composite) {
  auto dims = find_resample(composite);
  if (!dims) return std::nullopt;
  ResampledRows resampled;
  resampled.dims = std::move(*dims);
  resampled.source = physical_dims_of(composite.operand(0).type().at_bound());
  resampled.target = physical_dims_of(composite.type().at_bound());
  resampled.outermost = composite.type().physical_extents()[0];
  while (resampled.target[resampled.line].logical != resampled.dims.back().dim) ++resampled.line;
  for (size_t i = resampled.line + 1; i < resampled.target.size(); ++i)
    resampled.inner *= resampled.target[i].extent;
  resampled.in = resampled.source[resampled.line].extent;
  resampled.out = resampled.target[resampled.line].extent;
  return resampled;
}

RowShuffles RowShuffles::of(const ResampledRows& resampled, int64_t lanes) {
  RowShuffles shuffles;
  shuffles.last = std::max<int64_t>(0, resampled.out - lanes);
  for (int64_t v = 0; v + lanes <= resampled.out; v += lanes)
    shuffles.patterns.push_back(pattern_at(resampled, v, lanes));
  if (resampled.out % lanes != 0) shuffles.patterns.push_back(pattern_at(resampled, shuffles.last, lanes));
  // The last vector is not a whole one if it overlaps the one before.
  shuffles.run = longest_run(shuffles.patterns, static_cast<size_t>(resampled.out / lanes));
  return shuffles;
}

bool RowShuffles::are_near(int64_t lanes) const {
  return std::all_of(patterns.begin(), patterns.end(),
                     [&](const ShufflePattern& pattern) { return pattern.span < 2 * lanes; });
}

std::string complete(ResamplePlan& plan, const Instruction& composite, const PlanOptions& options) {
  auto resampled = ResampledRows::of(composite);
  if (!resampled) return "this is no resampling with tables";
  if (plan.lanes == 0) plan = choose(*resampled, options);
  int64_t max = options.target.cpu.lanes(32);
  if (plan.lanes > max || !std::has_single_bit(static_cast<uint64_t>(plan.lanes)))
    return "vectors have a power of two up to " + std::to_string(max) + " lanes";
  bool side_by_side = resampled->inner == 1 && plan.lanes > 1;
  if (side_by_side == (plan.form == Form::Vectors))
    return side_by_side ? "neighbours of a line lie side by side"
                        : "no neighbours of a line lie side by side";
  if (!side_by_side && plan.lanes > resampled->inner)
    return "there are " + std::to_string(resampled->inner) + " elements between neighbours of a line";
  if (plan.form == Form::Shuffles && resampled->dims.back().indices->is_opaque())
    return "the places along the line are not known";
  if (plan.form == Form::Shuffles && !RowShuffles::of(*resampled, plan.lanes).are_near(plan.lanes))
    return "two vectors do not hold all that one of the result wants";
  return "";
}

} // namespace firn::plan
