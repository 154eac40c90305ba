// Offsets by greedy placement and hill climbing over the order of placement.
#include "compiler/memory/offsets.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace firn::memory {
namespace {

constexpr int64_t kEffort = 100'000'000;  // pairs of items compared by hill climbing: a fraction of a second
constexpr int kMaxSwaps = 4000;

using Order = std::vector<size_t>;

class Placer {
public:
  explicit Placer(const std::vector<Item>& items) : items_(items), conflicts_(items.size()) {
    for (size_t i = 0; i < items.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (items[i].first <= items[j].last && items[j].first <= items[i].last) {
          conflicts_[i].push_back(j);
          conflicts_[j].push_back(i);
        }
  }

  // Places the items in `order`, each at the lowest gap that fits or at the tightest one.
  int64_t place(const Order& order, bool best_fit, std::vector<int64_t>& offsets) {
    offsets.assign(items_.size(), -1);
    int64_t end = 0;
    for (size_t item : order) {
      taken_.clear();
      for (size_t other : conflicts_[item])
        if (offsets[other] >= 0) taken_.push_back({offsets[other], offsets[other] + items_[other].bytes});
      std::sort(taken_.begin(), taken_.end());
      offsets[item] = find_gap(items_[item].bytes, best_fit);
      end = std::max(end, offsets[item] + items_[item].bytes);
    }
    return end;
  }

  size_t num_conflicts(size_t item) const { return conflicts_[item].size(); }

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
  std::vector<std::pair<int64_t, int64_t>> taken_;
};

int64_t most_alive(const std::vector<Item>& items) {
  std::map<int, int64_t> change;
  for (const Item& item : items) {
    change[item.first] += item.bytes;
    change[item.last + 1] -= item.bytes;
  }
  int64_t alive = 0, most = 0;
  for (auto [time, delta] : change) most = std::max(most, alive += delta);
  return most;
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
          by([&](size_t i) { return items[i].bytes * life(i); }),
          by([&](size_t i) { return life(i); }),
          by([&](size_t i) { return static_cast<int64_t>(placer.num_conflicts(i)); }),
          by([&](size_t i) { return -static_cast<int64_t>(items[i].first); })};
}

} // namespace

Packing pack_items(const std::vector<Item>& items) {
  Packing best;
  best.lower_bound = most_alive(items);
  best.bytes = INT64_MAX;
  Placer placer(items);
  Order order;
  bool best_fit = false;
  std::vector<int64_t> offsets;
  auto attempt = [&](const Order& candidate, bool fit) {
    int64_t bytes = placer.place(candidate, fit, offsets);
    if (bytes >= best.bytes) return bytes == best.bytes;
    best.bytes = bytes;
    best.offsets = offsets;
    order = candidate;
    best_fit = fit;
    return true;
  };
  for (const Order& candidate : greedy_orders(items, placer))
    for (bool fit : {false, true}) attempt(candidate, fit);
  std::mt19937 random(12345);
  auto n = static_cast<int64_t>(items.size());
  int64_t swaps = n < 2 ? 0 : std::min<int64_t>(kMaxSwaps, kEffort / (n * n));
  for (int64_t i = 0; i < swaps && best.bytes > best.lower_bound; ++i) {
    Order candidate = order;
    std::swap(candidate[random() % candidate.size()], candidate[random() % candidate.size()]);
    if (attempt(candidate, best_fit)) order = candidate;  // sideways moves too: they leave plateaus
  }
  return best;
}

} // namespace firn::memory
