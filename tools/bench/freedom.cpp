// Measures the cost of varying dims: an object for a range of dims against an object for one shape in that
// range, in alternating blocks of runs. Driven by freedom.sh.
#include "fixed.h"
#include "ranged.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

template <class Model> struct Instance {
  std::unique_ptr<typename Model::Arena> arena{new typename Model::Arena()};
  Model model{*arena};

  void run() {
    if (!model.run()) std::abort();
  }

  // The least time of a run in a block. The first run is not timed: it finds caches as the other object left
  // them.
  double block_seconds(double seconds) {
    run();
    double least = INFINITY;
    auto start = Clock::now(), end = start;
    do {
      auto before = end;
      run();
      end = Clock::now();
      least = std::min(least, std::chrono::duration<double>(end - before).count());
    } while (std::chrono::duration<double>(end - start).count() < seconds);
    return least;
  }
};

// Fills both with equal data: random floats, and ones for every other type, which are valid masks and
// indices.
void fill(const firn::TensorInfo& tensor, void* here, void* there) {
  std::mt19937 random(1);
  size_t count = 1;
  for (size_t axis = 0; axis < tensor.rank; ++axis) count *= tensor.dims[axis];
  size_t size = tensor.bytes / std::max<size_t>(1, count);
  for (size_t i = 0; i < count; ++i) {
    float value = std::uniform_real_distribution<float>(-1, 1)(random);
    unsigned char element[16] = {1};
    if (tensor.dtype == firn::ElementType::F32) std::memcpy(element, &value, sizeof value);
    for (void* data : {here, there}) std::memcpy(static_cast<unsigned char*>(data) + i * size, element, size);
  }
}

// The largest difference over the largest value.
double error_of(const firn::TensorInfo& tensor, const void* here, const void* there) {
  if (tensor.dtype != firn::ElementType::F32) return std::memcmp(here, there, tensor.bytes) == 0 ? 0 : 1;
  double difference = 0, largest = 1e-30;
  for (size_t i = 0; i < tensor.bytes / 4; ++i) {
    double a = static_cast<const float*>(here)[i], b = static_cast<const float*>(there)[i];
    difference = std::max(difference, std::fabs(a - b));
    largest = std::max(largest, std::fabs(a));
  }
  return difference / largest;
}

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
}

} // namespace

// freedom LABEL SECONDS NAME=VALUE...
int main(int count, char** arguments) {
  double seconds = std::atof(arguments[2]);
  Instance<fixed::Model> fixed;
  Instance<ranged::Model> ranged;
  for (int i = 3; i < count; ++i) {
    const char* equals = std::strchr(arguments[i], '=');
    size_t length = static_cast<size_t>(equals - arguments[i]);
    for (size_t dim = 0; dim < ranged::Model::dim_count; ++dim) {
      const char* name = ranged::Model::info().dims[dim].name;
      if (std::strlen(name) == length && std::strncmp(name, arguments[i], length) == 0)
        if (!ranged.model.set_dim(dim, std::atol(equals + 1)))
          return std::printf("%s is refused\n", arguments[i]);
    }
  }
  const firn::ModelInfo& info = fixed::Model::info();
  for (size_t i = 0; i < info.input_count; ++i)
    fill(info.inputs[i], const_cast<void*>(fixed.model.input_data(i)),
         const_cast<void*>(ranged.model.input_data(i)));
  fixed.run();
  ranged.run();
  double error = 0;
  for (size_t i = 0; i < info.output_count; ++i)
    error =
        std::max(error, error_of(info.outputs[i], fixed.model.output_data(i), ranged.model.output_data(i)));
  std::vector<double> fixed_times, ranged_times, ratios;
  auto start = Clock::now();
  while (ratios.size() < 9 || std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    bool fixed_first = ratios.size() % 2 == 0;
    double first = fixed_first ? fixed.block_seconds(0.03) : ranged.block_seconds(0.03),
           second = fixed_first ? ranged.block_seconds(0.03) : fixed.block_seconds(0.03);
    fixed_times.push_back(fixed_first ? first : second);
    ranged_times.push_back(fixed_first ? second : first);
    ratios.push_back(ranged_times.back() / fixed_times.back());
  }
  std::printf("| %s | %.4g | %.4g | %.3f | %.3f-%.3f | %.0e |", arguments[1],
              quantile(fixed_times, 0.5) * 1e3, quantile(ranged_times, 0.5) * 1e3, quantile(ratios, 0.5),
              quantile(ratios, 0.25), quantile(ratios, 0.75), error);
}
