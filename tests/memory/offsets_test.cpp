// Packing intervals against brute force over every order of placement.
#include "compiler/memory/offsets.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <random>

using namespace firn::memory;

namespace {

bool overlap(const Item& a, const Item& b) { return a.first <= b.last && b.first <= a.last; }

void check_valid(const std::vector<Item>& items, const Packing& packing) {
  int64_t end = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    REQUIRE(packing.offsets[i] >= 0);
    end = std::max(end, packing.offsets[i] + items[i].bytes);
    for (size_t j = 0; j < i; ++j)
      if (overlap(items[i], items[j]))
        REQUIRE((packing.offsets[i] + items[i].bytes <= packing.offsets[j] ||
                 packing.offsets[j] + items[j].bytes <= packing.offsets[i]));
  }
  CHECK(packing.bytes == end);
  int64_t peak = 0;
  for (const Item& at : items) {
    int64_t alive = 0;
    for (const Item& item : items) alive += item.first <= at.first && at.first <= item.last ? item.bytes : 0;
    peak = std::max(peak, alive);
  }
  CHECK(packing.lower_bound == peak);
}

// The smallest end of all orders in which items drop to the lowest place that is free: in the order of an optimal
// plan's offsets each lands no higher than there, so that the best order is optimal.
int64_t optimum(const std::vector<Item>& items) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> offsets(items.size(), -1);
    int64_t end = 0;
    for (size_t i : order) {
      int64_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < items.size(); ++j)
          if (offsets[j] >= 0 && overlap(items[i], items[j]) && at < offsets[j] + items[j].bytes &&
              offsets[j] < at + items[i].bytes)
            at = offsets[j] + items[j].bytes, moved = true;
      }
      offsets[i] = at;
      end = std::max(end, at + items[i].bytes);
    }
    best = std::min(best, end);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

std::vector<Item> random_items(std::mt19937& random, size_t count, int steps, int sizes) {
  std::vector<Item> items;
  for (size_t i = 0; i < count; ++i) {
    int a = static_cast<int>(random() % static_cast<unsigned>(steps)), b = static_cast<int>(random() % static_cast<unsigned>(steps));
    items.push_back({64 * (1 + static_cast<int64_t>(random() % static_cast<unsigned>(sizes))), std::min(a, b), std::max(a, b)});
  }
  return items;
}

} // namespace

TEST_CASE("nothing packs into nothing") {
  Packing packing = pack_items({});
  CHECK(packing.lower_bound == 0);
  CHECK(packing.offsets.empty());
}

TEST_CASE("items that never meet share one place") {
  std::vector<Item> items{{128, 0, 1}, {256, 2, 3}, {64, 4, 9}};
  Packing packing = pack_items(items);
  check_valid(items, packing);
  CHECK(packing.bytes == 256);
}

TEST_CASE("small problems are packed as well as brute force does") {
  std::mt19937 random(3);
  for (int round = 0; round < 150; ++round) {
    std::vector<Item> items = random_items(random, 3 + round % 5, 6, 5);
    Packing packing = pack_items(items);
    check_valid(items, packing);
    CHECK(packing.bytes == optimum(items));
  }
}

TEST_CASE("swapping reaches the bound where greedy orders by size, life and conflicts do not") {
  // A long thin item that big ones would lift away from the bottom, in several disguises.
  std::mt19937 random(11);
  int reached = 0, rounds = 40;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Item> items = random_items(random, 14, 8, 9);
    Packing packing = pack_items(items);
    check_valid(items, packing);
    reached += packing.bytes * 100 <= packing.lower_bound * 105;
  }
  CHECK(reached >= rounds * 9 / 10);
}

TEST_CASE("packing is the same every time") {
  std::mt19937 random(5);
  std::vector<Item> items = random_items(random, 60, 30, 20);
  Packing one = pack_items(items), other = pack_items(items);
  check_valid(items, one);
  CHECK(one.offsets == other.offsets);
}
