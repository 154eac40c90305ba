// See choose_winograd.h.
#include "compiler/plan/winograd/choose_winograd.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

namespace firn::plan {
namespace {

constexpr double kMaxErrorRatio = 4;
// Share of the network's predicted time that filters with as many bytes as the model's weights must win at
// least, and that all transformed filters together must win.
constexpr double kMinShare = 0.02;
// Bytes that filters may add, per byte of the model's weights.
constexpr int64_t kMaxBytes = 1;

// One size of the transform for one convolution.
struct Size {
  WinogradGeometry plan;
  double won = 0;    // cycles, relative to the direct convolution
  int64_t added = 0; // bytes, beyond the model's own filters
  std::optional<double> error;
  bool is_faster() const { return won > 0; }
  bool is_inaccurate() const { return error && *error > kMaxErrorRatio; }
};

struct Convolution {
  LiteralRef filter;
  bool is_asked = false;   // chosen whatever its bytes
  std::vector<Size> sizes; // fastest first
  int taken = -1;
};

class WinogradChooser {
public:
  WinogradChooser(std::vector<WinogradCandidate> candidates, double network_cycles,
                  int64_t model_weight_bytes)
      : network_cycles_(network_cycles), model_weight_bytes_(model_weight_bytes) {
    for (WinogradCandidate& candidate : candidates) add(std::move(candidate));
  }

  std::vector<WinogradChoice> run() {
    for (Convolution& convolution : convolutions_)
      if (convolution.is_asked) take_fastest(convolution);
    do take_best();
    while (reject_inaccurate());
    std::vector<WinogradChoice> choices;
    for (Convolution& convolution : convolutions_) choices.push_back(choice_of(convolution));
    return choices;
  }

private:
  void add(WinogradCandidate candidate) {
    Convolution convolution{candidate.filter, candidate.is_asked, {}, -1};
    int64_t own = static_cast<int64_t>(candidate.filter->plain_bytes().size());
    for (WinogradGeometry& plan : candidate.plans) {
      Size size;
      size.won = candidate.direct_cycles - plan.cycles;
      size.added = std::max<int64_t>(0, plan.filter_bytes() - own);
      size.plan = std::move(plan);
      convolution.sizes.push_back(std::move(size));
    }
    convolutions_.push_back(std::move(convolution));
  }

  void take_fastest(Convolution& convolution) {
    for (size_t i = 0; i < convolution.sizes.size() && convolution.taken < 0; ++i)
      if (convolution.sizes[i].is_faster() && is_accurate(convolution, convolution.sizes[i]))
        convolution.taken = static_cast<int>(i);
  }

  bool is_accurate(const Convolution& convolution, Size& size) const {
    if (size.plan.is_integer()) return true;
    if (!size.error)
      size.error =
          winograd_error_ratio(size.plan, aligned_filters(*Literal::plain(convolution.filter)).data());
    return !size.is_inaccurate();
  }

  // A step from one size of a convolution to the next larger one: more cycles won for more bytes.
  struct Step {
    Convolution* convolution;
    int size;
    double won;
    int64_t added;
    double rate() const { return won / static_cast<double>(std::max<int64_t>(1, added)); }
  };

  // Steps between those sizes of a convolution that no other size beats, by rising bytes: each wins fewer
  // cycles per byte than the steps before.
  static std::vector<Step> steps_of(Convolution& convolution) {
    std::vector<int> order;
    for (size_t i = 0; i < convolution.sizes.size(); ++i)
      if (convolution.sizes[i].is_faster() && !convolution.sizes[i].is_inaccurate())
        order.push_back(static_cast<int>(i));
    auto size = [&](int i) -> const Size& { return convolution.sizes[static_cast<size_t>(i)]; };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return size(a).added < size(b).added; });
    std::vector<Step> steps;
    for (int next : order) {
      for (bool settled = false; !settled;) {
        const Size* from = steps.empty() ? nullptr : &size(steps.back().size);
        Step step{&convolution, next, size(next).won - (from ? from->won : 0),
                  size(next).added - (from ? from->added : 0)};
        settled = step.won <= 0 || steps.empty() || step.rate() < steps.back().rate();
        if (!settled)
          steps.pop_back();
        else if (step.won > 0)
          steps.push_back(step);
      }
    }
    return steps;
  }

  // Chooses sizes for the convolutions that nobody asked for.
  void take_best() {
    std::vector<Step> steps;
    for (Convolution& convolution : convolutions_) {
      if (convolution.is_asked) continue;
      convolution.taken = -1;
      for (const Step& step : steps_of(convolution)) steps.push_back(step);
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step& a, const Step& b) { return a.rate() > b.rate(); });
    int64_t room = kMaxBytes * model_weight_bytes_;
    double min_rate =
        kMinShare * network_cycles_ / static_cast<double>(std::max<int64_t>(1, model_weight_bytes_));
    double won = 0;
    std::set<const Convolution*> full;
    for (const Step& step : steps) {
      if (step.rate() < min_rate) break;
      if (step.added > room) full.insert(step.convolution);
      if (full.count(step.convolution)) continue;
      step.convolution->taken = step.size;
      room -= step.added;
      won += step.won;
    }
    if (won >= kMinShare * network_cycles_) return;
    for (Convolution& convolution : convolutions_)
      if (!convolution.is_asked) convolution.taken = -1;
  }

  // Whether any size taken is inaccurate, so that there is more to choose.
  bool reject_inaccurate() {
    bool rejected = false;
    for (Convolution& convolution : convolutions_)
      if (convolution.taken >= 0)
        rejected |= !is_accurate(convolution, convolution.sizes[static_cast<size_t>(convolution.taken)]);
    return rejected;
  }

  static WinogradChoice choice_of(Convolution& convolution) {
    WinogradChoice choice;
    choice.filter = convolution.filter;
    bool is_direct = convolution.taken < 0;
    double won = is_direct ? 0 : convolution.sizes[static_cast<size_t>(convolution.taken)].won;
    for (Size& size : convolution.sizes) {
      Candidate candidate{size.plan.plan(), size.plan.cycles, ""};
      char text[64];
      if (size.error) {
        std::snprintf(text, sizeof text, "%.2g times the direct sum's error%s", *size.error,
                      size.is_inaccurate() ? ": too much" : "");
        candidate.note = text;
      }
      if (size.won > won && !size.is_inaccurate()) {
        candidate.note += candidate.note.empty() ? "not worth its bytes" : ", not worth its bytes";
        choice.left_out |= is_direct;
      }
      choice.considered.push_back(std::move(candidate));
    }
    if (!is_direct) {
      Size& taken = convolution.sizes[static_cast<size_t>(convolution.taken)];
      choice.added_bytes = taken.added;
      choice.plan = std::move(taken.plan);
    }
    return choice;
  }

  std::vector<Convolution> convolutions_;
  double network_cycles_;
  int64_t model_weight_bytes_;
};

} // namespace

std::vector<WinogradChoice> choose_winograd(std::vector<WinogradCandidate> candidates, double network_cycles,
                                            int64_t model_weight_bytes) {
  return WinogradChooser(std::move(candidates), network_cycles, model_weight_bytes).run();
}

} // namespace firn::plan
