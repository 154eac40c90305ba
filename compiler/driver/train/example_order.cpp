// Draws by splitmix64, whose numbers are the same on every machine.
#include "compiler/driver/train/example_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace firn::driver {
namespace {

constexpr uint64_t kSplitStream = ~uint64_t{0}; // no epoch has this number

class Generator {
public:
  Generator(uint64_t seed, uint64_t stream) : state_(seed) { state_ = next() ^ stream; }

  uint64_t next() {
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
  }
  // A number below `count`.
  uint64_t below(uint64_t count) {
    const uint64_t limit = ~uint64_t{0} - ~uint64_t{0} % count; // numbers beyond it would favour small ones
    uint64_t number = next();
    while (number >= limit) number = next();
    return number % count;
  }

private:
  uint64_t state_;
};

} // namespace

std::vector<int64_t> shuffled(std::vector<int64_t> numbers, uint64_t seed, uint64_t stream) {
  Generator generator(seed, stream);
  for (size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[generator.below(i)]);
  return numbers;
}

Split split_examples(int64_t examples, double fraction, uint64_t seed) {
  std::vector<int64_t> all(static_cast<size_t>(examples));
  std::iota(all.begin(), all.end(), 0);
  const auto wanted = static_cast<int64_t>(std::llround(fraction * static_cast<double>(examples)));
  const auto held = static_cast<std::ptrdiff_t>(std::clamp<int64_t>(wanted, 1, examples));
  std::vector<int64_t> drawn = shuffled(all, seed, kSplitStream);
  Split split{{drawn.begin() + held, drawn.end()}, {drawn.begin(), drawn.begin() + held}};
  std::sort(split.trained.begin(), split.trained.end());
  std::sort(split.held_back.begin(), split.held_back.end());
  return split;
}

} // namespace firn::driver
