// Greedy choice of what to compute again, then removal of what proves needless.
//
// A value that nothing reads for a while, over which memory is short, is dropped and computed again in front
// of its next reader, with those of its operands that are gone by then. The step that lowers the bytes beyond
// the budget, summed over the schedule, by most per cycle comes first. A value whose first reader comes late
// costs nothing: it is only computed later.
#include "compiler/passes/rematerialization/recomputation.h"

#include <algorithm>
#include <climits>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace firn {
namespace {

constexpr int64_t kEffort = 40'000'000; // entries of schedules looked at from each start: a second
constexpr size_t kMaxChain = 64;        // computations that are repeated together
constexpr size_t kTried = 24;           // candidates whose schedules are looked at in one step
// Budgets on the way from the peak to the one wanted. Early ones flatten peaks before plateaus.
constexpr int kStages[] = {1, 4, 16};

// A schedule and the lives of what its entries leave.
class Lives {
public:
  // Leaves out entries whose results nothing reads, unless nothing ever did.
  Lives(const Computations& computations, const Schedule& schedule) : computations_(&computations) {
    int end = static_cast<int>(schedule.size());
    std::vector<int> last(computations.size(), -1), lasts(schedule.size(), -1); // -1: no reader so far
    std::vector<bool> kept(schedule.size(), true);
    for (size_t i = 0; i < computations.size(); ++i)
      if (computations[i].is_result) last[i] = end;
    for (int at = end - 1; at >= 0; --at) {
      size_t number = number_at(schedule, at);
      const Computation& each = computations[number];
      kept[static_cast<size_t>(at)] = last[number] >= 0 || (each.has_no_reader && !each.is_result);
      if (!kept[static_cast<size_t>(at)]) continue;
      lasts[static_cast<size_t>(at)] = std::max(at, last[number]);
      last[number] = -1;
      for (int operand : each.operands)
        if (last[static_cast<size_t>(operand)] < 0) last[static_cast<size_t>(operand)] = at;
    }
    take(schedule, lasts, kept);
    count();
  }

  const Schedule& schedule() const { return schedule_; }
  int size() const { return static_cast<int>(schedule_.size()); }
  int last(int at) const { return last_[static_cast<size_t>(at)]; }
  const std::vector<int64_t>& alive() const { return alive_; }
  int64_t peak() const { return alive_.empty() ? 0 : *std::max_element(alive_.begin(), alive_.end()); }
  double cost() const { return cost_; }

  double excess(int64_t budget) const {
    double sum = 0;
    for (int64_t bytes : alive_) sum += static_cast<double>(std::max<int64_t>(0, bytes - budget));
    return sum;
  }

private:
  static size_t number_at(const Schedule& schedule, int at) {
    return static_cast<size_t>(schedule[static_cast<size_t>(at)]);
  }

  void take(const Schedule& schedule, const std::vector<int>& lasts, const std::vector<bool>& kept) {
    std::vector<int> moved(schedule.size() + 1);
    schedule_.clear();
    last_.clear();
    for (size_t at = 0; at < schedule.size(); ++at) {
      moved[at] = static_cast<int>(schedule_.size());
      if (!kept[at]) continue;
      schedule_.push_back(schedule[at]);
      last_.push_back(lasts[at]);
    }
    moved[schedule.size()] = static_cast<int>(schedule_.size());
    for (int& last : last_) last = moved[static_cast<size_t>(last)];
  }

  void count() {
    std::vector<int64_t> change(schedule_.size() + 2, 0);
    std::vector<int> latest(computations_->size(), -1);
    alive_.assign(schedule_.size(), 0);
    cost_ = 0;
    for (int at = 0; at < size(); ++at) {
      size_t number = number_at(schedule_, at);
      const Computation& each = (*computations_)[number];
      cost_ += each.cost;
      change[static_cast<size_t>(at)] += each.bytes;
      change[static_cast<size_t>(last(at)) + 1] -= each.bytes;
      for (int operand : each.takes_over)
        if (int made = latest[static_cast<size_t>(operand)]; made >= 0 && last(made) == at) {
          alive_[static_cast<size_t>(at)] -= each.bytes;
          break;
        }
      latest[number] = at;
    }
    int64_t bytes = 0;
    for (size_t at = 0; at < schedule_.size(); ++at) alive_[at] += bytes += change[at];
  }

  const Computations* computations_;
  Schedule schedule_;
  std::vector<int> last_; // the last reader of each entry's result; its own number: none; the size: the end
  std::vector<int64_t> alive_;
  double cost_ = 0;
};

// A stretch of the schedule over which a value is alive and nothing reads it.
struct Gap {
  int number;      // the computation
  int begin, next; // the entries before and behind the stretch that read or make it
  double gain = 0; // bytes beyond the budget that it takes there, summed over the entries
};

class Search {
public:
  Search(const Computations& computations, int64_t budget) : computations_(computations), budget_(budget) {}

  // Lowers the peak to the budget, if steps that help are found.
  void lower(Lives& lives, int stages) {
    int64_t peak = lives.peak();
    for (int stage = 1; stage <= stages; ++stage) {
      int64_t target = peak - (peak - budget_) / stages * stage;
      if (stage == stages) target = budget_;
      while (lives.peak() > target && effort_ < kEffort)
        if (!step(lives, target)) break;
    }
  }

  // Takes repetitions out that the budget does not need, the dearest first.
  void prune(Lives& lives) {
    for (bool changed = true; changed && effort_ < kEffort;) {
      changed = false;
      for (int at : repetitions(lives)) {
        Lives fewer = without(lives, at);
        if (fewer.peak() > budget_ || fewer.cost() >= lives.cost()) continue;
        lives = std::move(fewer);
        changed = true;
        break;
      }
    }
  }

  // Takes one repetition out and searches anew from there, as long as that makes it cheaper.
  void exchange(Lives& lives) {
    for (bool changed = true; changed && effort_ < kEffort;) {
      changed = false;
      for (int at : repetitions(lives)) {
        Lives other = without(lives, at);
        lower(other, 1);
        if (other.peak() > budget_) continue;
        prune(other);
        if (other.cost() >= lives.cost() * (1 - 1e-9)) continue;
        lives = std::move(other);
        changed = true;
        break;
      }
    }
  }

private:
  const Computation& at(int number) const { return computations_[static_cast<size_t>(number)]; }

  // Entries that are not the first of their computation, the dearest first.
  std::vector<int> repetitions(const Lives& lives) const {
    std::vector<int> found;
    std::vector<bool> known(computations_.size(), false);
    for (int i = 0; i < lives.size(); ++i) {
      size_t number = static_cast<size_t>(lives.schedule()[static_cast<size_t>(i)]);
      if (known[number]) found.push_back(i);
      known[number] = true;
    }
    std::stable_sort(found.begin(), found.end(), [&](int a, int b) {
      return at(lives.schedule()[static_cast<size_t>(a)]).cost >
             at(lives.schedule()[static_cast<size_t>(b)]).cost;
    });
    return found;
  }

  Lives without(const Lives& lives, int entry) {
    Schedule schedule = lives.schedule();
    schedule.erase(schedule.begin() + entry);
    effort_ += lives.size();
    return Lives(computations_, std::move(schedule));
  }

  // The gaps that reach over an entry with too many bytes, those that promise most per cycle first.
  std::vector<Gap> find_gaps(const Lives& lives, int64_t target) const {
    std::vector<double> beyond(lives.schedule().size() + 1, 0), over(beyond); // sums of what stands before
    for (size_t i = 0; i < lives.alive().size(); ++i) {
      beyond[i + 1] = beyond[i] + static_cast<double>(std::max<int64_t>(0, lives.alive()[i] - target));
      over[i + 1] = over[i] + (lives.alive()[i] > target ? 1 : 0);
    }
    std::vector<Gap> gaps;
    std::vector<int> touched(computations_.size(), -1); // the last entry that made or read it
    for (int i = 0; i < lives.size(); ++i) {
      int number = lives.schedule()[static_cast<size_t>(i)];
      for (int operand : at(number).operands) add_gap(lives, operand, touched, i, beyond, over, gaps);
      touched[static_cast<size_t>(number)] = i;
    }
    for (size_t i = 0; i < computations_.size(); ++i)
      if (computations_[i].is_result)
        add_gap(lives, static_cast<int>(i), touched, lives.size(), beyond, over, gaps);
    std::stable_sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.gain > b.gain; });
    return gaps;
  }

  void add_gap(const Lives& lives, int operand, std::vector<int>& touched, int next,
               const std::vector<double>& beyond, const std::vector<double>& over,
               std::vector<Gap>& gaps) const {
    int begin = std::exchange(touched[static_cast<size_t>(operand)], next);
    const Computation& each = at(operand);
    if (begin < 0 || begin + 1 >= next || each.bytes == 0) return;
    // One that is made at the gap's begin is not made there any more.
    bool is_made = lives.schedule()[static_cast<size_t>(begin)] == operand;
    size_t from = static_cast<size_t>(begin) + (is_made ? 0 : 1), to = static_cast<size_t>(next);
    double gain =
        std::min(beyond[to] - beyond[from], static_cast<double>(each.bytes) * (over[to] - over[from]));
    if (gain > 0) gaps.push_back({operand, begin, next, gain / (each.cost + 1)});
  }

  // Applies the step that frees most per cycle; false: none lowers the excess.
  bool step(Lives& lives, int64_t target) {
    positions(lives);
    double excess = lives.excess(target);
    std::optional<Lives> best;
    double best_rate = 0;
    size_t tried = 0;
    for (const Gap& gap : find_gaps(lives, target)) {
      if (tried >= kTried && best) break;
      for (int place : places(lives, gap))
        for (const Schedule& chain : chains(lives, gap.number, place)) {
          Lives next = with(lives, chain, place);
          double freed = excess - next.excess(target);
          if (freed <= 0) continue;
          double rate = freed / std::max(next.cost() - lives.cost(), 1e-3);
          if (rate <= best_rate) continue;
          best_rate = rate;
          best = std::move(next);
        }
      ++tried;
    }
    if (!best) return false;
    lives = std::move(*best);
    return true;
  }

  Lives with(const Lives& lives, const Schedule& chain, int next) {
    Schedule schedule = lives.schedule();
    schedule.insert(schedule.begin() + next, chain.begin(), chain.end());
    effort_ += static_cast<int64_t>(schedule.size());
    return Lives(computations_, std::move(schedule));
  }

  // First and further entries of every computation.
  void positions(const Lives& lives) {
    entries_.assign(computations_.size(), {});
    for (int i = 0; i < lives.size(); ++i)
      entries_[static_cast<size_t>(lives.schedule()[static_cast<size_t>(i)])].push_back(i);
  }

  bool may_run_at(int number, int place) const {
    return at(number).may_repeat &&
           std::all_of(at(number).overwriters.begin(), at(number).overwriters.end(), [&](int overwriter) {
             return entries_[static_cast<size_t>(overwriter)].empty() ||
                    entries_[static_cast<size_t>(overwriter)].front() >= place;
           });
  }

  // Whether the result is kept until `place` in any case.
  bool is_there(const Lives& lives, int number, int place) const {
    const std::vector<int>& entries = entries_[static_cast<size_t>(number)];
    auto behind = std::lower_bound(entries.begin(), entries.end(), place);
    return behind != entries.begin() && lives.last(*(behind - 1)) >= place;
  }

  // Entries in front of which the value may be had again: the one that ends the gap, and those within it
  // that are the last to read one of its operands.
  std::vector<int> places(const Lives& lives, const Gap& gap) const {
    std::vector<int> found = {gap.next};
    for (int operand : at(gap.number).operands) {
      const std::vector<int>& entries = entries_[static_cast<size_t>(operand)];
      auto behind = std::lower_bound(entries.begin(), entries.end(), gap.next);
      if (behind == entries.begin()) continue;
      int last = lives.last(*(behind - 1));
      if (last > gap.begin && last < gap.next && std::find(found.begin(), found.end(), last) == found.end())
        found.push_back(last);
    }
    return found;
  }

  // Ways to have the value again: operands that are gone are kept for it if they are small enough, and
  // computed again otherwise.
  std::vector<Schedule> chains(const Lives& lives, int number, int place) {
    std::vector<Schedule> found;
    int64_t bytes = at(number).bytes;
    for (int64_t kept : {INT64_MAX, bytes, bytes / 4, int64_t{0}}) {
      auto chain = chain_of(lives, number, place, kept);
      if (chain && std::find(found.begin(), found.end(), *chain) == found.end())
        found.push_back(std::move(*chain));
    }
    return found;
  }

  std::optional<Schedule> chain_of(const Lives& lives, int wanted, int place, int64_t kept_bytes) const {
    std::set<int> chain;
    std::vector<int> todo = {wanted};
    if (!may_run_at(wanted, place)) return std::nullopt;
    while (!todo.empty()) {
      int number = todo.back();
      todo.pop_back();
      if (!chain.insert(number).second) continue;
      if (chain.size() > kMaxChain) return std::nullopt;
      for (int operand : at(number).operands)
        if (!is_there(lives, operand, place) && at(operand).bytes > kept_bytes && may_run_at(operand, place))
          todo.push_back(operand);
    }
    return Schedule(chain.begin(), chain.end());
  }

  const Computations& computations_;
  int64_t budget_;
  int64_t effort_ = 0;
  std::vector<std::vector<int>> entries_; // by computation, ascending
};

} // namespace

std::vector<int64_t> bytes_alive(const Computations& computations, const Schedule& schedule) {
  return Lives(computations, schedule).alive();
}

int64_t peak_bytes(const Computations& computations, const Schedule& schedule) {
  return Lives(computations, schedule).peak();
}

double cost_of(const Computations& computations, const Schedule& schedule) {
  return Lives(computations, schedule).cost();
}

Schedule fit_budget(const Computations& computations, const Schedule& given, int64_t budget) {
  Lives best(computations, given);
  if (best.peak() <= budget) return given;
  for (int stages : kStages) {
    Search search(computations, budget);
    Lives lives(computations, given);
    search.lower(lives, stages);
    bool fits = lives.peak() <= budget;
    if (fits) search.prune(lives);
    bool is_better = fits ? best.peak() > budget || lives.cost() < best.cost() : lives.peak() < best.peak();
    if (is_better) best = std::move(lives);
  }
  if (best.peak() <= budget) Search(computations, budget).exchange(best);
  return best.schedule();
}

} // namespace firn
