// Packing intervals against brute force over every order of placement.
#include "compiler/memory/offsets.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <random>

using namespace firn::memory;

namespace {

bool overlap(const Item& a, const Item& b) {
  return a.first <= b.last && b.first <= a.last;
}

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

// The smallest end of all orders in which items drop to the lowest place that is free: in the order of an
// optimal plan's offsets each lands no higher than there, so that the best order is optimal.
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
    int a = static_cast<int>(random() % static_cast<unsigned>(steps)),
        b = static_cast<int>(random() % static_cast<unsigned>(steps));
    items.push_back({64 * (1 + static_cast<int64_t>(random() % static_cast<unsigned>(sizes))), std::min(a, b),
                     std::max(a, b)});
  }
  return items;
}

} // namespace

TEST_CASE("tens of thousands of items alive at one time take neither time nor memory") {
  std::mt19937 random(3);
  std::vector<Item> items;
  for (int i = 0; i < 30000; ++i)
    items.push_back({64 * static_cast<int64_t>(random() % 9), i, i % 3 == 0 ? i + 5 : 30000});
  const Packing packing = pack_items(items);
  CHECK(packing.lower_bound == peak_of(items).bytes);
  CHECK(packing.bytes < packing.lower_bound * 5 / 4);
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return packing.offsets[a] < packing.offsets[b]; });
  // If two items share bytes, one begins within the other, few places behind it in this order.
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t j = i + 1; j < order.size(); ++j) {
      const Item &a = items[order[i]], &b = items[order[j]];
      if (packing.offsets[order[j]] >= packing.offsets[order[i]] + a.bytes) break;
      if (a.bytes > 0 && b.bytes > 0) REQUIRE_FALSE(overlap(a, b));
    }
}

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

TEST_CASE("the lives of a network whose blocks all leave a skip are packed tightly") {
  // A separation network of twelve blocks: bytes in units of 64. Greedy orders leave a hole, and so do swaps
  // of items that do not end highest.
  const int lives[][3] = {
      {1000, 0, 277},    {2000, 277, 277},  {16008, 0, 1},     {16008, 1, 276},   {1, 2, 4},
      {16008, 4, 9},     {1, 5, 7},         {16008, 9, 10},    {8004, 10, 253},   {16008, 11, 12},
      {16008, 12, 20},   {1, 13, 15},       {1, 16, 18},       {16008, 20, 21},   {16008, 21, 22},
      {16008, 22, 30},   {1, 23, 25},       {1, 26, 28},       {16008, 30, 32},   {8004, 31, 274},
      {16008, 33, 34},   {16008, 34, 42},   {1, 35, 37},       {1, 38, 40},       {16008, 42, 43},
      {16008, 43, 44},   {16008, 44, 52},   {1, 45, 47},       {1, 48, 50},       {16008, 52, 54},
      {8004, 53, 273},   {16008, 55, 56},   {16008, 56, 64},   {1, 57, 59},       {1, 60, 62},
      {16008, 64, 65},   {16008, 65, 66},   {16008, 66, 74},   {1, 67, 69},       {1, 70, 72},
      {16008, 74, 76},   {8004, 75, 273},   {16008, 77, 78},   {16008, 78, 86},   {1, 79, 81},
      {1, 82, 84},       {16008, 86, 87},   {16008, 87, 88},   {16008, 88, 96},   {1, 89, 91},
      {1, 92, 94},       {16008, 96, 98},   {8004, 97, 273},   {16008, 99, 100},  {16008, 100, 108},
      {1, 101, 103},     {1, 104, 106},     {16008, 108, 109}, {16008, 109, 110}, {16008, 110, 118},
      {1, 111, 113},     {1, 114, 116},     {16008, 118, 120}, {8004, 119, 273},  {16008, 121, 122},
      {16008, 122, 130}, {1, 123, 125},     {1, 126, 128},     {16008, 130, 131}, {16008, 131, 132},
      {16008, 132, 140}, {1, 133, 135},     {1, 136, 138},     {16008, 140, 142}, {8004, 141, 273},
      {16008, 143, 144}, {16008, 144, 152}, {1, 145, 147},     {1, 148, 150},     {16008, 152, 153},
      {16008, 153, 154}, {16008, 154, 162}, {1, 155, 157},     {1, 158, 160},     {16008, 162, 164},
      {8004, 163, 273},  {16008, 165, 166}, {16008, 166, 174}, {1, 167, 169},     {1, 170, 172},
      {16008, 174, 175}, {16008, 175, 176}, {16008, 176, 184}, {1, 177, 179},     {1, 180, 182},
      {16008, 184, 186}, {8004, 185, 273},  {16008, 187, 188}, {16008, 188, 196}, {1, 189, 191},
      {1, 192, 194},     {16008, 196, 197}, {16008, 197, 198}, {16008, 198, 206}, {1, 199, 201},
      {1, 202, 204},     {16008, 206, 208}, {8004, 207, 273},  {16008, 209, 210}, {16008, 210, 218},
      {1, 211, 213},     {1, 214, 216},     {16008, 218, 219}, {16008, 219, 220}, {16008, 220, 228},
      {1, 221, 223},     {1, 224, 226},     {16008, 228, 230}, {8004, 229, 273},  {16008, 231, 232},
      {16008, 232, 240}, {1, 233, 235},     {1, 236, 238},     {16008, 240, 241}, {16008, 241, 242},
      {16008, 242, 250}, {1, 243, 245},     {1, 246, 248},     {16008, 250, 252}, {8004, 251, 273},
      {16008, 253, 254}, {16008, 254, 262}, {1, 255, 257},     {1, 258, 260},     {16008, 262, 263},
      {16008, 263, 264}, {16008, 264, 272}, {1, 265, 267},     {1, 268, 270},     {16008, 272, 273},
      {32016, 274, 275}, {32016, 275, 277}};
  std::vector<Item> items;
  for (auto [units, first, last] : lives) items.push_back({64 * units, first, last});
  Packing packing = pack_items(items);
  check_valid(items, packing);
  CHECK(packing.bytes * 100 <= packing.lower_bound * 105);
}

TEST_CASE("packing is the same every time") {
  std::mt19937 random(5);
  std::vector<Item> items = random_items(random, 60, 30, 20);
  Packing one = pack_items(items), other = pack_items(items);
  check_valid(items, one);
  CHECK(one.offsets == other.offsets);
}
