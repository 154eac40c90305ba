// Offsets by greedy placement and hill climbing over the order of placement.
#include "compiler/memory/offsets.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace firn::memory {
namespace {

constexpr size_t kStarts = 3;           // greedy attempts that hill climbing starts from
constexpr int64_t kEffort = 10'000'000; // pairs of items compared from each: a fraction of a second
constexpr int64_t kMaxSteps = 4000;

using Order = std::vector<size_t>;

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

int64_t max_alive(const std::vector<Item>& items) {
  std::map<int, int64_t> change;
  for (const Item& item : items) {
    change[item.first] += item.bytes;
    change[item.last + 1] -= item.bytes;
  }
  int64_t alive = 0, max = 0;
  for (auto [time, delta] : change) max = std::max(max, alive += delta);
  return max;
}

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
  if (random() % 4 == 0) moved = random() % order.size();
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

Packing pack_items(const std::vector<Item>& items) {
  Packing packing;
  packing.lower_bound = max_alive(items);
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
  // Nothing is better than an attempt that reaches the bound.
  if (attempts[0].bytes > packing.lower_bound)
    for (Attempt& attempt : attempts) {
      climb(attempt, items, placer, packing.lower_bound, std::min(kMaxSteps, kEffort / placer.num_pairs()));
      if (attempt.bytes == packing.lower_bound) break;
    }
  Attempt& best = *std::min_element(attempts.begin(), attempts.end(), is_better);
  packing.offsets = std::move(best.offsets);
  packing.bytes = best.bytes;
  return packing;
}

} // namespace firn::memory
