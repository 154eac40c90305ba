// Measurements over the trial, and what follows from them.
#include "compiler/quantize/choose.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace firn::quantize {
namespace {

constexpr size_t kHarmSamples = 4; // harms order layers; a few samples do

using Rules = std::map<std::string, RangeRule>; // by activation

// The ranges of all activations by all rules, as samples tell them.
class Ranges {
public:
  // Activations that these samples do not have are taken from `all`.
  Ranges(const LayerChoices& plan, const Statistics& samples, const Statistics& all, ActivationType type)
      : type_(type) {
    for (const auto& [name, planned] : plan.tensors) {
      const Histogram& histogram = (samples.has(name) ? samples : all).histogram(name);
      for (RangeRule rule : kRangeRules)
        ranges_[name].push_back(choose_range(histogram, rule, levels_of(type)));
    }
  }
  void apply(LayerChoices& plan, const Rules& rules) const {
    for (auto& [name, planned] : plan.tensors) {
      const std::vector<Range>& ranges = ranges_.at(name);
      planned.rule = rules.at(name);
      planned.range = ranges[static_cast<size_t>(planned.rule)];
      planned.narrow = make_grid(planned.range, type_);
      planned.wide = make_grid(ranges[static_cast<size_t>(RangeRule::HalfRoom)], ActivationType::U16);
    }
  }

private:
  ActivationType type_;
  std::map<std::string, std::vector<Range>> ranges_; // by rule
};

Rules same_rule(const LayerChoices& plan, RangeRule rule) {
  Rules rules;
  for (const auto& [name, planned] : plan.tensors) rules[name] = rule;
  return rules;
}

std::vector<Precision> precisions(const LayerChoices& plan) {
  std::vector<Precision> list;
  for (const LayerChoice& planned : plan.layers) list.push_back(planned.precision);
  return list;
}

void set_precisions(LayerChoices& plan, const std::vector<Precision>& list) {
  for (size_t i = 0; i < list.size(); ++i) plan.layers[i].precision = list[i];
}

// Each layer's error where all others are exact: the switches are off, so that what goes on is exact.
LayerChoices all_exact(LayerChoices plan) {
  for (LayerChoice& planned : plan.layers) planned.precision = Precision::Float;
  return plan;
}

Expected<std::vector<LocalError>> local_errors(Trial& trial, const LayerChoices& plan,
                                               const std::vector<Sample>& samples) {
  std::vector<LocalError> errors(plan.layers.size());
  const LayerChoices exact = all_exact(plan);
  std::vector<Trial::Setting> settings;
  for (const Sample& sample : samples) settings.push_back({&exact, &sample});
  auto ignore = [](size_t, const Tensors&) { return Result(); };
  if (Result done = trial.run(settings, ignore, &errors); !done) return done.error();
  return errors;
}

// Rules on trial: each sample is run with ranges that are told from the parts of samples that it is not in.
class Contest {
public:
  Contest(Trial& trial, const LayerChoices& plan, const Calibration& calibration,
          const std::vector<Sample>& samples, const std::vector<Tensors>& exact, ActivationType type)
      : trial_(trial), plan_(plan), calibration_(calibration), samples_(samples), exact_(exact) {
    for (size_t part = 0; part < calibration.parts(); ++part)
      ranges_.emplace_back(plan, calibration.without(part), calibration.all(), type);
    // Enough samples to tell rules apart, taken evenly from all.
    constexpr size_t kMaxSamples = 32;
    const size_t count = std::min(samples.size(), kMaxSamples);
    for (size_t i = 0; i < count; ++i) taken_.push_back(i * samples.size() / count);
  }

  // The errors of layers when all before them is exact.
  Expected<std::vector<LocalError>> local_errors(const Rules& rules) {
    std::vector<LocalError> errors(plan_.layers.size());
    auto ignore = [](size_t, const Tensors&) { return Result(); };
    if (Result done = run(all_exact(plan_), rules, ignore, &errors); !done) return done.error();
    return errors;
  }

  // The error of the outputs when all layers are quantised.
  Expected<double> output_error(const Rules& rules) {
    OutputErrors errors;
    auto add = [&](size_t number, const Tensors& outputs) -> Result {
      errors.add(exact_[taken_[number]], outputs);
      return {};
    };
    if (Result done = run(plan_, rules, add, nullptr); !done) return done.error();
    return errors.relative();
  }

private:
  Result run(const LayerChoices& plan, const Rules& rules, const Executable::Take& take,
             std::vector<LocalError>* errors) {
    std::vector<LayerChoices> plans(ranges_.size(), plan);
    for (size_t part = 0; part < plans.size(); ++part) ranges_[part].apply(plans[part], rules);
    std::vector<Trial::Setting> settings;
    for (size_t sample : taken_)
      settings.push_back({&plans[calibration_.part_of(sample)], &samples_[sample]});
    return trial_.run(settings, take, errors);
  }

  Trial& trial_;
  const LayerChoices& plan_;
  const Calibration& calibration_;
  const std::vector<Sample>& samples_;
  const std::vector<Tensors>& exact_;
  std::vector<Ranges> ranges_; // by part: as the other parts tell them
  std::vector<size_t> taken_;
};

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
Expected<double> harm_of(Trial& trial, LayerChoices& plan, size_t layer, Precision precision,
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
Expected<BestRules> best_by_layer(Contest& contest, const LayerChoices& plan) {
  std::map<std::string, double> min, least_roomy;
  BestRules best;
  for (RangeRule rule : kRangeRules) {
    auto errors = contest.local_errors(same_rule(plan, rule));
    if (!errors) return errors.error();
    std::map<std::string, double> sums;
    for (size_t i = 0; i < plan.layers.size(); ++i) {
      double relative = (*errors)[i].relative();
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
    note(min, best.any);
    if (rule == RangeRule::QuarterRoom || rule == RangeRule::HalfRoom) note(least_roomy, best.roomy);
  }
  return best;
}

} // namespace

Result choose_ranges(Trial& trial, LayerChoices& plan, const Calibration& calibration,
                     const std::vector<Sample>& samples, const std::vector<Tensors>& exact,
                     ActivationType type) {
  Contest contest(trial, plan, calibration, samples, exact, type);
  auto best = best_by_layer(contest, plan);
  if (!best) return best.error();
  // The most careful rules come first.
  std::vector<Rules> candidates{same_rule(plan, RangeRule::HalfRoom), best->roomy,
                                same_rule(plan, RangeRule::QuarterRoom), best->any};
  for (RangeRule rule :
       {RangeRule::MinMax, RangeRule::Percentile, RangeRule::LeastSquares, RangeRule::Entropy})
    candidates.push_back(same_rule(plan, rule));
  std::vector<double> found;
  for (const Rules& rules : candidates) {
    auto error = contest.output_error(rules);
    if (!error) return error.error();
    found.push_back(*error);
  }
  // Choose the most careful rules that these few samples cannot tell from the best.
  const double chance = 1 + 1 / static_cast<double>(samples.size());
  const double limit = chance * *std::min_element(found.begin(), found.end());
  size_t chosen = 0;
  while (chosen + 1 < found.size() && !(found[chosen] <= limit)) ++chosen;
  Ranges(plan, calibration.all(), calibration.all(), type).apply(plan, candidates[chosen]);
  auto errors = local_errors(trial, plan, samples);
  if (!errors) return errors.error();
  for (size_t i = 0; i < plan.layers.size(); ++i)
    plan.layers[i].correction = corrections((*errors)[i], samples.size());
  errors = local_errors(trial, plan, samples);
  if (!errors) return errors.error();
  for (size_t i = 0; i < plan.layers.size(); ++i) plan.layers[i].local_error = (*errors)[i].relative();
  return {};
}

Expected<double> measure(Trial& trial, const LayerChoices& plan, const std::vector<Sample>& samples,
                         const std::vector<Tensors>& exact) {
  OutputErrors errors;
  std::vector<Trial::Setting> settings;
  for (const Sample& sample : samples) settings.push_back({&plan, &sample});
  Result done = trial.run(settings, [&](size_t number, const Tensors& outputs) -> Result {
    errors.add(exact[number], outputs);
    return {};
  });
  if (!done) return done.error();
  return errors.relative();
}

Result meet_budget(Trial& trial, LayerChoices& plan, const std::vector<Sample>& samples,
                   const std::vector<Tensors>& exact, double budget, ActivationType type) {
  for (LayerChoice& planned : plan.layers)
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
  // The precision of a layer that is taken out; found when that happens first.
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
        constexpr double kMax = 0.1; // share of the harm that 16-bit activations may leave
        if (*wide < kMax * plan.layers[layer].harm && *wide * static_cast<double>(count) < budget * budget)
          instead[layer] = Precision::Wide;
      }
      plan.layers[layer].precision = *instead[layer];
    }
    return {};
  };
  // Find the fewest layers to take out.
  size_t min = 1, max = count;
  while (min < max) {
    size_t middle = (min + max) / 2;
    if (Result taken = take_out(middle); !taken) return taken;
    error = measure(trial, plan, samples, exact);
    if (!error) return error.error();
    (*error <= budget ? max : min) = *error <= budget ? middle : middle + 1;
  }
  if (Result taken = take_out(max); !taken) return taken;
  error = measure(trial, plan, samples, exact);
  if (!error) return error.error();
  // The errors of layers with 16-bit activations may add up; then these stay in floats as well.
  if (*error > budget)
    for (LayerChoice& planned : plan.layers)
      if (planned.precision == Precision::Wide) planned.precision = Precision::Float;
  return {};
}

} // namespace firn::quantize
