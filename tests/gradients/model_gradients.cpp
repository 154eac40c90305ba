// See model_gradients.h.
#include "tests/gradients/model_gradients.h"

#include "compiler/graph/function_type.h"
#include "compiler/passes/gradient/finite_differences.h"
#include "compiler/passes/gradient/widen_to_f64.h"
#include "compiler/passes/pass.h"

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
  ModelGradients(Module& module, uint64_t seed) : module_(module), main_(module.main()), random_(seed) {}

  GradientOutcome check(const std::vector<LiteralRef>& inputs) {
    gradient::widen_to_f64(module_);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (is_differentiable(inputs[i]->type())) wrt_.push_back(static_cast<int>(i));
    if (wrt_.empty()) return {GradientVerdict::None, "no float input"};
    declare();
    if (results_.empty()) return {GradientVerdict::None, "no float result"};
    PipelineRun passes;
    if (Result done = run_passes(module_, passes_to_run(), passes); !done) return failed(done.error());
    GradientOutcome outcome{GradientVerdict::Right, ""};
    for (int place = 0; place < kPlaces; ++place) {
      move(inputs);
      outcome = compare_all();
      if (outcome.verdict != GradientVerdict::Wrong) break;
    }
    return outcome;
  }

private:
  std::string passes_to_run() {
    constexpr std::string_view last = "differentiate";
    if (random_() % 2) return std::string(last);
    std::string all = default_pipeline(/*for_target=*/false);
    return all.substr(0, all.find(last) + last.size());
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
    for (int from : results_)
      if (GradientOutcome outcome = compare(from); outcome.verdict != GradientVerdict::Right) return outcome;
    return {GradientVerdict::Right, ""};
  }

  std::string gradient_name(int from) const { return "gradient of result " + std::to_string(from); }

  void declare() {
    const std::vector<Value>& results = main_.body().results();
    for (size_t i = 0; i < results.size() && results_.size() < kMaxResults; ++i) {
      if (!is_differentiable(results[i].type())) continue;
      results_.push_back(static_cast<int>(i));
      module_.add_function(gradient_name(results_.back())).gradient =
          GradientOf{main_.name(), results_.back(), wrt_, {}, /*seedable=*/true};
    }
  }

  // Along a direction of all inputs, and along one of each input alone.
  GradientOutcome compare(int from) {
    gradient::ComparedGradient compared{main_, *module_.find(gradient_name(from)), from, wrt_, inputs_};
    for (size_t which = 0; which <= wrt_.size(); ++which) {
      uint64_t seed = random_();
      gradient::DirectionalDerivative best;
      for (double step : kSteps) {
        compared.step = step;
        std::mt19937_64 same(seed);
        auto found = which == wrt_.size() ? gradient::compare_along(compared, same)
                                          : gradient::compare_element(compared, which, -1, same);
        if (!found) return {GradientVerdict::Failed, found.error().message};
        if (step == kSteps[0] || found->error() < best.error()) best = *found;
        if (best.error() < kTolerance) break;
      }
      if (best.error() < kTolerance) continue;
      if (!std::isfinite(best.by_differences)) return {GradientVerdict::None, "differences are no numbers"};
      return {GradientVerdict::Wrong, describe(from, which, best)};
    }
    return {GradientVerdict::Right, ""};
  }

  std::string describe(int from, size_t which, const gradient::DirectionalDerivative& derivative) const {
    std::string by =
        which == wrt_.size() ? "all inputs" : main_.parameter_names[static_cast<size_t>(wrt_[which])];
    char numbers[120];
    std::snprintf(numbers, sizeof numbers, ": %.10g, by differences %.10g", derivative.by_gradient,
                  derivative.by_differences);
    return "d " + main_.result_names[static_cast<size_t>(from)] + " / d " + by + numbers;
  }

  Module& module_;
  Function& main_;
  std::mt19937_64 random_;
  std::vector<LiteralRef> inputs_;
  std::vector<int> wrt_, results_;
};

} // namespace

GradientOutcome check_model_gradients(Module& module, const std::vector<LiteralRef>& inputs, uint64_t seed) {
  return ModelGradients(module, seed).check(inputs);
}

} // namespace firn::test
