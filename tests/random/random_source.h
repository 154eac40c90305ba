// Random numbers that are the same on every machine and standard library: a seed names a graph for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace firn::test {

class RandomSource {
public:
  // Mixed, so that the sequences of neighbouring seeds are not one sequence from neighbouring places.
  explicit RandomSource(uint64_t seed) : state_(mix(seed + 1)) {}

  // SplitMix64.
  uint64_t bits() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  int64_t between(int64_t low, int64_t high) { // both included
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
  }
  bool chance(double probability) { return uniform(0, 1) < probability; }
  template <class T> const T& pick(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(bits() % choices.size())];
  }
  template <class T> T pick(std::initializer_list<T> choices) {
    return choices.begin()[static_cast<std::size_t>(bits() % choices.size())];
  }

private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

} // namespace firn::test
