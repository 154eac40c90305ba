// Offsets by greedy placement and hill climbing over the order of placement.
#include "compiler/memory/offsets.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <random>

namespace firn::memory {
namespace {

constexpr size_t kStarts = 3;           // greedy attempts that hill climbing starts from
constexpr int64_t kEffort = 10'000'000; // pairs of items compared from each: a fraction of a second
constexpr int64_t kMaxSteps = 4000;     // steps of hill climbing from each
// Pairs of items alive at one time, each counted twice: more are neither stored nor searched.
constexpr int64_t kMaxPairs = 20'000'000;

using Order = std::vector<size_t>;

// Places items in an order that is given. Items conflict if they are alive at one time.
class Placer {
public:
  explicit Placer(const std::vector<Item>& items) : items_(items), conflicts_(items.size()) {
    for (size_t i = 0; i < items.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (items[i].first <= items[j].last && items[j].first <= items[i].last) {
          conflicts_[i].push_back(j);
          conflicts_[j].push_back(i);
          num_pairs_ += 2;
        }
  }

  // Places the items in `order`, each at the lowest gap that fits or at the tightest one. Returns the highest
  // end, or gives up with an end that is beyond `limit`.
  int64_t place(const Order& order, bool best_fit, int64_t limit, std::vector<int64_t>& offsets) {
    offsets.assign(items_.size(), -1);
    int64_t end = 0;
    for (size_t item : order) {
      taken_.clear();
      for (size_t other : conflicts_[item])
        if (offsets[other] >= 0) taken_.push_back({offsets[other], offsets[other] + items_[other].bytes});
      std::sort(taken_.begin(), taken_.end());
      offsets[item] = find_gap(items_[item].bytes, best_fit);
      end = std::max(end, offsets[item] + items_[item].bytes);
      if (end > limit) break;
    }
    return end;
  }

  const std::vector<size_t>& conflicts(size_t item) const { return conflicts_[item]; }
  int64_t num_pairs() const { return num_pairs_; } // looked at by one placement

private:
  // The offset at which `bytes` fit between the ranges of taken_, or behind them.
  int64_t find_gap(int64_t bytes, bool best_fit) const {
    int64_t at = 0, best = -1, best_size = INT64_MAX;
    for (auto [begin, end] : taken_) {
      if (begin - at >= bytes) {
        if (!best_fit) return at;
        if (begin - at < best_size) best = at, best_size = begin - at;
      }
      at = std::max(at, end);
    }
    return best >= 0 ? best : at;
  }

  const std::vector<Item>& items_;
  std::vector<std::vector<size_t>> conflicts_;
  int64_t num_pairs_ = 1;
  std::vector<std::pair<int64_t, int64_t>> taken_;
};

// How many pairs of items are alive at one time, each counted twice.
int64_t count_pairs(const std::vector<Item>& items) {
  std::map<int, int64_t> begins, ends; // how many items do at a step
  for (const Item& item : items) ++begins[item.first], ++ends[item.last + 1];
  int64_t alive = 0, pairs = 0;
  auto end = ends.begin();
  for (const auto& [step, count] : begins) {
    for (; end != ends.end() && end->first <= step; ++end) alive -= end->second;
    pairs += 2 * alive * count + count * (count - 1);
    alive += count;
  }
  return pairs;
}

// Places the items in the order of their lives, each at the lowest gap that fits.
Packing pack_in_order(const std::vector<Item>& items) {
  Order order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return items[a].first < items[b].first; });
  Packing packing;
  packing.offsets.resize(items.size());
  std::map<int64_t, int64_t> gaps = {{0, INT64_MAX}}; // ends by their begins
  std::multimap<int, size_t> alive;                   // by the last step
  auto free = [&](int64_t begin, int64_t end) {
    auto next = gaps.lower_bound(begin);
    if (next != gaps.end() && next->first == end) end = next->second, next = gaps.erase(next);
    if (next != gaps.begin() && std::prev(next)->second == begin)
      std::prev(next)->second = end;
    else
      gaps[begin] = end;
  };
  for (size_t item : order) {
    for (; !alive.empty() && alive.begin()->first < items[item].first; alive.erase(alive.begin())) {
      const size_t ended = alive.begin()->second;
      if (items[ended].bytes > 0) free(packing.offsets[ended], packing.offsets[ended] + items[ended].bytes);
    }
    auto fits = [&](const auto& gap) { return gap.second - gap.first >= items[item].bytes; };
    auto gap = std::find_if(gaps.begin(), gaps.end(), fits);
    auto [begin, end] = *gap;
    packing.offsets[item] = begin;
    alive.emplace(items[item].last, item);
    packing.bytes = std::max(packing.bytes, begin + items[item].bytes);
    if (items[item].bytes == 0) continue;
    gaps.erase(gap);
    if (begin + items[item].bytes < end) gaps[begin + items[item].bytes] = end;
  }
  return packing;
}

// Orders that tend to pack well: by size, size times lifetime, lifetime, conflicts, and from the last to the
// first.
std::vector<Order> greedy_orders(const std::vector<Item>& items, const Placer& placer) {
  Order base(items.size());
  std::iota(base.begin(), base.end(), 0);
  auto by = [&](auto key) {
    Order order = base;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
    return order;
  };
  auto life = [&](size_t i) { return static_cast<int64_t>(items[i].last - items[i].first + 1); };
  return {by([&](size_t i) { return items[i].bytes; }),
          by([&](size_t i) { return items[i].bytes * life(i); }), by([&](size_t i) { return life(i); }),
          by([&](size_t i) { return static_cast<int64_t>(placer.conflicts(i).size()); }),
          by([&](size_t i) { return -static_cast<int64_t>(items[i].first); })};
}

// An order of placement and what it leads to.
struct Attempt {
  Order order;
  bool best_fit = false;
  std::vector<int64_t> offsets;
  int64_t bytes = INT64_MAX;
};

// Changes the order at an item that ends highest: it goes to the place of an item that it conflicts with,
// which takes its place or follows it. What ends elsewhere cannot lower the end.
Order neighbour(const Attempt& from, const std::vector<Item>& items, const Placer& placer,
                std::mt19937& random) {
  Order order = from.order;
  std::vector<size_t> highest; // positions in the order
  for (size_t i = 0; i < order.size(); ++i)
    if (from.offsets[order[i]] + items[order[i]].bytes == from.bytes) highest.push_back(i);
  size_t moved = highest[random() % highest.size()];
  if (random() % 4 == 0) moved = random() % order.size(); // any item at times, to leave local minima
  const std::vector<size_t>& conflicts = placer.conflicts(order[moved]);
  if (conflicts.empty()) return order;
  size_t other = conflicts[random() % conflicts.size()];
  auto at = static_cast<size_t>(std::find(order.begin(), order.end(), other) - order.begin());
  if (random() % 2 == 0) {
    std::swap(order[at], order[moved]);
  } else if (at < moved) {
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(at),
                order.begin() + static_cast<std::ptrdiff_t>(moved),
                order.begin() + static_cast<std::ptrdiff_t>(moved) + 1);
  } else {
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(moved),
                order.begin() + static_cast<std::ptrdiff_t>(moved) + 1,
                order.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  return order;
}

// Goes on to attempts that are no worse; equal ones lead away from plateaus.
void climb(Attempt& best, const std::vector<Item>& items, Placer& placer, int64_t bound, int64_t steps) {
  Attempt next;
  std::mt19937 random(12345);
  for (; steps > 0 && best.bytes > bound; --steps) {
    next.best_fit = best.best_fit;
    next.order = neighbour(best, items, placer, random);
    next.bytes = placer.place(next.order, next.best_fit, best.bytes, next.offsets);
    if (next.bytes <= best.bytes) std::swap(best, next);
  }
}

} // namespace

Peak peak_of(const std::vector<Item>& items) {
  std::map<int, int64_t> changes;
  for (const Item& item : items) {
    changes[item.first] += item.bytes;
    changes[item.last + 1] -= item.bytes;
  }
  Peak peak{0, -1};
  int64_t alive = 0;
  for (const auto& [step, change] : changes) {
    alive += change;
    if (alive > peak.bytes) peak = {step, alive};
  }
  peak.bytes = std::max<int64_t>(peak.bytes, 0);
  return peak;
}

Packing pack_items(const std::vector<Item>& items) {
  Packing packing;
  if (count_pairs(items) > kMaxPairs) packing = pack_in_order(items);
  packing.lower_bound = peak_of(items).bytes;
  if (!packing.offsets.empty()) return packing;
  Placer placer(items);
  std::vector<Attempt> attempts;
  for (Order& order : greedy_orders(items, placer))
    for (bool best_fit : {false, true}) {
      attempts.push_back({order, best_fit, {}, 0});
      attempts.back().bytes = placer.place(order, best_fit, INT64_MAX, attempts.back().offsets);
    }
  auto is_better = [](const Attempt& a, const Attempt& b) { return a.bytes < b.bytes; };
  std::stable_sort(attempts.begin(), attempts.end(), is_better);
  attempts.resize(kStarts);
  if (attempts[0].bytes > packing.lower_bound)
    for (Attempt& attempt : attempts)
      climb(attempt, items, placer, packing.lower_bound, std::min(kMaxSteps, kEffort / placer.num_pairs()));
  Attempt& best = *std::min_element(attempts.begin(), attempts.end(), is_better);
  packing.offsets = std::move(best.offsets);
  packing.bytes = best.bytes;
  return packing;
}

} // namespace firn::memory
