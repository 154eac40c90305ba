// See model_gradients.h.
#include "tests/gradients/model_gradients.h"

#include "compiler/graph/function_type.h"
#include "compiler/passes/gradient/finite_differences.h"
#include "compiler/passes/gradient/widen_to_f64.h"
#include "compiler/passes/pass.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace firn::test {
namespace {

constexpr double kTolerance = 1e-6;
// A step may cross a kink, or the edge of a step of rounding: smaller ones are tried then.
constexpr double kSteps[] = {0x1p-10, 0x1p-15, 0x1p-20, 0x1p-25};
constexpr int kPlaces = 3; // a kink lies at few places, an error at all
constexpr size_t kMaxResults = 3;

GradientOutcome failed(const Diagnostic& error) {
  bool is_refused = error.fault == Fault::Unsupported;
  return {is_refused ? GradientVerdict::None : GradientVerdict::Failed, error.message};
}

class ModelGradients {
public:
  ModelGradients(Module& module, uint64_t seed, int order)
      : module_(module), main_(module.main()), random_(seed), order_(order) {}

  GradientOutcome check(const std::vector<std::vector<LiteralRef>>& runs) {
    gradient::widen_to_f64(module_);
    for (size_t i = 0; i < runs[0].size(); ++i)
      if (is_differentiable(runs[0][i]->type())) wrt_.push_back(static_cast<int>(i));
    if (wrt_.empty()) return {GradientVerdict::None, "no float input"};
    declare();
    if (pairs_.empty()) return {GradientVerdict::None, "no float result"};
    PipelineRun passes;
    if (Result done = run_passes(module_, passes_to_run(), passes); !done) return failed(done.error());
    for (const std::vector<LiteralRef>& inputs : runs)
      if (GradientOutcome outcome = check_run(inputs); outcome.verdict != GradientVerdict::Right)
        return outcome;
    return {GradientVerdict::Right, ""};
  }

private:
  std::string passes_to_run() { return random_() % 2 ? "differentiate" : pipeline_through_differentiate(); }

  GradientOutcome check_run(const std::vector<LiteralRef>& inputs) {
    GradientOutcome outcome{GradientVerdict::Right, ""};
    for (int place = 0; place < kPlaces; ++place) {
      move(inputs);
      outcome = compare_all();
      if (outcome.verdict != GradientVerdict::Wrong) break;
    }
    return outcome;
  }

  // Floats shrink, as domains such as [-1, 1] are closed; a 0 becomes positive.
  void move(const std::vector<LiteralRef>& inputs) {
    inputs_ = inputs;
    for (int number : wrt_) {
      LiteralRef& input = inputs_[static_cast<size_t>(number)];
      LiteralRef by = gradient::random_floats(DType::F64, input->dims(), 1 - 0x1p-8, 1 - 0x1p-9, random_);
      auto wide = std::make_shared<Literal>(DType::F64, input->dims());
      for (int64_t i = 0; i < input->num_elements(); ++i) {
        double value = input->get_double(i), factor = by->get_double(i);
        wide->set_double(i, value == 0 ? 1 - factor : value * factor);
      }
      input = std::move(wide);
    }
  }

  GradientOutcome compare_all() {
    auto results = evaluate_function(main_, std::vector<RuntimeValue>(inputs_.begin(), inputs_.end()));
    if (!results) return {GradientVerdict::None, "other inputs end it: " + results.error().message};
    for (const Pair& pair : pairs_)
      if (GradientOutcome outcome = compare(pair, *results); outcome.verdict != GradientVerdict::Right)
        return outcome;
    return {GradientVerdict::Right, ""};
  }

  // A function, its result, and the gradient of that.
  struct Pair {
    std::string primal;
    int from;
    std::string gradient;
    std::vector<int> wrt;
    int seed = -1; // the result of @main whose cotangent is the primal's last parameter; -1: it has none
  };

  void declare() {
    const std::vector<Value>& results = main_.body().results();
    for (size_t i = 0; i < results.size() && pairs_.size() < kMaxResults; ++i)
      if (is_differentiable(results[i].type())) declare({main_.name(), static_cast<int>(i), "", wrt_});
    if (order_ == 1) return;
    std::vector<Pair> first = std::move(pairs_);
    pairs_.clear();
    std::vector<int> wrt = wrt_;
    wrt.push_back(static_cast<int>(main_.body().parameters().size()));
    for (const Pair& pair : first)
      for (size_t i = 0; i < std::min(wrt_.size(), kMaxResults); ++i)
        declare({pair.gradient, static_cast<int>(i), "", wrt, pair.from});
  }

  void declare(Pair pair) {
    pair.gradient = "gradient of result " + std::to_string(pair.from) + " of " + pair.primal;
    module_.add_function(pair.gradient).gradient =
        GradientOf{pair.primal, pair.from, pair.wrt, {}, /*seedable=*/true};
    pairs_.push_back(std::move(pair));
  }

  // Along a direction of all inputs, and along one of each input alone.
  GradientOutcome compare(const Pair& pair, const std::vector<RuntimeValue>& results) {
    gradient::ComparedGradient compared{*module_.find(pair.primal), *module_.find(pair.gradient), pair.from,
                                        pair.wrt, inputs_};
    if (pair.seed >= 0) {
      const Literal& like = *results[static_cast<size_t>(pair.seed)].tensor;
      compared.inputs.push_back(gradient::random_floats(like.dtype(), like.dims(), -1, 1, random_));
    }
    for (size_t which = 0; which <= pair.wrt.size(); ++which) {
      uint64_t seed = random_();
      gradient::DirectionalDerivative best;
      for (double step : kSteps) {
        compared.step = step;
        std::mt19937_64 same(seed);
        auto found = which == pair.wrt.size() ? gradient::compare_along(compared, same)
                                              : gradient::compare_element(compared, which, -1, same);
        if (!found) return {GradientVerdict::Failed, found.error().message};
        if (step == kSteps[0] || found->error() < best.error()) best = *found;
        if (best.error() < kTolerance) break;
      }
      if (best.error() < kTolerance) continue;
      if (!std::isfinite(best.by_differences)) return {GradientVerdict::None, "differences are no numbers"};
      return {GradientVerdict::Wrong, describe(pair, which, best)};
    }
    return {GradientVerdict::Right, ""};
  }

  std::string describe(const Pair& pair, size_t which,
                       const gradient::DirectionalDerivative& derivative) const {
    std::string by = which == pair.wrt.size() ? "all inputs" : "input " + std::to_string(pair.wrt[which]);
    char numbers[120];
    std::snprintf(numbers, sizeof numbers, ": %.10g, by differences %.10g", derivative.by_gradient,
                  derivative.by_differences);
    return "@" + pair.gradient + " by " + by + numbers;
  }

  Module& module_;
  Function& main_;
  std::mt19937_64 random_;
  int order_;
  std::vector<LiteralRef> inputs_;
  std::vector<int> wrt_;
  std::vector<Pair> pairs_;
};

} // namespace

GradientOutcome check_model_gradients(Module& module, const std::vector<std::vector<LiteralRef>>& runs,
                                      uint64_t seed, int order) {
  return ModelGradients(module, seed, order).check(runs);
}

} // namespace firn::test
