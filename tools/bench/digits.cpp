// The digit recogniser in f32 and in bytes: how many drawings each reads, and the time that a run takes of
// its core, in blocks of runs that take turns. Driven by digits.py.
//
//   digits PIXELS LABELS SECONDS     PIXELS: f32 images one behind the other; LABELS: a byte for each
#include "exact.h"
#include "quantized.h"

#include <firn/owned.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kPixels = 28 * 28;
constexpr int kRuns = 200; // runs per block, which is shorter than the time slices of other programs

std::vector<char> bytes_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The percentage of drawings that the model reads right.
template <class Model>
double accuracy(Model& model, const std::vector<char>& pixels, const std::vector<char>& labels) {
  std::size_t right = 0;
  const float* image = reinterpret_cast<const float*>(pixels.data());
  for (std::size_t i = 0; i < labels.size(); ++i, image += kPixels) {
    std::copy(image, image + kPixels, model.image().begin());
    if (!model.run()) std::abort();
    right += firn::argmax(model.probabilities()) == static_cast<std::size_t>(labels[i]);
  }
  return 100.0 * static_cast<double>(right) / static_cast<double>(labels.size());
}

template <class Model> double microseconds(Model& model) {
  std::timespec start, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  for (int i = 0; i < kRuns; ++i)
    if (!model.run()) std::abort();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  double seconds = static_cast<double>(end.tv_sec - start.tv_sec) +
                   1e-9 * static_cast<double>(end.tv_nsec - start.tv_nsec);
  return seconds * 1e6 / kRuns;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

} // namespace

int main(int, char** arguments) {
  std::vector<char> pixels = bytes_of(arguments[1]), labels = bytes_of(arguments[2]);
  firn::Owned<exact::Digits> exact;
  firn::Owned<quantized::Digits> quantized;
  if (!exact->status() || !quantized->status() || pixels.size() != labels.size() * kPixels * sizeof(float))
    return 1;
  std::printf("%.2f %.2f", accuracy(*exact, pixels, labels), accuracy(*quantized, pixels, labels));
  std::vector<double> exact_times, quantized_times, ratios;
  auto start = Clock::now();
  while (ratios.size() < 7 ||
         std::chrono::duration<double>(Clock::now() - start).count() < std::atof(arguments[3])) {
    exact_times.push_back(microseconds(*exact));
    quantized_times.push_back(microseconds(*quantized));
    ratios.push_back(exact_times.back() / quantized_times.back());
  }
  std::printf(" %.3f %.3f %.2f\n", median(exact_times), median(quantized_times), median(ratios));
}
