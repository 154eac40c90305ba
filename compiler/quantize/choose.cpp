// Measurements over the trial, and what follows from them.
#include "compiler/quantize/choose.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace firn::quantize {
namespace {

constexpr size_t kHarmSamples = 4; // harms order layers; a few samples do

void set_range(PlannedTensor& planned, const Histogram& histogram, RangeRule rule, ActivationType type) {
  planned.rule = rule;
  planned.range = choose_range(histogram, rule, levels_of(type));
  planned.narrow = make_grid(planned.range, type);
  planned.wide = make_grid(choose_range(histogram, RangeRule::HalfRoom, levels_of(ActivationType::U16)),
                           ActivationType::U16);
}

using Rules = std::map<std::string, RangeRule>; // by activation

void set_ranges(Plan& plan, const Statistics& statistics, const Rules& rules, ActivationType type) {
  for (auto& [name, planned] : plan.tensors)
    set_range(planned, statistics.histogram(name), rules.at(name), type);
}

Rules same_rule(const Plan& plan, RangeRule rule) {
  Rules rules;
  for (const auto& [name, planned] : plan.tensors) rules[name] = rule;
  return rules;
}

std::vector<Precision> precisions(const Plan& plan) {
  std::vector<Precision> list;
  for (const PlannedLayer& planned : plan.layers) list.push_back(planned.precision);
  return list;
}

void set_precisions(Plan& plan, const std::vector<Precision>& list) {
  for (size_t i = 0; i < list.size(); ++i) plan.layers[i].precision = list[i];
}

// Each layer's error where all others are exact: the switches are off, so that what goes on is exact.
Result add_local_errors(Trial& trial, const Plan& plan, const Sample& sample,
                        std::vector<LocalError>& errors) {
  Plan exact = plan;
  for (PlannedLayer& planned : exact.layers) planned.precision = Precision::Float;
  auto run = trial.run(exact, sample, &errors);
  return run ? Result() : run.error();
}

Expected<std::vector<LocalError>> local_errors(Trial& trial, const Plan& plan,
                                               const std::vector<Sample>& samples) {
  std::vector<LocalError> errors(plan.layers.size());
  for (const Sample& sample : samples)
    if (Result added = add_local_errors(trial, plan, sample, errors); !added) return added.error();
  return errors;
}

// Runs `judge(plan, sample)` for every sample with ranges that are not from it; of a single one there is no
// other.
template <class F>
Result on_unseen(Plan plan, const Calibration& calibration, const Rules& rules, size_t samples,
                 ActivationType type, const F& judge) {
  for (Fold fold : {Fold::Even, Fold::Odd}) {
    set_ranges(plan, samples > 1 ? calibration.of(fold) : calibration.all(), rules, type);
    for (size_t i = 0; i < samples; ++i) {
      if (samples > 1 && fold_of(i) == fold) continue;
      if (Result judged = judge(plan, i); !judged) return judged;
    }
  }
  return {};
}

// The correction of each channel is the mean, less what chance may have in it: by the variance between
// samples.
std::vector<float> corrections(const LocalError& error, size_t samples) {
  std::vector<float> list;
  const auto count = static_cast<double>(samples);
  for (size_t c = 0; c < error.means.size(); ++c) {
    double mean = error.means[c] / count, share = 1;
    if (samples > 1 && mean != 0) {
      double variance = std::max(0.0, error.squared_means[c] / count - mean * mean) / (count - 1);
      share = std::max(0.0, 1 - variance / (mean * mean));
    }
    list.push_back(static_cast<float>(-mean * share));
  }
  return list;
}

// The squared relative error of the outputs where one layer alone is quantised.
Expected<double> harm_of(Trial& trial, Plan& plan, size_t layer, Precision precision,
                         const std::vector<Sample>& samples, const std::vector<Tensors>& exact) {
  std::vector<Precision> kept = precisions(plan), alone(kept.size(), Precision::Float);
  alone[layer] = precision;
  set_precisions(plan, alone);
  auto error = measure(trial, plan,
                       {samples.begin(), samples.begin() + std::min(samples.size(), kHarmSamples)}, exact);
  set_precisions(plan, kept);
  if (!error) return error;
  return *error * *error;
}

// For each activation the rule of the smallest local error among those with room beyond what was seen, and
// among all.
struct BestRules {
  Rules roomy, any;
};
Expected<BestRules> best_by_layer(Trial& trial, const Plan& plan, const Calibration& calibration,
                                  const std::vector<Sample>& samples, ActivationType type) {
  std::map<std::string, double> least, least_roomy;
  BestRules best;
  for (RangeRule rule : kRangeRules) {
    std::vector<LocalError> errors(plan.layers.size());
    Result judged = on_unseen(
        plan, calibration, same_rule(plan, rule), samples.size(), type,
        [&](const Plan& tried, size_t i) { return add_local_errors(trial, tried, samples[i], errors); });
    if (!judged) return judged.error();
    std::map<std::string, double> sums;
    for (size_t i = 0; i < plan.layers.size(); ++i) {
      double relative = errors[i].relative();
      for (const std::string& name : plan.layers[i].activations) sums[name] += relative * relative;
    }
    auto note = [&](std::map<std::string, double>& known, Rules& rules) {
      for (const auto& [name, sum] : sums) {
        auto [entry, is_new] = known.try_emplace(name, sum);
        if (!is_new && !(sum < entry->second)) continue;
        entry->second = sum;
        rules[name] = rule;
      }
    };
    note(least, best.any);
    if (rule == RangeRule::QuarterRoom || rule == RangeRule::HalfRoom) note(least_roomy, best.roomy);
  }
  return best;
}

// The error of the outputs with all layers quantised by these rules.
Expected<double> output_error(Trial& trial, const Plan& plan, const Calibration& calibration,
                              const Rules& rules, const std::vector<Sample>& samples,
                              const std::vector<Tensors>& exact, ActivationType type) {
  OutputErrors errors;
  Result judged =
      on_unseen(plan, calibration, rules, samples.size(), type, [&](const Plan& tried, size_t i) -> Result {
        auto outputs = trial.run(tried, samples[i]);
        if (!outputs) return outputs.error();
        errors.add(exact[i], *outputs);
        return {};
      });
  if (!judged) return judged.error();
  return errors.relative();
}

} // namespace

Result choose_ranges(Trial& trial, Plan& plan, const Calibration& calibration,
                     const std::vector<Sample>& samples, const std::vector<Tensors>& exact,
                     ActivationType type) {
  auto best = best_by_layer(trial, plan, calibration, samples, type);
  if (!best) return best.error();
  // The most careful first.
  std::vector<Rules> candidates{same_rule(plan, RangeRule::HalfRoom), best->roomy,
                                same_rule(plan, RangeRule::QuarterRoom), best->any};
  for (RangeRule rule :
       {RangeRule::MinMax, RangeRule::Percentile, RangeRule::LeastSquares, RangeRule::Entropy})
    candidates.push_back(same_rule(plan, rule));
  std::vector<double> found;
  for (const Rules& rules : candidates) {
    auto error = output_error(trial, plan, calibration, rules, samples, exact, type);
    if (!error) return error.error();
    found.push_back(*error);
  }
  // Of those that a few samples cannot tell from the best, the most careful one.
  const double chance = 1 + 1 / std::sqrt(static_cast<double>(samples.size()));
  const double limit = chance * *std::min_element(found.begin(), found.end());
  size_t chosen = 0;
  while (chosen + 1 < found.size() && !(found[chosen] <= limit)) ++chosen;
  set_ranges(plan, calibration.all(), candidates[chosen], type);
  auto errors = local_errors(trial, plan, samples);
  if (!errors) return errors.error();
  for (size_t i = 0; i < plan.layers.size(); ++i)
    plan.layers[i].correction = corrections((*errors)[i], samples.size());
  errors = local_errors(trial, plan, samples);
  if (!errors) return errors.error();
  for (size_t i = 0; i < plan.layers.size(); ++i) plan.layers[i].local_error = (*errors)[i].relative();
  return {};
}

Expected<double> measure(Trial& trial, const Plan& plan, const std::vector<Sample>& samples,
                         const std::vector<Tensors>& exact) {
  OutputErrors errors;
  for (size_t i = 0; i < samples.size(); ++i) {
    auto outputs = trial.run(plan, samples[i]);
    if (!outputs) return outputs.error();
    errors.add(exact[i], *outputs);
  }
  return errors.relative();
}

Result meet_budget(Trial& trial, Plan& plan, const std::vector<Sample>& samples,
                   const std::vector<Tensors>& exact, double budget, ActivationType type) {
  for (PlannedLayer& planned : plan.layers)
    if (planned.layer.reason.empty()) planned.precision = Precision::Narrow;
  auto error = measure(trial, plan, samples, exact);
  if (!error) return error.error();
  if (*error <= budget) return {};
  const size_t count = plan.layers.size();
  for (size_t i = 0; i < count; ++i) {
    if (plan.layers[i].harm > 0) continue; // known from before
    auto harm = harm_of(trial, plan, i, Precision::Narrow, samples, exact);
    if (!harm) return harm.error();
    plan.layers[i].harm = *harm;
  }
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return plan.layers[a].harm > plan.layers[b].harm; });
  // What a layer is instead of narrow; asked for once it is taken out.
  std::vector<std::optional<Precision>> instead(count);
  auto take_out = [&](size_t how_many) -> Result {
    for (size_t i = 0; i < count; ++i) {
      size_t layer = order[i];
      if (!plan.layers[layer].layer.reason.empty()) continue; // it is out already
      if (i >= how_many) {
        plan.layers[layer].precision = Precision::Narrow;
        continue;
      }
      if (!instead[layer]) {
        instead[layer] = Precision::Float;
        auto wide = type == ActivationType::U16
                        ? Expected<double>(INFINITY)
                        : harm_of(trial, plan, layer, Precision::Wide, samples, exact);
        if (!wide) return wide.error();
        constexpr double kMost = 0.1; // of the harm, that 16-bit activations may leave
        if (*wide < kMost * plan.layers[layer].harm && *wide * static_cast<double>(count) < budget * budget)
          instead[layer] = Precision::Wide;
      }
      plan.layers[layer].precision = *instead[layer];
    }
    return {};
  };
  // The fewest that do.
  size_t least = 1, most = count;
  while (least < most) {
    size_t middle = (least + most) / 2;
    if (Result taken = take_out(middle); !taken) return taken;
    error = measure(trial, plan, samples, exact);
    if (!error) return error.error();
    (*error <= budget ? most : least) = *error <= budget ? middle : middle + 1;
  }
  if (Result taken = take_out(most); !taken) return taken;
  error = measure(trial, plan, samples, exact);
  if (!error) return error.error();
  // What 16-bit activations leave may add up; then those stay in floats as well.
  if (*error > budget)
    for (PlannedLayer& planned : plan.layers)
      if (planned.precision == Precision::Wide) planned.precision = Precision::Float;
  return {};
}

} // namespace firn::quantize
