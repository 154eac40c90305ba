// The algorithms that plans name, as algorithms.def lists them.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

namespace firn::plan {

#define FIRN_ALGORITHM(Name, word, Plan, machines, precedence, help) struct Plan;
#include "compiler/plan/algorithms.def"
#undef FIRN_ALGORITHM

enum class Algorithm : uint8_t {
#define FIRN_ALGORITHM(Name, word, Plan, machines, precedence, help) Name,
#include "compiler/plan/algorithms.def"
#undef FIRN_ALGORITHM
};

// The kinds of machines that have an algorithm's code, as bits.
enum MachineKinds : uint8_t { kOnCpu = 1, kOnGpu = 2, kOnBoth = 3 };

struct AlgorithmRow {
  Algorithm algorithm;
  const char* word; // its name in texts
  MachineKinds machines;
  int precedence; // see algorithms.def
  const char* help;
};
// All rows, in the order of the file, which is that of precedence.
std::span<const AlgorithmRow> algorithm_rows();
// The name of the algorithm in texts.
const char* name_of(Algorithm algorithm);

// Whether `Plan` is the struct of the algorithm's decisions.
template <class Plan> constexpr bool is_plan_of(Algorithm algorithm) {
  switch (algorithm) {
#define FIRN_ALGORITHM(Name, word, Type, machines, precedence, help)                                         \
  case Algorithm::Name:                                                                                      \
    return std::is_same_v<Plan, Type>;
#include "compiler/plan/algorithms.def"
#undef FIRN_ALGORITHM
  }
  return false;
}

// The algorithm whose decisions a struct holds: its own if it has a row alone, else what it says.
template <class Plan> Algorithm algorithm_of(const Plan& plan) {
  if constexpr (requires { plan.algorithm; }) {
    return plan.algorithm;
  } else {
    constexpr Algorithm own = [] {
      int rows = 0;
      Algorithm found{};
#define FIRN_ALGORITHM(Name, word, Type, machines, precedence, help)                                         \
  if (std::is_same_v<Plan, Type>) found = Algorithm::Name, ++rows;
#include "compiler/plan/algorithms.def"
#undef FIRN_ALGORITHM
      return rows == 1 ? found : throw "a struct of several rows has a member `algorithm`";
    }();
    return own;
  }
}

} // namespace firn::plan
