// The search for what to compute again: schedules are valid and within their budgets, cost little more than
// the optimum (recomputation_optimum.py), and what fits stays as it is.
#include "compiler/passes/rematerialization/recomputation.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <string>

namespace firn {
namespace {

struct Instance {
  Computations computations;
  int64_t budget = 0;
  double optimum = 0;
};

Schedule in_order(const Computations& computations) {
  Schedule order(computations.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void find_unread(Computations& computations) {
  for (Computation& each : computations) each.has_no_reader = true;
  for (const Computation& each : computations)
    for (int operand : each.operands) computations[static_cast<size_t>(operand)].has_no_reader = false;
}

std::vector<Instance> read_instances() {
  std::ifstream file(FIRN_RECOMPUTATION_OPTIMUM);
  std::vector<Instance> instances;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (line.starts_with("#")) continue;
    if (line.starts_with("instance")) {
      std::string word;
      Instance& added = instances.emplace_back();
      words >> word >> added.budget >> added.optimum;
      continue;
    }
    Computation added;
    words >> added.bytes >> added.cost >> added.is_result;
    for (int operand = 0; words >> operand;) added.operands.push_back(operand);
    instances.back().computations.push_back(std::move(added));
  }
  for (Instance& each : instances) find_unread(each.computations);
  return instances;
}

// Every operand is made before its reader, results are made, and nothing runs behind what destroys its
// operands.
void check_valid(const Computations& computations, const Schedule& schedule) {
  std::vector<int> first(computations.size(), -1);
  for (size_t i = 0; i < schedule.size(); ++i) {
    const Computation& each = computations[static_cast<size_t>(schedule[i])];
    for (int operand : each.operands) CHECK(first[static_cast<size_t>(operand)] >= 0);
    int& begin = first[static_cast<size_t>(schedule[i])];
    CHECK((begin < 0 || each.may_repeat));
    for (int overwriter : each.overwriters) CHECK(first[static_cast<size_t>(overwriter)] < 0);
    if (begin < 0) begin = static_cast<int>(i);
  }
  for (size_t i = 0; i < computations.size(); ++i)
    CHECK((first[i] >= 0 || !(computations[i].is_result || computations[i].has_no_reader)));
}

// A chain of equal values, and its way back, which reads each of them.
Computations chain(int depth) {
  Computations made;
  for (int i = 0; i < 2 * depth; ++i) {
    Computation each;
    each.bytes = 1;
    each.cost = 1;
    if (i > 0) each.operands = {i - 1};
    if (i > depth) each.operands = {2 * depth - 1 - i, i - 1};
    each.is_result = i == 2 * depth - 1;
    made.push_back(each);
  }
  return made;
}

TEST_CASE("schedules cost little more than the optimum") {
  std::vector<Instance> instances = read_instances();
  REQUIRE(instances.size() >= 20);
  double cost = 0, least = 0;
  size_t missed = 0; // budgets that some schedule meets, but none that the search found
  for (const Instance& each : instances) {
    Schedule fitted = fit_budget(each.computations, in_order(each.computations), each.budget);
    check_valid(each.computations, fitted);
    INFO("instance " << &each - instances.data());
    if (peak_bytes(each.computations, fitted) > each.budget) {
      ++missed;
      continue;
    }
    CHECK(cost_of(each.computations, fitted) <= 1.5 * each.optimum);
    cost += cost_of(each.computations, fitted);
    least += each.optimum;
  }
  INFO("cost " << cost << ", optimum " << least);
  CHECK(cost <= 1.10 * least);
  CHECK(50 * missed <= instances.size() + 1);
}

TEST_CASE("long chains fit about twice the root of their length") {
  for (int depth : {9, 25, 64}) {
    Computations computations = chain(depth);
    const int root = static_cast<int>(std::lround(std::sqrt(depth)));
    Schedule fitted = fit_budget(computations, in_order(computations), 2 * root + 3);
    check_valid(computations, fitted);
    INFO("depth " << depth << ", peak " << peak_bytes(computations, fitted));
    CHECK(peak_bytes(computations, fitted) <= 2 * root + 3);
    CHECK(cost_of(computations, fitted) <= 3.0 * depth); // each value of the way there once more at most
  }
}

TEST_CASE("what fits stays as it is") {
  Computations computations = chain(12);
  Schedule given = in_order(computations);
  CHECK(fit_budget(computations, given, peak_bytes(computations, given)) == given);
}

TEST_CASE("random schedules stay valid") {
  std::mt19937 random(7);
  auto below = [&](uint32_t end) { return static_cast<int>(random() % end); };
  for (int round = 0; round < 60; ++round) {
    Computations computations(static_cast<size_t>(5 + below(56)));
    const int count = static_cast<int>(computations.size());
    for (int i = 0; i < count; ++i) {
      Computation& each = computations[static_cast<size_t>(i)];
      each.bytes = below(9);
      each.cost = 1 + below(20);
      each.may_repeat = below(5) > 0;
      each.is_result = below(10) == 0;
      for (int operand = std::max(0, i - 12); operand < i; ++operand)
        if (below(5) == 0) each.operands.push_back(operand);
      if (!each.operands.empty() && below(2) == 0) each.takes_over = {each.operands[0]};
      if (i + 1 < count && below(6) == 0)
        each.overwriters = {i + 1 + below(static_cast<uint32_t>(count - i - 1))};
    }
    find_unread(computations);
    Schedule given = in_order(computations);
    int64_t peak = peak_bytes(computations, given);
    Schedule fitted = fit_budget(computations, given, peak * 2 / 3);
    check_valid(computations, fitted);
    CHECK(peak_bytes(computations, fitted) <= peak);
  }
}

} // namespace
} // namespace firn
