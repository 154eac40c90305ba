// Every CPU's code that this machine can follow, against the object for that CPU alone.
#include "raw.h"
#include "several.h"
#include "shared.h"
#include "small.h"
#include "v2.h"
#include "v3.h"
#include "v4.h"

#include <firn/owned.h>
#include <firn/thread_pool.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const char* what, const char* cpu) {
  if (holds) return;
  std::printf("%s: %s\n", cpu, what);
  ++failures;
}

template <class Model> std::vector<float> run(Model& model, firn::Executor* executor = nullptr) {
  const firn::ModelInfo& info = model.info();
  auto* image = static_cast<float*>(const_cast<void*>(model.input_data(0)));
  for (std::size_t i = 0; i < info.inputs[0].bytes / sizeof(float); ++i)
    image[i] = static_cast<float>(i % 17) / 17.0f;
  const firn::Status status = executor ? model.run(*executor) : model.run();
  if (!status) std::printf("%s\n", status.message());
  const auto* result = static_cast<const float*>(model.output_data(0));
  return {result, result + (status ? info.outputs[0].bytes / sizeof(float) : 0)};
}

bool are_near(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0, error = 0;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    largest = std::fmax(largest, std::fabs(b[i]));
    error = std::fmax(error, std::fabs(a[i] - b[i]));
  }
  return a.size() == b.size() && !a.empty() && largest > 0 && error <= 1e-5f * largest;
}

template <class Single> void compare(const char* cpu) {
  firn::Owned<Single> single;
  firn::Owned<nets::Several> several(nets::Several::embedded(), cpu);
  firn::Owned<nets::Shared> shared(nets::Shared::embedded(), cpu);
  firn::Owned<nets::Small> small(nets::Small::embedded(), cpu);
  expect(single.status().ok() == several.status().ok(), "the forced code is refused elsewhere", cpu);
  if (!single.status()) {
    expect(single.status().value() == several.status().value(), "it is refused for another reason", cpu);
    return;
  }
  expect(std::strcmp(several->info().cpu, cpu) == 0, "info().cpu is another", cpu);
  const std::vector<float> expected = run(*single), result = run(*several);
  expect(are_near(result, expected), "results differ", cpu);
  expect(run(*several) == result, "results change", cpu);
  firn::ThreadPool pool(2);
  firn::Executor executor(pool);
  expect(are_near(run(*shared, &executor), expected), "results of two threads differ", cpu);
  expect(run(*shared) == run(*shared, &executor), "results of one and two threads differ", cpu);
  expect(are_near(run(*small), expected), "results of small code differ", cpu);
  static nets::Raw::Weights::Memory memory;
  firn::Owned<nets::Raw> raw(nets::Raw::Weights::prepare(memory), cpu);
  expect(are_near(run(*raw), expected), "results with prepared weights differ", cpu);
}

} // namespace

int main() {
  compare<nets::V2>("x86-64-v2");
  compare<nets::V3>("x86-64-v3");
  compare<nets::V4>("x86-64-v4");
  firn::Owned<nets::Several> best;
  expect(best.status().ok(), "the best is refused", "none");
  firn::Owned<nets::Several> unknown(nets::Several::embedded(), "x86-64-v5");
  expect(unknown.status().code() == FIRN_STATUS_UNSUPPORTED_CPU, "another CPU's name is taken", "x86-64-v5");
  expect(std::strstr(unknown.status().message(), "no code for the CPU") != nullptr, "no reason", "x86-64-v5");
  expect(std::strcmp(nets::Several::info(2).cpu, "x86-64-v2") == 0, "the least able CPU is another", "none");
  return failures == 0 ? 0 : 1;
}
