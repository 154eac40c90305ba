// merge-equal-kernels: kernels that differ in names alone become one, and those that nothing calls go.
//
//   call 0 (0, 1)                 call 0 (0, 1)
//   call 1 (1, 2)                 call 0 (1, 2)
//   kernel "relu_1" {...}         kernel "relu_1" {...}
//   kernel "relu_2" {...}
//
// A network's repeated layers share their code. A promise of one kernel to write in place holds for all of
// equal code. Facts for reports (location, work) are those of the first.
//
// - Requires: memory is planned, for which every call makes promises of its own.
// - Establishes: no two kernels have the same code.
// - Breaks: nothing.
#include "compiler/kernel/kir_text.h"
#include "compiler/kernel/passes/pass.h"

#include <algorithm>
#include <unordered_map>

namespace firn::kernel {
namespace {

void renumber(std::vector<Step>& steps, const std::vector<int>& numbers) {
  for (Step& step : steps) {
    if (step.kind == Step::Kind::Call) step.kernel = numbers[static_cast<size_t>(step.kernel)];
    renumber(step.first, numbers);
    renumber(step.second, numbers);
  }
}

void mark_called(const std::vector<Step>& steps, std::vector<bool>& called) {
  for (const Step& step : steps) {
    if (step.kind == Step::Kind::Call) called[static_cast<size_t>(step.kernel)] = true;
    mark_called(step.first, called);
    mark_called(step.second, called);
  }
}

void add_promises(const std::vector<InPlace>& from, std::vector<InPlace>& to) {
  for (const InPlace& pair : from)
    if (std::find(to.begin(), to.end(), pair) == to.end()) to.push_back(pair);
}

} // namespace

bool merge_equal_kernels(Program& program, const KernelPassOptions& options) {
  std::vector<bool> called(program.kernels.size());
  mark_called(program.steps, called);
  std::unordered_map<std::string, int> by_text;
  std::vector<int> numbers(program.kernels.size(), -1);
  std::vector<std::unique_ptr<Kernel>> kept;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    if (!called[i] && options.take_rewrite()) continue;
    auto [found, is_new] = by_text.try_emplace(kernel_text(*program.kernels[i], /*anonymous=*/true),
                                               static_cast<int>(kept.size()));
    if (is_new || !options.take_rewrite()) {
      numbers[i] = static_cast<int>(kept.size());
      kept.push_back(std::move(program.kernels[i]));
    } else {
      numbers[i] = found->second;
      add_promises(program.kernels[i]->in_place, kept[static_cast<size_t>(found->second)]->in_place);
    }
  }
  bool changed = kept.size() < program.kernels.size();
  program.kernels = std::move(kept);
  renumber(program.steps, numbers);
  return changed;
}

} // namespace firn::kernel
