// The time of a call of a model that was compiled in process, beside the class of the same model: medians of
// blocks of runs that take turns. See call.sh.
#include "sum.h"

#include <firn/jit.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

constexpr int kBlocks = 101, kRuns = 200000;

// Nanoseconds of one run, in a block of them.
template <class Model> double time_block(Model& model) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i)
    if (!model.run()) return -1;
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
  return spent.count() / kRuns;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kBlocks / 2, values.end());
  return values[kBlocks / 2];
}

} // namespace

int main(int, char** arguments) {
  firn::jit::Compiler compiler;
  firn::jit::Model model =
      compiler.compile(arguments[1], firn::jit::ModelOptions().option("-mcpu", "x86-64-v3"));
  if (!model) return std::fprintf(stderr, "%s\n", model.error().message().c_str()), 1;
  firn::jit::Instance instance(model);
  static bench::Sum::Arena arena;
  bench::Sum sum(arena);
  std::vector<double> of_class, in_process, more;
  for (int i = 0; i < kBlocks; ++i) {
    of_class.push_back(time_block(sum));
    in_process.push_back(time_block(instance));
    more.push_back(in_process.back() - of_class.back());
  }
  std::printf("class %.1f ns, in process %.1f ns, difference %.1f ns a call\n", median(of_class),
              median(in_process), median(more));
}
